"""Every Bound of the package by name, found by looking into the packages that hold them."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from .bound import Bound

PACKAGES = ("bounds.limits", "bounds.theorems")


@lru_cache(maxsize=1)
def all_bounds() -> dict[str, Bound]:
    """Name -> Bound, sorted by name.

    Raises
    ------
    ValueError
        If two bounds share a name.
    """
    bounds_by_name: dict[str, Bound] = {}
    for package in map(import_module, PACKAGES):
        for attribute in dir(package):
            value = getattr(package, attribute)
            if not isinstance(value, Bound):
                continue
            if value.name != attribute or value.name in bounds_by_name:
                raise ValueError(f"bound {value.name!r} is exported as {attribute!r}; names must be unique and equal")
            bounds_by_name[value.name] = value
    return dict(sorted(bounds_by_name.items()))
