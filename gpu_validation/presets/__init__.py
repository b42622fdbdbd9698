"""Experiments by name; a module with a PRESET in this folder is one."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ..study import Study
from .preset import Cells as Cells
from .preset import Preset as Preset


def all_presets() -> dict[str, Preset | Study]:
    """Name -> preset, sorted by name."""
    modules = (import_module(f"{__name__}.{info.name}") for info in iter_modules(__path__))
    found = [module.PRESET for module in modules if hasattr(module, "PRESET")]
    return {preset.name: preset for preset in sorted(found, key=lambda p: p.name)}
