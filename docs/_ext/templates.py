"""Pages under FOLDERS are Jinja templates: they show what code and records make."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import api
import catalogue
import choices
import implementations
import kit_records
import records
import study_tables
from jinja2 import Environment, StrictUndefined
from sphinx.application import Sphinx

FOLDERS = (
    "concepts/",
    "reference/",
    "results/",
    "guides/choose_a_compressor",
    "guides/choose_tau",
    "guides/do_i_need_a_pilot",
)
MODULES = (api, catalogue, choices, implementations, kit_records, records, study_tables)


def functions(*modules: ModuleType) -> dict[str, Callable[..., Any]]:
    """Name -> function of all public functions that the modules define.  Raises ValueError if two have one name."""
    found: dict[str, Callable[..., Any]] = {}
    for module in modules:
        for name, function in inspect.getmembers(module, inspect.isroutine):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                if name in found:
                    raise ValueError(f"{found[name].__module__} and {module.__name__} both define {name}")
                found[name] = function
    return found


FUNCTIONS = functions(*MODULES)


def render(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill in one page."""
    if docname.startswith(FOLDERS):
        environment = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
        source[0] = environment.from_string(source[0]).render(FUNCTIONS)


def outdated(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """They depend on all of the code and the records, so they are read again at every build."""
    return [name for name in env.found_docs if name.startswith(FOLDERS)]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the two handlers."""
    app.connect("env-get-outdated", outdated)
    app.connect("source-read", render)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
