"""Packages that only an extra of the distribution brings, and what to say where one is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lazy_loader

EXTRAS = {
    "torch": "operators",
    "numba": "operators",
    "matplotlib": "validate",
    "sklearn": "validate",
    "hypothesis": "laws",
    "pytest": "laws",
    "clarabel": "pep",
    "fastapi": "serve",
    "uvicorn": "serve",
    "starlette": "serve",
    "pydantic": "serve",
    "h11": "serve",
    "shtab": "completion",
    "submitit": "cluster",
    "distributed": "cluster",
    "accelerate": "adapters",
    "lightning": "adapters",
    "transformers": "adapters",
    "pandas": "frame",
}


class MissingExtra(ImportError):  # noqa: N818  what is missing, not what went wrong
    """A package is not installed that an extra brings.

    Parameters
    ----------
    package : str
        Its import name.
    who : str
        What needs it, as the subject of a sentence.
    """

    def __init__(self, package: str, who: str) -> None:
        super().__init__(
            f'{who} needs {package}, which is not installed: pip install "ratedist[{EXTRAS[package]}]"', name=package
        )


def missing_extra(error: Exception, who: str) -> MissingExtra | None:
    """Return what to raise for a failed import, None where no extra brings the package.

    Parameters
    ----------
    error : exception
        That was raised.
    who : str
        What needs the package, as the subject of a sentence.
    """
    if not isinstance(error, ModuleNotFoundError | MissingExtra):  # what is there and broken says so itself
        return None
    package = (error.name or "").partition(".")[0]
    return MissingExtra(package, who) if package in EXTRAS else None


def attach_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package that imports what its stub exports when asked.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    file : str
        Its ``__file__``, beside which the stub lies.

    Raises
    ------
    ImportError
        From the first, with the command that installs what is missing.
    """
    exported, directory, names = lazy_loader.attach_stub(package, file)

    def get(name: str) -> Any:
        try:
            return exported(name)
        except ImportError as error:
            raise missing_extra(error, package) or error from None

    return get, directory, names
