"""Studies by name: every module in this folder with a PRESET is one; others come from outside this package."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from operators import outside

from ..records.exit_status import UsageError
from .study import Study


def all_presets() -> dict[str, Study]:
    """Return the built-in studies by name, sorted."""
    modules = (import_module(f"{__package__}.{info.name}") for info in iter_modules([str(Path(__file__).parent)]))
    presets = [module.PRESET for module in modules if hasattr(module, "PRESET")]
    return {preset.name: preset for preset in sorted(presets, key=lambda p: p.name)}


def preset_named(name: str) -> Study:
    """Return the study with a name: a built-in one, a registered one, or the object that "module:PRESET" names.

    Modules are searched in the current folder first.

    Raises
    ------
    UsageError
        If there is no such study.
    """
    presets = all_presets()
    if name in presets:
        return presets[name]
    offered, reference = outside.announced(outside.PRESETS), outside.split(name)
    try:
        if name in offered:
            return _checked(offered[name].load(), name)
        if reference is not None and not reference[1]:
            return _checked(outside.load(reference[0], "preset"), name)
    except ValueError as error:
        raise UsageError(str(error)) from error
    raise UsageError(f"no preset {name!r}; known: {', '.join([*presets, *offered])}, or module:PRESET")


def _checked(found: Any, name: str) -> Study:
    if not isinstance(found, Study):
        raise UsageError(
            f"{name} must be a Preset of gpu_validation.studies or a Study of gpu_validation.studies.study; "
            f"got {found!r}"
        )
    if found.name in all_presets():
        raise UsageError(f"{name} is called {found.name!r}, as one of the program's own is: give it another name")
    if "/" in found.name or found.name in ("", ".", ".."):
        raise UsageError(f"{name} is called {found.name!r}, and its results need a folder of its name: give it another")
    return found


def offered_lines() -> list[str]:
    """Return one line per registered study, operator and workload, with its package."""
    lines = []
    for offer in outside.announced(outside.PRESETS).values():
        try:
            preset = _checked(offer.load(), offer.name)
            lines.append(f"{offer.name:15} {preset.minutes:4g} min  {preset.description} (from {offer.origin})")
        except ValueError as error:
            lines.append(f"{offer.name:15} cannot be used: {error}")
    for group, kind in ((outside.OPERATORS, "operator"), (outside.WORKLOADS, "workload")):
        lines += [f"{other.name:15} {kind} (from {other.origin})" for other in outside.announced(group).values()]
    return lines
