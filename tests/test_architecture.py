"""What keeps the house in order: imports one way, four packages in the wheel, a test for every operator and bound."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from pathlib import Path

import pytest

from . import layers

ROOT = Path(__file__).parent.parent
PACKAGES = ("bounds", "operators", "ratedist", "gpu_validation")
BELOW = {
    "bounds": set(),
    "operators": {"bounds"},
    "ratedist": {"bounds", "operators"},
    "gpu_validation": {"bounds", "operators", "ratedist"},
}
JUDGES = ("bounds.limits", "bounds.theorems", "bounds.tau", "bounds.plan", "bounds.catalogue", "bounds.runtime")


def sources(package):
    return sorted((ROOT / package).rglob("*.py"))


@cache
def absolute_imports(path):
    """Modules that a file names in absolute imports, wherever they stand."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_imports_upwards(package):
    allowed = BELOW[package] | {package}
    for path in sources(package):
        for name in absolute_imports(path):
            top = name.partition(".")[0]
            assert top not in PACKAGES or top in allowed, f"{path.relative_to(ROOT)} imports {name}"


def test_gpu_validation_takes_of_the_calculator_what_contributing_says():
    taken = {
        name.partition(".")[2]
        for path in sources("gpu_validation")
        for name in absolute_imports(path)
        if name.startswith("ratedist.")
    }
    text = (ROOT / "CONTRIBUTING.md").read_text()
    others = {name for name in taken if name.startswith(("pilots", "interfaces.commands", "interfaces.exit_status"))}
    assert taken - others == {
        "solve",
        "cluster.codec",
        "cluster.codec.measure_codec",
        "drawing",
        *(f"drawing.{name}" for name in ("FAMILIES", "PALETTE", "colour", "family")),
        "plans.run",
        "plans.run.Rhythm",
    }
    stated = re.search(r"Of the calculator,\s+`gpu_validation` uses ([^.]*)\.", text)
    words = " ".join(stated[1].split())
    for taken_one in (
        "`solve`",
        "`measure_codec`",
        "record of a pilot",
        "rhythm",
        "command line with its exit statuses",
    ):
        assert taken_one in words
    assert "colours of families of operators" in words


def test_operators_do_not_see_their_judges():
    for path in sources("operators"):
        for name in absolute_imports(path):
            assert not name.startswith(JUDGES), f"{path.relative_to(ROOT)} imports {name}"


def test_bounds_never_name_torch_or_numba():
    for path in sources("bounds"):
        tops = {name.partition(".")[0] for name in absolute_imports(path)}
        assert not tops & {"torch", "numba"}, path.relative_to(ROOT)


@cache
def imports_inside(package):
    """Module -> the modules of the same package that it imports anywhere, inside functions too."""
    files = {module_name(path): path for path in sources(package)}
    graph = {}
    for name, path in files.items():
        home = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        targets = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom):
                continue
            base = home[: len(home) - node.level + 1] if node.level else []
            base = ".".join(base + (node.module.split(".") if node.module else []))
            targets |= {f"{base}.{a.name}" if f"{base}.{a.name}" in files else base for a in node.names}
        graph[name] = (targets & set(files)) - {name}
    return graph


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def cycle_in(graph):
    """The files that remain when those that import nothing that remains are taken away, again and again."""
    left = dict(graph)
    while free := [name for name, targets in left.items() if not targets & set(left)]:
        for name in free:
            del left[name]
    return sorted(left)


@pytest.mark.parametrize("package", ["bounds", "operators", "ratedist", "gpu_validation"])
def test_no_file_imports_itself_in_a_circle(package):
    assert cycle_in(imports_inside(package)) == []


def room_of(module):
    """The room of a module: the folder of its package in which it stands, however deep; ``laws`` has rooms itself."""
    parts = module.split(".")
    return ".".join(parts[: 3 if parts[:2] == ["operators", "laws"] else 2])


@pytest.mark.parametrize("package", PACKAGES)
def test_no_room_imports_itself_in_a_circle(package):
    rooms = {}
    for module, targets in imports_inside(package).items():
        rooms.setdefault(room_of(module), set()).update(map(room_of, targets))

    assert cycle_in({room: targets - {room, package} for room, targets in rooms.items()}) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_room_says_its_purpose_in_one_sentence(package):
    """A first line that names what is inside, no verb needed, and ends the sentence."""
    for init in sorted((ROOT / package).rglob("__init__.py")):
        purpose = (ast.get_docstring(ast.parse(init.read_text())) or "").split("\n\n")[0]
        assert re.fullmatch(r"[^\n]+[.?](  [^\n]+\.)?", purpose), f"{init.relative_to(ROOT)}: {purpose!r}"


