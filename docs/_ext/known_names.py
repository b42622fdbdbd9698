"""References to names that this documentation does not describe: of Python, numpy, scipy, sympy, torch, networkx.

A type in a signature is looked up by importing it.  If it exists, its name is printed without a link; if not, the
reference stays unresolved, and the build fails.  Type variables and private base classes are printed likewise."""

from __future__ import annotations

import ast
import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

PACKAGES = ("bounds", "operators", "ratedist", "gpu_validation")
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
    if len(parts) == 2 and parts[0] == "builtins":
        for package in PACKAGES:  # an error that a docstring names as its readers import it
            if hasattr(import_module(package), parts[1]):
                return getattr(import_module(package), parts[1])
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


def evaluate_annotations(app: Sphinx, obj: Any, bound_method: bool) -> None:
    """Annotations are text, and some mean nothing where Python looks for them.

    Those of inherited fields belong to the module of the base class; others name what is imported for type checkers
    only.  Both are evaluated here, in place.
    """
    obj = inspect.unwrap(obj)  # a decorator's own module does not have the names
    annotations, space = getattr(obj, "__annotations__", {}), getattr(obj, "__globals__", {})
    homes = [checked_names(space), space]
    cls = space.get(getattr(obj, "__qualname__", "").partition(".")[0])
    if isinstance(cls, type):
        homes += [vars(sys.modules[base.__module__]) for base in cls.__mro__]
    for name, annotation in annotations.items():
        if isinstance(annotation, str):
            for home in homes:
                try:
                    annotations[name] = eval(annotation, {**space, **home})
                except NameError:
                    continue
                break


def checked_names(space: dict[str, Any]) -> dict[str, Any]:
    """What a module imports under ``if TYPE_CHECKING:``; a name stands in for what is in a package not installed."""
    path = space.get("__file__")
    if path is None or "TYPE_CHECKING" not in space:
        return {}
    found: dict[str, Any] = {}
    for node in ast.parse(Path(path).read_text()).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for statement in node.body:
                try:
                    exec(compile(ast.Module([statement], []), path, "exec"), {**space}, found)
                except ModuleNotFoundError:
                    assert isinstance(statement, ast.ImportFrom)
                    for alias in statement.names:
                        found[alias.asname or alias.name] = type(alias.name, (), {"__module__": statement.module})
    return found


def without_factories(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """The default of a field that is made afresh, ``<factory>`` in Python's words, is no expression."""
    return signature and signature.replace("<factory>", "..."), returns


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the handlers."""
    app.connect("missing-reference", resolve)
    app.connect("autodoc-before-process-signature", evaluate_annotations)
    app.connect("autodoc-process-signature", without_factories)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
