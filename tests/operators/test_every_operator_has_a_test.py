"""Adding an operator means one file, one export line and one test of the same name."""

import importlib
import pkgutil
from inspect import isabstract
from pathlib import Path

import pytest

import operators
from operators import Aggregate, Feedback, Operator, all_aggregates, all_feedbacks, all_operators

HERE = Path(__file__).parent
FOLDERS = {"compressors": Operator, "feedback": Feedback, "aggregate": Aggregate, "combinators": Operator}
NOT_IN_THE_CATALOGUE = {"memoryless", "joint", "scope"}  # what wraps an operator without being one to choose
MODULES = [
    (folder, module.name)
    for folder in FOLDERS
    for module in pkgutil.iter_modules([str(Path(operators.__file__).parent / folder)])
    if module.name != folder and module.name not in NOT_IN_THE_CATALOGUE
]


@pytest.mark.parametrize(("folder", "module"), MODULES)
def test_every_module_has_a_test_of_its_name(folder, module):
    assert (HERE / folder / f"test_{module}.py").is_file()


@pytest.mark.parametrize(("folder", "module"), MODULES)
def test_every_final_class_of_a_module_is_exported_and_has_examples(folder, module):
    base = FOLDERS[folder]
    namespace = vars(importlib.import_module(f"operators.{folder}.{module}"))
    own = [v for v in namespace.values() if isinstance(v, type) and v.__module__ == f"operators.{folder}.{module}"]
    found = [v for v in own if issubclass(v, base) and not isabstract(v)]
    assert found, "a module of this folder holds classes of its kind"
    for cls in found:
        assert getattr(operators, cls.__name__, None) is cls
        assert cls.examples()


def test_catalogue_holds_every_module():
    for folders, catalogue in (
        ({"compressors", "combinators"}, all_operators()),
        ({"feedback"}, all_feedbacks()),
        ({"aggregate"}, all_aggregates()),
    ):
        modules = {f"operators.{folder}.{name}" for folder, name in MODULES if folder in folders}
        assert {cls.__module__ for cls in catalogue.values()} == modules


def test_public_names_are_the_exported_ones():
    stub = Path(operators.__file__).with_suffix(".pyi").read_text()
    names = {line.split(" as ")[-1] for line in stub.splitlines() if " as " in line}
    assert set(operators.__all__) == names