def contract(container):
    """The layers that ``pyproject.toml`` states for a package, highest first, as sets of names."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (stated,) = (c["layers"] for c in contracts if c.get("containers") == [container])
    return [set(layer.split(" | ")) for layer in stated]


def test_the_averaging_has_six_layers_that_name_all_its_modules():
    prefix = "gpu_validation.averaging."
    modules = {
        module_name(path).removeprefix(prefix)
        for path in (ROOT / "gpu_validation/averaging").rglob("*.py")
        if path.name != "__init__.py"
    }
    stated = contract("gpu_validation.averaging")

    assert len(stated) <= 6
    assert len(modules) <= 22
    assert set.union(*stated) == modules


def test_gpu_validation_has_eight_layers_and_folders_of_a_dozen_modules():
    catalogues = {"studies", "workloads"}
    folders = {path.parent for path in sources("gpu_validation")} - {ROOT / "gpu_validation" / c for c in catalogues}

    assert len(contract("gpu_validation")) <= 8
    for folder in folders:
        assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= 12, folder


def test_contributing_shows_the_layers_that_the_imports_have():
    """``python -m tests.layers`` draws them again."""
    assert layers.BLOCK.search((ROOT / "CONTRIBUTING.md").read_text())[0] == layers.picture()


def test_a_circle_would_be_seen():
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]


@cache
def calls(path):
    """Names of the methods and functions that a file calls."""
    functions = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in functions}


def test_a_local_step_and_a_timed_synchronisation_are_written_once():
    """Real processes and simulated workers make the same steps because the same lines make them.

    A pilot steps a user's own model with a loss and batches that no workload has.
    """
    steps = [path.name for path in sources("gpu_validation") if "zero_grad" in calls(path)]
    timed = [path.name for path in sources("gpu_validation") if {"barrier", "perf_counter", "step"} <= calls(path)]

    assert sorted(steps) == ["local_steps.py", "own_training.py"]
    assert timed == ["training.py"]


def test_steps_that_are_no_local_ones_are_written_once_too():
    """Those of one model that all workers share; gradients by one pass of many runs, and of a user's own models."""
    shared = [path.name for path in sources("gpu_validation") if {"grad", "load", "loss"} <= calls(path)]
    batched = [path.name for path in sources("gpu_validation") if "vmap" in calls(path)]

    assert shared == ["shared_model.py"]
    assert sorted(batched) == ["ensemble.py", "simulated.py"]


VAGUE = {"at", "found", "heard", "here", "known", "made", "mine", "one", "own", "said", "seen", "told", "wanted"}


@pytest.mark.parametrize("package", ["bounds", "operators", "ratedist", "gpu_validation"])
def test_locals_say_what_they_are(package):
    """A name that could stand for anything is asked of no reader."""
    names = [
        f"{path.relative_to(ROOT)}: {function.name}: {node.id}"
        for path in sources(package)
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE
    ]
    assert names == []


def annotated(function):
    """Whether a function says the types of all its arguments and of what it returns."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    typed = all(a.annotation for a in named if a is not None and a.arg not in ("self", "cls"))
    return typed and (function.returns is not None or function.name == "__init__")


@pytest.mark.parametrize("package", PACKAGES)
def test_only_compiled_loops_go_without_types(package):
    """Mypy is told to let them pass by their modules; here it is seen that nothing else slips through."""
    for path in sources(package):
        ignored = {
            n for n, line in enumerate(path.read_text().splitlines(), 1) if "type: ignore[no-untyped-def]" in line
        }
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and not annotated(function) and function.lineno not in ignored:
                decorators = " ".join(map(ast.unparse, function.decorator_list))
                assert "jit" in decorators, f"{path.relative_to(ROOT)}: {function.name} has no types"


# what they check takes a browser, a server, an interpreted GPU, a guide's minutes or its processes
WITHOUT_A_QUICK_CHECK = {
    "compatibility/test_elastic_restart.py",
    "docs/test_site.py",
    "gpu_validation/averaging/test_two_shots_on_digits.py",
    "operators/ddp/test_hook_training.py",
    "operators/kernels/test_interpreted.py",
    "ratedist/interfaces/http/test_answers.py",
    "ratedist/interfaces/http/test_page.py",
    "ratedist/interfaces/http/test_pilot_page.py",
    "ratedist/interfaces/http/test_schemathesis.py",
    "test_installed_wheel.py",
    "test_judge_guide.py",
    "test_training_guides.py",
}


@pytest.mark.parametrize("folder", ["operators/kernels", "operators/tcdq"])
def test_loops_and_kernels_take_at_most_ten_positional_parameters(folder):
    """Triton's constants are passed by name: ``tl.constexpr``."""
    wrong = {}
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                given = [*node.args.posonlyargs, *node.args.args]
                named = [p for p in given if p.annotation and "constexpr" in ast.unparse(p.annotation)]
                if len(given) - len(named) > 10:
                    wrong[f"{path.name}:{node.name}"] = len(given) - len(named)
    assert not wrong, f"group them into tuples: {wrong}"


