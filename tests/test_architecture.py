"""What keeps the house in order: imports one way, four packages in the wheel, a test for every operator and bound."""

import ast
import importlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

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


def absolute_imports(path):
    """Modules that a file names in absolute imports, wherever they stand."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_imports_upwards(package):
    allowed = BELOW[package] | {package}
    for path in sources(package):
        for name in absolute_imports(path):
            top = name.partition(".")[0]
            assert top not in PACKAGES or top in allowed, f"{path.relative_to(ROOT)} imports {name}"


def test_operators_do_not_see_their_judges():
    for path in sources("operators"):
        for name in absolute_imports(path):
            assert not name.startswith(JUDGES), f"{path.relative_to(ROOT)} imports {name}"


def test_bounds_never_name_torch_or_numba():
    for path in sources("bounds"):
        tops = {name.partition(".")[0] for name in absolute_imports(path)}
        assert not tops & {"torch", "numba"}, path.relative_to(ROOT)


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


@pytest.mark.parametrize("package", ["bounds", "ratedist"])
def test_no_file_imports_itself_in_a_circle(package):
    assert cycle_in(imports_inside(package)) == []


def test_a_circle_would_be_seen():
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]


VAGUE = {"at", "found", "heard", "here", "known", "made", "mine", "one", "own", "said", "seen", "told", "wanted"}


@pytest.mark.parametrize("package", ["bounds", "ratedist"])
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


@pytest.mark.parametrize("package", ["ratedist", "bounds"])
def test_light_packages_import_light(package):
    heavy = ("torch", "numba", "scipy.stats", "matplotlib", "sklearn")
    code = f"import sys, {package}; sys.exit(', '.join(m for m in {heavy!r} if m in sys.modules) or 0)"
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
    assert "ratedist/page/index.html" in names
    assert "gpu_validation/network/switch.c" in names  # compiled where it is used
    shipped = {name for name in names if name.endswith(".py")}
    assert shipped == {str(path.relative_to(ROOT)) for package in PACKAGES for path in sources(package)}


def test_every_operator_has_its_test_and_its_export():
    from operators import all_operators

    files = {p.stem for p in (ROOT / "operators/compressors").glob("*.py")} - {"__init__"}
    modules = {cls.__module__.rpartition(".")[2] for cls in all_operators().values()}
    assert files == modules, "a file without an exported operator, or an operator outside its folder"
    for module in modules:
        assert list((ROOT / "tests/operators").rglob(f"test_{module}.py")), f"no test for {module}"


@pytest.mark.parametrize("folder", ["limits", "theorems"])
def test_every_bound_file_exports_the_bound_of_its_name(folder):
    from bounds import Bound

    package = importlib.import_module(f"bounds.{folder}")
    for path in (ROOT / "bounds" / folder).glob("[!_]*.py"):
        text = path.read_text()
        if not re.search(r"^\w+ = Bound\(", text, re.MULTILINE):
            continue  # helpers shared by several bounds
        assert isinstance(getattr(package, path.stem, None), Bound), f"{folder}/{path.name} is not exported"


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
