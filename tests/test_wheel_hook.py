"""The wheel takes code that was compiled for levels of x86-64, and no other."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CODE = "operators/compilation/code"


def built(root, version):
    """What the hook adds to a build."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    build_data = {"force_include": {}, "pure_python": True}
    module.CompiledLoops(str(root), {}, None, None, "", "wheel").initialize(version, build_data)
    return build_data


@pytest.fixture
def tree(tmp_path):
    (tmp_path / CODE).mkdir(parents=True)
    for name in ("loop-0.x86-64-v3.bin", "loop-0.x86-64-v4.bin", "loop-0.znver5-e100bd36.bin"):
        (tmp_path / CODE / name).write_bytes(b"")
    return tmp_path


def test_code_for_levels_makes_a_wheel_for_this_system(tree):
    data = built(tree, "standard")

    assert sorted(data["force_include"].values()) == [f"{CODE}/loop-0.x86-64-v{n}.bin" for n in (3, 4)]
    assert data["infer_tag"]
    assert not data["pure_python"]


def test_an_editable_installation_stays_pure(tree):
    assert built(tree, "editable") == {"force_include": {}, "pure_python": True}


def test_a_tree_without_such_code_stays_pure(tree):
    for file in (tree / CODE).glob("*.x86-64-v*.bin"):
        file.unlink()

    assert built(tree, "standard") == {"force_include": {}, "pure_python": True}