def is_quick(test):
    """Whether a test function runs for some argument in every tier."""
    return not any(ast.unparse(d).startswith(("pytest.mark.slow", "pytest.mark.thorough")) for d in test.decorator_list)


def test_make_test_has_a_quick_check_of_everything_that_ci_checks():
    without = set()
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text())
        tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
        marks = [ast.unparse(node.value) for node in tree.body if ast.unparse(node).startswith("pytestmark")]
        if re.search(r"mark\.(slow|thorough)", " ".join(marks)) or not any(map(is_quick, tests)):
            without.add(str(path.relative_to(ROOT / "tests")))

    assert without == WITHOUT_A_QUICK_CHECK


@pytest.mark.parametrize("package", ["ratedist", "bounds"])
def test_light_packages_import_light(package):
    heavy = ("torch", "numba", "scipy.stats", "matplotlib", "sklearn")
    code = f"import sys, {package}; sys.exit(', '.join(m for m in {heavy!r} if m in sys.modules) or 0)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)

    assert result.returncode == 0, result.stderr


def test_training_loads_no_theory():
    """Every rank pays for its imports: sympy, statistics and the tables of reports come when they are asked for."""
    heavy = (
        "sympy",
        "scipy.stats",
        "scipy.optimize",
        "rich",
        "matplotlib",
        "sklearn",
        "bounds.theorems",
        "ratedist.calls",
    )
    code = (
        "import sys; from gpu_validation import PeriodicAveraging, SimulatedWorkers, join_torchrun, run_ranks; "
        f"sys.exit(', '.join(m for m in {heavy!r} if m in sys.modules) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)

    assert result.returncode == 0, result.stderr


def test_wheel_holds_exactly_the_four_packages(tmp_path):
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()

    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == set(PACKAGES)
    for package in PACKAGES:
        assert f"{package}/py.typed" in names
    assert "ratedist/interfaces/page/index.html" in names
    assert "gpu_validation/network/switch.c" in names  # compiled where it is used
    shipped = {name for name in names if name.endswith(".py")}
    assert shipped == {str(path.relative_to(ROOT)) for package in PACKAGES for path in sources(package)}


def test_every_operator_has_its_test_and_its_export():
    from operators import all_operators

    files = {p.stem for p in (ROOT / "operators/compressors").glob("*.py")} - {"__init__"}
    homes = {cls.__module__ for cls in all_operators().values()}
    modules = {module.rpartition(".")[2] for module in homes}
    combined = {module.rpartition(".")[2] for module in homes if module.startswith("operators.combinators.")}
    assert files == modules - combined, "a file without an exported operator, or an operator outside its folder"
    for module in modules:
        assert list((ROOT / "tests/operators").rglob(f"test_{module}.py")), f"no test for {module}"


@pytest.mark.parametrize("folder", ["limits", "theorems"])
def test_every_bound_is_exported_by_its_name(folder):
    from bounds import Bound

    package = importlib.import_module(f"bounds.{folder}")
    for path in (ROOT / "bounds" / folder).glob("[!_]*.py"):
        module = importlib.import_module(f"bounds.{folder}.{path.stem}")
        body = ast.parse(path.read_text()).body[1:]
        named = [node.targets[0].id for node in body if isinstance(node, ast.Assign) and hasattr(node.targets[0], "id")]
        made = [name for name in named if isinstance(vars(module)[name], Bound)]
        assert made, f"{folder}/{path.name} has no bound"
        for name in made:
            bound = vars(module)[name]
            assert bound.name == name
            assert getattr(package, name, None) is bound, f"{folder}/{path.name}: {name} is not exported"


def test_every_bound_has_an_independent_example():
    from bounds import all_bounds

    for bound in all_bounds().values():
        assert bound.examples, bound.name
        assert all(example.source for example in bound.examples), bound.name


def test_public_names_are_the_intended_ones():
    import bounds
    import operators

    assert {
        *("AssumptionViolated", "Bound", "Interval", "NotCertifiable", "Reference", "Side", "Status"),
        *("Unbiased", "Contractive", "StrictlyContractive", "NoClaim", "all_bounds", "limits", "theorems", "tau"),
    } <= set(dir(bounds))
    assert {
        *("Key", "Message", "Operator", "Size", "CorruptMessage", "Identity", "TopK", "QSGD", "ScaledSign"),
        *("SparseDithering", "RandomisedSparseDithering", "all_operators", "parse"),
    } <= set(dir(operators))
    for module in (bounds, operators):
        for name in module.__all__:
            assert getattr(module, name) is not None


def test_nothing_in_the_tree_speaks_of_a_machine_path():
    for package in (*PACKAGES, "tests", "docs"):
        for path in sources(package):
            assert not re.search(r"[\"'](/home|/root|/work)/", path.read_text()), path
