"""A stamp changes with everything that machine code is made from, in whatever file it stands, and with nothing else."""

import importlib
import json
import subprocess
import sys
import textwrap
import types

import pytest

from operators.compilation.stamp import stamp

LOOP = """
    import numba
    import numpy as np
    from . import tables
    from .callee import helper

    STEP = 3
    WEIGHTS = np.array([1.0, 2.0])

    def loop(x):
        total = 0.0
        for i in range(x.size):
            total += helper(x[i]) * STEP + tables.FACTOR + WEIGHTS[0]
        return total
"""
CALLEE = """
    from operators.compilation import jit

    @jit
    def helper(v):
        return inner(v) + 1

    @jit(inline="always")
    def inner(v):
        return v * 2
"""
TABLES = "FACTOR = 5"


def stamped(folder, options=None, **files):
    """The stamp of the loop in a package of these files, imported anew."""
    package = folder / "loops"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text("")
    for name, text in {"loop": LOOP, "callee": CALLEE, "tables": TABLES, **files}.items():
        (package / f"{name}.py").write_text(textwrap.dedent(text))
    for name in [name for name in sys.modules if name.partition(".")[0] == "loops"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    return stamp(importlib.import_module("loops.loop").loop, options or {})


@pytest.fixture(autouse=True)
def _path(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files change within a second
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "loops"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    "changed",
    [
        {"loop": LOOP.replace("total = 0.0", "total = 1.0")},
        {"loop": LOOP.replace("STEP = 3", "STEP = 4")},
        {"loop": LOOP.replace("1.0, 2.0", "1.0, 2.5")},
        {"loop": LOOP.replace("* STEP +", "- STEP +")},
        {"tables": "FACTOR = 6"},
        {"callee": CALLEE.replace("inner(v) + 1", "inner(v) + 2")},
        {"callee": CALLEE.replace("v * 2", "v * 3")},
        {"callee": CALLEE.replace('"always"', '"never"')},
        {"options": {"error_model": "numpy"}},
    ],
)
def test_a_stamp_changes_with_what_the_code_is_made_from(tmp_path, changed):
    assert stamped(tmp_path) != stamped(tmp_path, **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"loop": LOOP.replace("    STEP = 3", "    # a comment\n\n    UNUSED = 7\n    STEP = 3")},
        {"tables": "OTHER = 1\nFACTOR = 5"},
        {"callee": CALLEE + "\n    def unused():\n        return 3\n"},
    ],
)
def test_a_stamp_stays_when_something_else_changes(tmp_path, changed):
    assert stamped(tmp_path) == stamped(tmp_path, **changed)


@pytest.mark.parametrize("imported", ["from operators.elsewhere import helper", "from operators import elsewhere"])
def test_a_loop_of_another_package_changes_with_the_loops_that_it_calls(tmp_path, monkeypatch, imported):
    import operators

    loop = LOOP.replace("from .callee import helper", imported)
    loop = loop.replace("helper(x[i])", "elsewhere.helper(x[i])") if imported.endswith("elsewhere") else loop

    def with_callee(text):
        module = types.ModuleType("operators.elsewhere")
        exec(textwrap.dedent(text), vars(module))
        monkeypatch.setitem(sys.modules, "operators.elsewhere", module)
        monkeypatch.setattr(operators, "elsewhere", module, raising=False)
        return stamped(tmp_path, loop=loop)

    assert with_callee(CALLEE) == with_callee(CALLEE + "\n    def unused():\n        return 3\n")
    assert with_callee(CALLEE) != with_callee(CALLEE.replace("v * 2", "v * 3"))


def test_a_loop_that_calls_itself_has_a_stamp(tmp_path):
    again = CALLEE.replace("return v * 2", "return v * 2 if v < 9 else inner(v / 2)")

    assert stamped(tmp_path, callee=again) != stamped(tmp_path)


RULES = """
    import operator
    from numba.core import types
    from numba.core.datamodel import models
    from numba.extending import intrinsic, lower_builtin, register_model

    class Pair(types.Type):
        rules = ()

    pair = Pair("pair")

    @register_model(Pair)
    class Model(models.PrimitiveModel):
        WIDTH = 2

    def define(symbol, emit):
        def lower(context, builder, sig, args):
            return emit(builder, *args)

        lower_builtin(symbol, Pair, Pair)(lower)
        Pair.rules += (symbol.__name__, lower)

    Pair.rules += (Model,)
    define(operator.add, lambda builder, a, b: builder.add(a, b))

    @intrinsic
    def helper(typingctx, value):
        return pair(value), lambda context, builder, sig, args: args[0]
"""


@pytest.mark.parametrize(
    "changed",
    [
        RULES.replace("builder.add(a", "builder.sub(a"),
        RULES.replace("emit(builder, *args)", "emit(builder, args[1], args[0])"),
        RULES.replace("operator.add", "operator.mul"),
        RULES.replace("WIDTH = 2", "WIDTH = 4"),
    ],
)
def test_a_stamp_changes_with_what_the_compiler_is_taught_of_a_type(tmp_path, changed):
    """The operator is written into the loop as such: nothing in it names the rule."""
    assert stamped(tmp_path, callee=RULES) == stamped(tmp_path, callee=RULES)
    assert stamped(tmp_path, callee=RULES) != stamped(tmp_path, callee=changed)


STAMPS = """
import importlib, json, pkgutil, sys
import operators
from numba.core.dispatcher import Dispatcher
from operators.compilation.stamp import stamp

found = {}
for _, name, _ in pkgutil.walk_packages(operators.__path__, "operators."):
    if not name.endswith("__main__"):
        for entry, value in vars(importlib.import_module(name)).items():
            if isinstance(value, Dispatcher) and value.py_func.__module__ == name:
                found[f"{name}.{entry}"] = stamp(value.py_func, {}).hex()
print(json.dumps(found))
"""


def stamps(*flags):
    command = [sys.executable, *flags, "-c", STAMPS]
    return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=200, check=True).stdout)


def test_no_stamp_depends_on_assertions_which_pytest_rewrites_and_python_o_leaves_out():
    """Otherwise pytest and plain Python would each recompile what the other has kept."""
    found = stamps()

    assert len(found) > 200
    assert stamps("-O") == found
