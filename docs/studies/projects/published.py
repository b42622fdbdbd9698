"""One published implementation: where it comes from, what is claimed of it, and the computation beside the kit."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import distribution, version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy.stats import norm

from operators.laws import Subject

LEVEL = 0.999  # of the intervals of Monte Carlo means


@dataclass(frozen=True)
class Computed:
    """A number found without the kit.

    quantity : what it is.  value : what was found; claimed : what it would be if the claim were true.
    method : "enumeration", "closed form", "one call" or "Monte Carlo"; n : outcomes, calls or draws.
    interval : of a Monte Carlo mean, at LEVEL.
    """

    quantity: str
    value: float
    claimed: float
    method: str
    n: int = 1
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Published:
    """What is judged.

    name : in the table.  package : its distribution, or the repository of a clone.  license : as it states.
    source : returns the function or class, imported when it is called.  says : what the project or its paper says.
    judged : the claim as the kit was given it, and where it applies.  subject : makes it from ``source()``.
    computed : numbers found without the kit.  finding : one sentence on what is wrong, empty if nothing is.
    """

    name: str
    package: str
    license: str
    source: Callable[[], Any]
    says: str
    judged: str
    subject: Callable[[Any], Subject]
    computed: Callable[[Any], tuple[Computed, ...]]
    finding: str = ""


def by_path(package: str, path: str) -> ModuleType:
    """A module of an installed distribution, without the imports of the packages around it."""
    name = path.removesuffix(".py").replace("/", "_")
    spec = importlib.util.spec_from_file_location(name, str(distribution(package).locate_file(path)))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def attribute(module: str, name: str) -> Callable[[], Any]:
    """What a module calls by this name, imported when it is asked for."""
    return lambda: getattr(importlib.import_module(module), name)


def version_of(package: str) -> str:
    """The version of a distribution; of a clone the digest of the file alone."""
    return "" if "/" in package else version(package)


def digest(source: Any) -> str:
    """SHA-256 of the file that defines it."""
    return hashlib.sha256(Path(inspect.getsourcefile(inspect.unwrap(source)) or "").read_bytes()).hexdigest()


def mean_of(draw: Callable[[], float], n: int, quantity: str, claimed: float) -> Computed:
    """A plain mean of n draws with its normal interval."""
    values = np.array([draw() for _ in range(n)])
    half = float(norm.ppf(0.5 + LEVEL / 2) * values.std(ddof=1) / np.sqrt(n))
    mean = float(values.mean())
    return Computed(quantity, mean, claimed, "Monte Carlo", n, (mean - half, mean + half))


def one_call(quantity: str, value: Any, claimed: float, n: int = 1) -> tuple[Computed, ...]:
    """What one call of the code gives."""
    return (Computed(quantity, float(value), claimed, "one call", n),)


def returns(call: Callable[[], Any], quantity: str, error: type[Exception]) -> tuple[Computed, ...]:
    """Whether a call returns, or raises this error."""
    try:
        call()
    except error:
        return one_call(quantity, 0.0, 1.0)
    return one_call(quantity, 1.0, 1.0)


def search_in(folders: list[Path]) -> None:
    """Look for packages in these folders too, after everything that is installed."""
    sys.path.extend(str(folder) for folder in folders)
