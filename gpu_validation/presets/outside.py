"""Presets from outside this tree: named by their module, or announced by an installed package."""

from __future__ import annotations

from typing import Any

from operators import outside

from ..outcome import UsageError
from ..study import Study
from . import all_presets
from .preset import Preset


def preset_named(name: str) -> Preset | Study:
    """The preset of this name: one of the tree's, one that a package announces, or what "module:PRESET" names.

    The module is looked for in the current folder first.  Raises UsageError, with one sentence, where there is none.
    """
    own = all_presets()
    if name in own:
        return own[name]
    offered, reference = outside.announced(outside.PRESETS), outside.split(name)
    try:
        if name in offered:
            return _checked(offered[name].load(), name)
        if reference is not None and not reference[1]:
            return _checked(outside.load(reference[0], "preset"), name)
    except ValueError as error:
        raise UsageError(str(error)) from error
    raise UsageError(f"no preset {name!r}; known: {', '.join([*own, *offered])}, or module:PRESET")


def _checked(found: Any, name: str) -> Preset | Study:
    if not isinstance(found, Preset | Study):
        raise UsageError(
            f"{name} must be a Preset of gpu_validation.presets or a Study of gpu_validation.study; got {found!r}"
        )
    if found.name in all_presets():
        raise UsageError(f"{name} is called {found.name!r}, as one of the program's own is: give it another name")
    if "/" in found.name or found.name in ("", ".", ".."):
        raise UsageError(f"{name} is called {found.name!r}, and its results need a folder of its name: give it another")
    return found


def offered_lines() -> list[str]:
    """One line for everything that installed packages announce, with its origin."""
    lines = []
    for offer in outside.announced(outside.PRESETS).values():
        try:
            found = _checked(offer.load(), offer.name)
            lines.append(f"{offer.name:15} {found.minutes:4g} min  {found.description} (from {offer.origin})")
        except ValueError as error:
            lines.append(f"{offer.name:15} cannot be used: {error}")
    for group, kind in ((outside.OPERATORS, "operator"), (outside.WORKLOADS, "workload")):
        lines += [f"{one.name:15} {kind} (from {one.origin})" for one in outside.announced(group).values()]
    return lines
