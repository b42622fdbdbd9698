"""The tiers: every case runs in one of them, slower ones nearest to the change first, within a budget."""

import re
import subprocess
import sys
from itertools import pairwise

import pytest
import tiers


@pytest.mark.parametrize("test", tiers.NIGHTLY)
def test_the_nightly_table_names_tests_that_exist(test):
    file, _, name = test.partition("::")
    text = (tiers.ROOT / file).read_text()
    assert not name or re.search(rf"^def {name}", text, re.MULTILINE)


def test_a_case_that_is_kept_stays_in_the_full_tier():
    test = next(name for name, kept in tiers.NIGHTLY.items() if kept == "outer")
    assert tiers.is_nightly(f"{test}[whole models]")
    assert not tiers.is_nightly(f"{test}[outer]")
    assert not tiers.is_nightly("tests/test_tiers.py::test_a_case_that_is_kept_stays_in_the_full_tier")


def test_every_file_with_a_duration_exists():
    assert {name.partition("::")[0] for name in tiers.durations()} <= {
        file.relative_to(tiers.ROOT).as_posix() for file in (tiers.ROOT / "tests").rglob("test_*.py")
    }
    assert min(tiers.durations().values()) >= tiers.FAST_S


def test_a_change_reaches_what_imports_it_through_lazy_packages_too():
    near = tiers.distances({"operators/compressors/qsgd.py"}, tiers.imports())
    assert near["operators.compressors.qsgd"] == 0
    assert near["tests/operators/compressors/test_qsgd.py"] == 1
    assert near["tests/gpu_validation/local_sgd/test_overlapped.py"] >= 1
    assert "tests/bounds/special/test_golomb.py" not in near
    assert "bounds.claims" not in near


def test_distances_count_imports():
    graph = {"a": set(), "b": {"a"}, "c": {"b", "a"}, "d": {"c"}, "e": set()}
    assert tiers.distances({"a.py", "README.md"}, graph) == {"a": 0, "b": 1, "c": 1, "d": 2}


CASES = ["t/near.py::fast", "t/near.py::slow", "t/near.py::slower", "t/far.py::slow", "t/other.py::slow"]
SECONDS = {"t/near.py::slow": 3.0, "t/near.py::slower": 8.0, "t/far.py::slow": 2.0, "t/other.py::slow": 1.0}


NEAR, NEXT, FAR = "t/near.py::slow", "t/near.py::slower", "t/far.py::slow"


@pytest.mark.parametrize(
    ("budget", "kept"),
    [(0.0, []), (3.0, [NEAR]), (5.0, [NEAR, FAR]), (11.0, [NEAR, NEXT]), (99.0, [NEAR, NEXT, FAR])],
)
def test_the_quick_tier_takes_the_nearest_slower_cases_within_the_budget(monkeypatch, budget, kept):
    monkeypatch.setattr(tiers, "durations", lambda: SECONDS)
    monkeypatch.setattr(tiers, "changed", lambda: {"m.py"})
    monkeypatch.setattr(tiers, "imports", lambda: {"m": set(), "t/near.py": {"m"}, "n": {"m"}, "t/far.py": {"n"}})
    monkeypatch.setattr(tiers, "BUDGET_S", budget)
    assert tiers.left_to_full(CASES) == SECONDS.keys() - set(kept)


def test_without_history_only_fast_cases_are_quick(monkeypatch):
    monkeypatch.setattr(tiers, "durations", lambda: SECONDS)
    monkeypatch.setattr(tiers, "changed", set)
    assert tiers.left_to_full(CASES) == set(SECONDS)


@pytest.mark.thorough
def test_quick_and_rest_are_the_full_tier():
    counted = []
    for tier in (["--tier", "quick"], ["--tier", "rest"], []):
        command = ["-m", "not slow", "--collect-only", "tests/operators/tcdq", *tier]
        found = subprocess.run(
            [sys.executable, "-m", "pytest", *command], cwd=tiers.ROOT, capture_output=True, text=True
        )
        counted.append({line for line in found.stdout.splitlines() if "::" in line})
    quick, rest, full = counted
    assert quick
    assert rest
    assert quick.isdisjoint(rest)
    assert quick | rest == full


def test_measured_cases_become_a_table(tmp_path, monkeypatch):
    monkeypatch.setattr(tiers, "DURATIONS", tmp_path / "durations.json")
    (tmp_path / "times").write_text('["t/b.py::x[1]", 0.5, 1.0]\n["t/a.py::y", 2.04, 3.0]\n["t/a.py::z", 0.1, 9.0]\n')
    tiers.main(str(tmp_path / "times"))
    found = tiers.durations()
    assert found == {"t/a.py::y": 2.0, "t/b.py::x[1]": 0.5}
    assert all(one <= other for one, other in pairwise(found))
