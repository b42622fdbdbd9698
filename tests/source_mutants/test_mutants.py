"""The mutants can be made of today's code; the runner goes on where it stopped and clears no mutant by mistake."""

import ast
import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("source_mutants_run", HERE / "run.py")
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)


@pytest.mark.parametrize("mutant", run.MUTANTS, ids=lambda mutant: f"{mutant.path}:{mutant.original}")
def test_a_mutant_changes_the_program(mutant):
    text = (run.ROOT / mutant.path).read_text()
    assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(run.changed(text, mutant)))


def test_every_package_has_fifteen():
    assert Counter(mutant.path.partition("/")[0] for mutant in run.MUTANTS) == dict.fromkeys(
        ("bounds", "operators", "ratedist", "gpu_validation"), 15
    )
    assert len(set(run.MUTANTS)) == 60


def test_an_original_that_is_gone_is_refused():
    with pytest.raises(ValueError, match="once"):
        run.changed("x = 1", run.MUTANTS[0])


def test_the_nearest_tests_come_first():
    graph = {"a": set(), "b": {"a"}, "tests/test_near.py": {"a"}, "tests/test_far.py": {"b"}, "tests/help.py": {"a"}}
    assert run.calls("a.py", graph) == [(1, ["tests/test_near.py"]), (2, ["tests/test_far.py"])]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A repository of one module and two tests, one of which fails anyway."""
    root = tmp_path / "root"
    (root / "tests").mkdir(parents=True)
    (root / "m.py").write_text("def twice(x):\n    return 2 * x\n\n\ndef unseen(x):\n    return 1 + x\n")
    (root / "tests/test_m.py").write_text(
        "from m import twice\n\n\ndef test_twice():\n    assert twice(3) == 6\n\n\n"
        "def test_broken():\n    assert not 1\n"
    )
    (root / "tests/conftest.py").write_text('def pytest_addoption(parser):\n    parser.addoption("--tier")\n')
    mutants = run.Mutant("m.py", "2 * x", "3 * x"), run.Mutant("m.py", "1 + x", "1 - x")
    monkeypatch.setattr(run, "MUTANTS", mutants)
    monkeypatch.setattr(run, "copied", lambda _: root)
    monkeypatch.setattr(run.tiers, "imports", lambda: {"m": set(), "tests/test_m.py": {"m"}})
    return root, tmp_path / "record.jsonl"


def test_seers_and_survivors_are_recorded_and_the_run_resumes(small, monkeypatch):
    root, record = small
    text = (root / "m.py").read_text()
    assert run.main(str(record), "0") == 0
    assert run.main(str(record)) == 1
    first, second = map(json.loads, record.read_text().splitlines())
    assert (first["seen_by"], first["imports"]) == (["tests/test_m.py::test_twice"], 1)
    assert (second["seen_by"], second["imports"]) == ([], None)
    assert (root / "m.py").read_text() == text
    monkeypatch.setattr(run, "judged", None)  # nothing is run again
    assert run.main(str(record)) == 1


def test_the_runner_changes_no_file_of_the_working_tree(tmp_path):
    assert run.ROOT not in run.copied(str(tmp_path)).parents
    assert sys.executable
