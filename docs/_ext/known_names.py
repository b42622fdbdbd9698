"""References to names that this documentation does not describe: of Python, numpy, scipy, sympy, torch, networkx.

A type in a signature is looked up by importing it.  If it exists, its name is printed without a link; if not, the
reference stays unresolved, and the build fails.  Type variables and private base classes are printed likewise."""

from __future__ import annotations

import sys
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any, TypeVar

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

OTHERS = {"builtins", "fastapi", "numpy", "scipy", "sympy", "torch", *sys.stdlib_module_names}


def find(target: str) -> Any:
    """The object of a dotted name.  Raises ImportError or AttributeError."""
    parts = target.split(".") if "." in target else ["builtins", target]
    for count in range(len(parts) - 1, 0, -1):
        try:
            found: Any = import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise ImportError(target)


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.Element) -> nodes.Element | None:
    """The plain text of a name that exists elsewhere; None if it does not."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    try:
        found = find(target)
    except (ImportError, AttributeError):
        return None
    elsewhere = target.partition(".")[0] in OTHERS or "." not in target
    private = target.rpartition(".")[2].startswith("_")
    return text if elsewhere or private or isinstance(found, TypeVar) else None


def evaluate_inherited(app: Sphinx, obj: Any, bound_method: bool) -> None:
    """Annotations of inherited fields are text that means something in the module of the base class only."""
    cls = getattr(obj, "__globals__", {}).get(getattr(obj, "__qualname__", "").partition(".")[0])
    if not is_dataclass(cls) or not isinstance(cls, type) or obj is not cls.__init__:
        return
    for base in cls.__mro__:
        for name, annotation in vars(base).get("__annotations__", {}).items():
            if isinstance(annotation, str) and isinstance(obj.__annotations__.get(name), str):
                obj.__annotations__[name] = eval(annotation, vars(sys.modules[base.__module__]))


def without_factories(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """The default of a field that is made afresh, ``<factory>`` in Python's words, is no expression."""
    return signature and signature.replace("<factory>", "..."), returns


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the handlers."""
    app.connect("missing-reference", resolve)
    app.connect("autodoc-before-process-signature", evaluate_inherited)
    app.connect("autodoc-process-signature", without_factories)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
