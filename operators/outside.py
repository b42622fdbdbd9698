"""Things that come from outside this tree: named as "module:attribute", or announced by an installed package.

A package announces them by entry points of the groups ``ratedist.operators``, ``ratedist.workloads`` and
``ratedist.presets``.  What is named by its module is looked for in the current folder first.
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
    """Return within, no name makes anything be imported: for names that come from a network."""
    token = _trusted.set(False)
    try:
        yield
    finally:
        _trusted.reset(token)


def split(text: str) -> tuple[str, str] | None:
    """Return ("module:attribute", what follows a further colon), None for a text that is no such name, or is not
    trusted.
    """
    match = _REFERENCE.fullmatch(text.strip())
    if match is None or not _trusted.get():
        return None
    return f"{match['module']}:{match['attribute']}", match["rest"] or ""


def imported(reference: str) -> Any:
    """Return the object that "package.module:object" names; the current folder is searched first, and stays on the
    path.

    Raises what the import raises, AttributeError for an object that the module does not have.
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
    """Raise ImportError where the module that was imported is another than the one in the current folder."""
    file = folder / f"{name}.py"
    origin = getattr(sys.modules[name], "__file__", None)
    if file.is_file() and origin is not None and Path(origin).resolve() != file:
        raise ImportError(f"{file} is hidden by a package of the same name, {Path(origin).parent}: rename the file")


def load(reference: str, what: str) -> Any:
    """Return ``imported``, with one sentence as ValueError for whatever goes wrong.

    Parameters
    ----------
    what : str
        "operator", "preset".
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
            f"{module} cannot be imported for the {what} {reference!r} ({type(error).__name__}: {error}): mend it"
        ) from error


@dataclass(frozen=True)
class Announced:
    """What an installed package offers.

    Parameters
    ----------
    name : str
        Of the thing.
    origin : str
        The package and its version.
    """

    name: str
    origin: str
    entry: EntryPoint

    def load(self) -> Any:
        """Return the thing itself.

        Raises
        ------
        ValueError
            With one sentence, where it cannot be had.
        """
        try:
            return self.entry.load()
        except Exception as error:  # whatever a package does when it is imported
            raise ValueError(
                f"{self.name} of {self.origin} cannot be loaded ({type(error).__name__}: {error}): mend or uninstall it"
            ) from error


def announced(group: str) -> dict[str, Announced]:
    """Name -> what installed packages offer, sorted by name; of several of one name the first."""
    names: dict[str, Announced] = {}
    for entry in entry_points(group=group):
        origin = "?" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
        names.setdefault(entry.name, Announced(entry.name, origin, entry))
    return dict(sorted(names.items()))
