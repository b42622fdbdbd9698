"""Every public name has a docstring of its own that names the errors it raises and, of a class, its parameters."""

import ast
import dataclasses
import inspect
import re
import sys
import textwrap
from functools import cache
from importlib import import_module

import api
import pytest
from pages import DOCS

EXCEPTIONS = re.compile(r"^[A-Z]\w*$")
NOT_FOR_CALLERS = {"AssertionError", "NotImplementedError", "AttributeError"}


@cache
def modules():
    """The modules that the reference describes."""
    return sorted({module for module, _, _ in api.sections()})


@cache
def public():
    """(name, object, all docstrings around it) of every public class, function, method and property."""
    found = {}
    for module in modules():
        for name, value in api.public_names(import_module(module)):
            own = sys.modules.get(getattr(value, "__module__", ""), None)
            around = (own.__doc__ or "") if own else ""
            found.setdefault(id(value), (f"{module}.{name}", value, around))
            if inspect.isclass(value):
                for key, member in vars(value).items():
                    function = unwrapped(member)
                    if not key.startswith("_") and inspect.isfunction(function):
                        inherited = [inspect.getdoc(vars(b)[key]) or "" for b in value.__mro__[1:] if key in vars(b)]
                        texts = " ".join([around, value.__doc__ or "", *inherited])
                        found.setdefault(id(function), (f"{module}.{name}.{key}", function, texts))
    return sorted(found.values(), key=lambda entry: entry[0])


def unwrapped(member):
    """The function behind a class attribute."""
    if isinstance(member, classmethod | staticmethod):
        return member.__func__
    return member.fget if isinstance(member, property) else getattr(member, "func", member)


def own_text(value):
    """The docstring that was written for it, not the one that a dataclass makes."""
    text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    made = inspect.isclass(value) and (text or "").startswith(f"{value.__name__}(")
    return "" if made else text or ""


def test_all_packages_are_described():
    assert {name.partition(".")[0] for name in modules()} == set(api.PACKAGES)
    assert len(public()) > 900


def test_every_public_name_has_a_docstring():
    """Of its own, or as a method that of a base class."""
    assert [name for name, value, _ in public() if not (own_text(value) or inherited_text(value)).strip()] == []


def test_no_colon_in_the_first_line_of_a_property():
    """Sphinx takes the words before it for a type."""
    found = []
    for package in api.PACKAGES:
        for path in (DOCS.parent / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef) and any("property" in ast.unparse(d) for d in node.decorator_list):
                    first = (ast.get_docstring(node) or "").partition("\n")[0]
                    if ":" in re.sub("``.*?``", "", first):
                        found.append(f"{path}:{node.lineno}: {first}")
    assert found == []


def inherited_text(value):
    """The docstring of the method of a base class that it overrides."""
    owner, _, name = getattr(value, "__qualname__", "").rpartition(".")
    cls = vars(sys.modules.get(getattr(value, "__module__", ""), None) or object).get(owner)
    bases = cls.__mro__[1:] if inspect.isclass(cls) else ()
    return next((inspect.getdoc(vars(base)[name]) or "" for base in bases if name in vars(base)), "")


def test_errors_raised_by_a_public_function_are_named():
    silent = []
    for name, value, around in public():
        if inspect.isfunction(value):
            missing = raised(value) - set(re.findall(r"\w+", own_text(value) + around))
            silent += [f"{name}: {error}" for error in missing]
    assert silent == []


def raised(function):
    """Names of the exceptions in its own raise statements."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return set()
    calls = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    names = {call.func.id for call in calls if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)}
    return {name for name in names if EXCEPTIONS.match(name)} - NOT_FOR_CALLERS


@pytest.mark.parametrize("package", api.PACKAGES)
def test_fields_of_a_public_class_are_explained(package):
    unexplained = []
    for name, value, around in public():
        if name.startswith(f"{package}.") and inspect.isclass(value) and dataclasses.is_dataclass(value):
            words = set(re.findall(r"\w+", " ".join([around, *(base.__doc__ or "" for base in value.__mro__)])))
            fields = {
                field.name for field in dataclasses.fields(value) if field.init and not field.name.startswith("_")
            }
            unexplained += [f"{name}: {field}" for field in sorted(fields - words)]
    assert unexplained == []
