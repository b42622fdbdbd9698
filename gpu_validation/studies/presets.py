"""Built-in studies by name: every module in this folder with a PRESET is one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from .study import Study


def all_presets() -> dict[str, Study]:
    """Return the built-in studies by name, sorted."""
    modules = (import_module(f"{__package__}.{info.name}") for info in iter_modules([str(Path(__file__).parent)]))
    presets = [module.PRESET for module in modules if hasattr(module, "PRESET")]
    return {preset.name: preset for preset in sorted(presets, key=lambda p: p.name)}
