"""The API reference: every public name of a module, in the order of the alphabet."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from markdown_text import eval_rst

import operators
from bounds import Bound
from operators import Aggregate, Feedback, Operator

PACKAGES = ("bounds", "operators", "ratedist", "gpu_validation")


def public_names(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Classes and functions that a module exports; of a plain module those that it defines."""
    package = hasattr(module, "__path__")
    for name in sorted(dir(module), key=str.lower):
        value = getattr(module, name)
        home = getattr(value, "__module__", None) or ""
        if name.startswith("_") or not (inspect.isclass(value) or inspect.isroutine(value) or _wrapped(value)):
            continue
        if home == module.__name__ or (package and home.startswith(module.__name__ + ".")):
            yield name, value


def _wrapped(value: Any) -> bool:
    return callable(value) and hasattr(value, "__wrapped__")


def in_catalogue(value: Any) -> bool:
    """Whether the catalogue pages describe it: a bound, or a final operator, feedback method or aggregation."""
    is_family = inspect.isclass(value) and issubclass(value, Operator | Feedback | Aggregate)
    is_exported = is_family and getattr(operators, value.__name__, None) is value
    return isinstance(value, Bound) or (is_exported and not inspect.isabstract(value))


def described_elsewhere(module: ModuleType, name: str, value: Any) -> bool:
    """Whether the catalogue describes it, or a package above that exports it too."""
    if in_catalogue(value):
        return True
    above = module.__name__.rpartition(".")[0]
    while above:
        if getattr(import_module(above), name, None) is value:
            return True
        above = above.rpartition(".")[0]
    return False


def module_section(name: str, title: str = "", only: tuple[str, ...] = ()) -> str:
    """The module's docstring and its public names (or only some), without those described elsewhere."""
    module = import_module(name)
    lines = [f".. py:module:: {name}", "", f".. automodule:: {name}", "   :noindex:", "   :no-members:", ""]
    for member, value in public_names(module):
        if described_elsewhere(module, member, value) or (only and member not in only):
            continue
        directive = (
            "autoexception" if is_exception(value) else "autoclass" if inspect.isclass(value) else "autofunction"
        )
        lines += [f".. {directive}:: {name}.{member}"]
        if inspect.isclass(value):
            lines.append("   :members:")
            lines += ["   :show-inheritance:"] if value.__bases__ != (object,) else []
        lines.append("")
    return f"## {title or f'`{name}`'}\n\n{eval_rst(lines)}"


def is_exception(value: Any) -> bool:
    """Whether it is a class of exceptions."""
    return inspect.isclass(value) and issubclass(value, BaseException)
