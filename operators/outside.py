"""Load objects from outside this repository, by "module:attribute" or by an entry point.

An installed package announces objects by entry points of the groups ``ratedist.operators``, ``ratedist.workloads`` and
``ratedist.presets``.  A module is searched in the current folder first.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

OPERATORS, WORKLOADS, PRESETS = "ratedist.operators", "ratedist.workloads", "ratedist.presets"

_REFERENCE = re.compile(
    r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<attribute>[^\W\d]\w*(\.[^\W\d]\w*)*)(:(?P<rest>.*))?"
)
_trusted: ContextVar[bool] = ContextVar("trusted", default=True)


@contextmanager
def without_imports() -> Iterator[None]:
    """Disable imports by name inside this context, for names that come from a network."""
    token = _trusted.set(False)
    try:
        yield
    finally:
        _trusted.reset(token)


def split(text: str) -> tuple[str, str] | None:
    """Return ("module:attribute", text after a further colon), or None for other or untrusted texts."""
    match = _REFERENCE.fullmatch(text.strip())
    if match is None or not _trusted.get():
        return None
    return f"{match['module']}:{match['attribute']}", match["rest"] or ""


def imported(reference: str) -> Any:
    """Import and return the object named by "package.module:object".

    The current folder is searched first and stays on the path.  Raise the error of the import, or AttributeError for a
    missing attribute.
    """
    module, _, attribute = reference.partition(":")
    if (folder := os.getcwd()) not in sys.path:
        sys.path.insert(0, folder)
    value: Any = importlib.import_module(module)
    _require_not_hidden(module.partition(".")[0], Path(folder).resolve())
    for name in attribute.split("."):
        value = getattr(value, name)
    return value


def _require_not_hidden(name: str, folder: Path) -> None:
    """Raise ImportError if a package hides the module of the same name in the current folder."""
    file = folder / f"{name}.py"
    origin = getattr(sys.modules[name], "__file__", None)
    if file.is_file() and origin is not None and Path(origin).resolve() != file:
        raise ImportError(f"{file} is hidden by a package of the same name, {Path(origin).parent}: rename the file")


def load(reference: str, what: str) -> Any:
    """Import an object; raise every failure as ValueError with one sentence.

    Parameters
    ----------
    what : str
        Kind of the object for the sentence, such as "operator".
    """
    module, _, attribute = reference.partition(":")
    try:
        return imported(reference)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise ValueError(
                f"no module {module} for the {what} {reference!r}, and no {what} has this name: a module must be "
                f"installed or lie in {os.getcwd()}"
            ) from error
        raise ValueError(f"the {what} {reference!r} needs the module {error.name}: install it") from error
    except AttributeError as error:
        raise ValueError(f"{module} has no {attribute} for the {what} {reference!r} ({error}): define it") from error
    except Exception as error:  # whatever a module does when it is imported
        raise ValueError(
            f"{module} cannot be imported for the {what} {reference!r} ({type(error).__name__}: {error}): fix it"
        ) from error


@dataclass(frozen=True)
class Announced:
    """An object that an installed package offers.

    Parameters
    ----------
    name : str
        Name of the object.
    origin : str
        Package and version.
    """

    name: str
    origin: str
    entry: EntryPoint

    def load(self) -> Any:
        """Load and return the object.

        Raises
        ------
        ValueError
            If it cannot be loaded.
        """
        try:
            return self.entry.load()
        except Exception as error:  # whatever a package does when it is imported
            raise ValueError(
                f"{self.name} of {self.origin} cannot be loaded ({type(error).__name__}: {error}): fix or uninstall it"
            ) from error


def announced(group: str) -> dict[str, Announced]:
    """Return the objects that installed packages offer, by name and sorted; the first one of each name."""
    names: dict[str, Announced] = {}
    for entry in entry_points(group=group):
        origin = "?" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
        names.setdefault(entry.name, Announced(entry.name, origin, entry))
    return dict(sorted(names.items()))
