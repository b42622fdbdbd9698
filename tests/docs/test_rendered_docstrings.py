"""Docstrings are numpydoc in reStructuredText: standard tools read them, every parameter has an entry of its own."""

import dataclasses
import enum
import importlib
import inspect
import re
import runpy
import sys
from functools import cache

import catalogue
import docutils.core
import pytest
from docutils.parsers.rst import roles
from pages import DOCS
from sphinx.ext.napoleon import Config, NumpyDocstring
from test_docstrings import modules, own_text, public, unwrapped

from bounds import all_bounds
from operators import Operator

SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Notes", "References", "Examples", "See Also")
SECTION = re.compile(rf"^({'|'.join(SECTIONS)})\n(-+)$", re.MULTILINE)
ENTRY = re.compile(r"^(\S.*?)(?: : (.+))?$")
PACKAGES = ("bounds", "operators", "ratedist", "gpu_validation")


@cache
def napoleon():
    """The settings with which the site is built."""
    settings = {name: value for name, value in runpy.run_path(str(DOCS / "conf.py")).items() if "napoleon_" in name}
    return Config(**settings)


def parsed(text):
    """The document that a docstring becomes; warnings are errors."""
    roles.register_local_role("cite:p", lambda *_, **__: ([], []))
    settings = {"report_level": 2, "halt_level": 2}
    return docutils.core.publish_doctree(str(NumpyDocstring(text, napoleon())), settings_overrides=settings)


def sections(text):
    """Name of each section -> its lines."""
    parts, found = SECTION.split(text), {}
    for name, body in zip(parts[1::3], parts[3::3], strict=True):
        found.setdefault(name, []).extend(body.strip("\n").split("\n"))
    return found


def entries(text, *names):
    """The names of the entries of some sections, one a line, with their text."""
    found = {}
    for section in names:
        name = None
        for line in sections(text).get(section, ()):
            if line and not line.startswith(" "):
                name = ENTRY.match(line)[1]
                found[name] = ENTRY.match(line)[2] or ""
            elif line and name is not None:
                found[name] += line
    return found


@cache
def docstrings():
    """name -> docstring of every public name and described module, and the derivation of every bound."""
    found = {name: inspect.cleandoc(own_text(value)) for name, value, _ in public()}
    described = [importlib.import_module(name) for name in modules()]
    making = [sys.modules[name] for name in sorted(sys.modules) if name.startswith("bounds.")]
    found |= {module.__name__: inspect.cleandoc(module.__doc__ or "") for module in described + making}
    return found | {f"bounds.{name} (derivation)": text for name, text in catalogue.derivations().items()}


@pytest.mark.thorough
@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_are_restructured_text(package):
    assert all_bounds()
    wrong = {}
    for name, text in docstrings().items():
        if name.partition(".")[0] == package:
            try:
                parsed(text)
            except docutils.utils.SystemMessage as error:
                wrong[name] = str(error)
    assert wrong == {}


EXPORTING = ("gpu_validation", "gpu_validation.studies", "gpu_validation.telemetry")  # by a stub


@cache
def exported():
    """Names of the classes and functions that the stubs of gpu_validation export."""
    return {name for package in EXPORTING for name in importlib.import_module(package).__all__}


def needs_entries(value):
    """Whether callers outside the package give it parameters: what no stub exports has a sentence, and no sections."""
    owner = value.__qualname__.partition(".")[0]
    return not value.__module__.startswith("gpu_validation.averaging.") or owner in exported()


def test_stubs_export_what_training_scripts_use():
    assert {"PeriodicAveraging", "SimulatedWorkers", "Candidates", "Nesterov", "Gossip"} <= exported()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_parameter_has_an_entry_of_its_own(package):
    missing = []
    for name, value, _ in public():
        if name.partition(".")[0] == package and needs_entries(value):
            text = own_text_of_all(value)
            described = {*entries(text, "Parameters"), *entries(text, "Attributes")}
            missing += [f"{name}: {parameter}" for parameter in parameters(value) if parameter not in described]
    assert missing == []


@pytest.mark.parametrize("package", PACKAGES)
def test_entries_are_parameters_with_a_text_in_their_order(package):
    wrong = []
    for name, value, _ in public():
        described = entries(inspect.cleandoc(own_text(value)), "Parameters")
        if name.partition(".")[0] != package or not described:
            continue
        if inspect.isclass(value) and issubclass(value, BaseException | enum.Enum):
            continue
        taken = ["x"] * is_operator(value) + [*parameters(value, inherited=True)]
        wrong += [f"{name}: {entry}" for entry, text in described.items() if entry not in taken or not text]
        order = [entry for entry in taken if entry in described]
        wrong += [f"{name}: order"] if order != [entry for entry in described if entry in taken] else []
    assert wrong == []


def is_operator(value):
    """Whether the entry "x", what ``encode`` takes, belongs to it."""
    return inspect.isclass(value) and issubclass(value, Operator)


def own_text_of_all(value):
    """Its docstring; of a class those of its bases too, whose fields it has."""
    if inspect.isclass(value):
        return "\n\n".join(inspect.cleandoc(own_text(base)) for base in value.__mro__ if base is not object)
    return inspect.cleandoc(own_text(value))


def parameters(value, inherited=False):
    """What a caller gives it; nothing if an abstract method above says it already, or Python made the signature."""
    if inspect.isclass(value):
        made = dataclasses.is_dataclass(value) or "__init__" in vars(value)
        made = made and not getattr(value, "_is_protocol", False)
        if not made or issubclass(value, BaseException | enum.Enum):
            return []
    elif not inherited and overrides(value):
        return []
    try:
        given = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(p.kind, "") + p.name for p in given if p.name not in ("self", "cls") and p.name[0] != "_"]


def overrides(function):
    """Whether a method of a base class has the same name, and hence the description."""
    owner, _, name = getattr(function, "__qualname__", "").rpartition(".")
    cls = vars(sys.modules[function.__module__]).get(owner)
    return inspect.isclass(cls) and any(inspect.isfunction(unwrapped(vars(b).get(name))) for b in cls.__mro__[1:])


def test_the_checks_see_what_is_wrong():
    text = "Say it.\n\nParameters\n----------\na, b : int\n    Two.\nc\n\nNotes\n-----\nNo.\n"
    assert entries(text, "Parameters") == {"a, b": "int    Two.", "c": ""}
    with pytest.raises(docutils.utils.SystemMessage):
        parsed("An |x that never ends.\n")
