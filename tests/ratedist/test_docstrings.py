"""Every example in a docstring of the calculator runs and prints what it shows."""

import doctest
import importlib
import pkgutil

import pytest

import ratedist

MODULES = [
    m.name for m in pkgutil.walk_packages(ratedist.__path__, "ratedist.") if m.name not in ("ratedist.__main__",)
]
WITH_EXAMPLES = {
    *(f"ratedist.calls.{name}" for name in ("bits", "solve", "certify", "runtime", "error", "tau", "plan", "check")),
    *(f"ratedist.calls.{name}" for name in ("gap", "operators")),
    "ratedist.cluster.cluster",
    "ratedist.cluster.codec",
    "ratedist.cluster.compressors",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_show(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted or name not in WITH_EXAMPLES
