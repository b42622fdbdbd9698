"""The catalogue finds every exported Bound under its own name, and every file of limits exports one."""

import importlib
from pathlib import Path

import pytest

import bounds
from bounds import all_bounds, catalogue, limits, theorems


def test_names_are_sorted_and_equal_the_bounds_own():
    found = all_bounds()
    assert list(found) == sorted(found)
    assert all(name == bound.name for name, bound in found.items())


@pytest.mark.parametrize("package", [limits, theorems])
def test_every_exported_bound_is_found(package):
    exported = {name for name in dir(package) if isinstance(getattr(package, name), bounds.Bound)}
    assert exported
    assert exported <= set(all_bounds())


def test_every_limit_that_a_file_makes_is_exported():
    folder = Path(limits.__file__).parent
    files = [importlib.import_module(f"bounds.limits.{path.stem}") for path in folder.glob("[!_]*.py")]
    made = {value.name for file in files for value in vars(file).values() if isinstance(value, bounds.Bound)}
    assert made == {name for name, value in vars(limits).items() if isinstance(value, bounds.Bound)}


def test_a_bound_exported_under_another_name_is_refused(monkeypatch):
    monkeypatch.setattr(limits, "alias", limits.worst_case_bits, raising=False)
    with pytest.raises(ValueError, match="alias"):
        catalogue.all_bounds.__wrapped__()
