"""The API reference: every public name of a module, in the order of the alphabet; a class has a page of its own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from jinja2 import Environment
from markdown_text import escape, eval_rst, table

import operators
from bounds import Bound
from operators import Aggregate, Feedback, Operator

PACKAGES = ("bounds", "operators", "ratedist", "gpu_validation")
DOCS = Path(__file__).parents[1]


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


def described_here(name: str, only: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Public names of a module (or only some), without those described elsewhere."""
    module = import_module(name)
    for member, value in public_names(module):
        if not described_elsewhere(module, member, value) and (not only or member in only):
            yield member, value


def module_section(name: str, title: str = "", only: tuple[str, ...] = ()) -> str:
    """The module's docstring, a table of its classes, which have pages of their own, and its functions."""
    lines = [f".. py:module:: {name}", "", f".. automodule:: {name}", "   :noindex:", "   :no-members:", ""]
    rows = []
    for member, value in described_here(name, only):
        if has_page(value):
            place = f"class-{name}.{member}"
            link = f'<span id="{name}.{member}"></span>[`{member}`](/reference/entries/{place}.md)'
            rows.append([link, re.sub(r"(?<!\\)\|", r"\\|", escape(first_sentence(value)))])
        else:
            lines += [f".. {'autoexception' if is_exception(value) else 'autofunction'}:: {name}.{member}", ""]
    heading = f"## {title or f'`{name}`'}\n\n"
    return f"{heading}{eval_rst(lines[:6])}\n{table(['class', 'what it is'], rows)}\n{eval_rst(lines[6:])}"


def class_page(name: str) -> str:
    """The page of one class, given by module and name."""
    value = _named(name)
    lines = [f".. autoclass:: {name}", "   :members:"]
    lines += ["   :show-inheritance:"] if value.__bases__ != (object,) else []
    lines += ["   :undoc-members:"] if issubclass(value, Enum) else []  # the values of an enumeration
    module = name.rpartition(".")[0]
    package = name.partition(".")[0]
    where = f"Of the module `{module}`. [All names of {package}](/reference/api/{package}.md)"
    return f"(class-{name})=\n# `{value.__name__}`\n\n{where}\n\n{eval_rst(lines)}"


@cache
def sections() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Module, title and names of every call of ``module_section`` on the pages of the reference."""
    found: list[tuple[str, str, tuple[str, ...]]] = []

    def note(name: str, title: str = "", only: tuple[str, ...] = ()) -> str:
        found.append((name, title, only))
        return ""

    for page in sorted((DOCS / "reference").glob("**/*.md")):
        text = "\n".join(re.findall(r"\{%.*?%\}|\{\{ module_section.*?\}\}", page.read_text()))
        Environment(autoescape=True).from_string(text).render(module_section=note)
    return tuple(found)


@cache
def classes() -> tuple[str, ...]:
    """Module and name of every class that has a page."""
    named = (
        f"{module}.{member}"
        for module, _, only in sections()
        for member, value in described_here(module, only)
        if has_page(value)
    )
    return tuple(dict.fromkeys(named))


def has_page(value: Any) -> bool:
    """Whether it has a page of its own: a class that is no exception."""
    return inspect.isclass(value) and not is_exception(value)


def first_sentence(value: Any) -> str:
    """The first sentence of its docstring."""
    text = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?]) +(?=[A-Z])", text)[0]


def _named(name: str) -> Any:
    module, _, member = name.rpartition(".")
    return getattr(import_module(module), member)


def is_exception(value: Any) -> bool:
    """Whether it is a class of exceptions."""
    return inspect.isclass(value) and issubclass(value, BaseException)
