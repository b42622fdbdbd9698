"""The tiers: every case runs in one of them, slower ones nearest to the change first, within a budget."""

import re
import subprocess
import sys
from collections import Counter
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
    assert near["tests/gpu_validation/averaging/test_overlapped.py"] >= 1
    assert "tests/bounds/special/test_golomb.py" not in near
    assert "bounds.claims" not in near


def test_a_change_reaches_what_finds_it_by_name_and_what_reads_it_through_files_that_tests_share():
    theorem, rounding = ({f"{name}.py"} for name in ("bounds/theorems/local_sgd", "operators/compressors/qsgd"))
    assert tiers.distances(theorem, tiers.imports())["tests/bounds/test_values.py"] <= 3
    assert "tests/operators/test_golden_payloads.py" in tiers.distances(rounding, tiers.imports())
    assert tiers.distances({"tests/bounds/values.py"}, tiers.imports())["tests/bounds/test_values.py"] == 1


def test_every_module_with_code_is_reached_by_a_test():
    graph = tiers.imports()
    reached = [name for name in graph if "/test_" in name]
    for name in reached:  # it grows
        reached += sorted(graph.get(name, set()) - set(reached))
    modules = {name for name in graph if (tiers.ROOT / (name.replace(".", "/") + ".py")).exists()}  # no folders
    assert {name for name in modules - set(reached) if not name.endswith("__main__")} == set()


def test_names_used_as_attributes_of_a_module_count():
    text = "import ratedist as rd\n\nrd.plan(1)\nimport operators\noperators.QSGD\n"
    assert tiers.named_in(text) == {"ratedist", "ratedist.plan", "operators", "operators.QSGD"}


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
    assert tiers.selected("quick", dict.fromkeys(CASES, "")) == {"t/near.py::fast", *kept}


def test_without_history_only_fast_cases_are_quick(monkeypatch):
    monkeypatch.setattr(tiers, "durations", lambda: SECONDS)
    monkeypatch.setattr(tiers, "changed", set)
    assert tiers.selected("quick", dict.fromkeys(CASES, "")) == {"t/near.py::fast"}


def test_a_change_of_everything_keeps_the_budget(monkeypatch):
    monkeypatch.setattr(tiers, "changed", lambda: {f"{module.replace('.', '/')}.py" for module in tiers.imports()})
    seconds = tiers.durations()
    slower = [case for case in seconds if seconds[case] > tiers.FAST_S]
    kept = tiers.selected("quick", dict.fromkeys(slower, ""))
    assert 0.9 * tiers.BUDGET_S < sum(seconds[case] for case in kept) <= tiers.BUDGET_S


def test_a_draw_keeps_one_case_of_every_test_and_its_budget():
    seconds = {f"t.py::{test}[{i}]": cost for test, cost in (("a", 0.3), ("b", 1.5), ("c", 9.0)) for i in range(9)}
    for seed in range(20):
        kept = Counter(case.partition("[")[0][-1] for case in tiers.drawn(list(seconds), seconds, str(seed)))
        assert kept == {"a": 3, "b": 1, "c": 1}


def test_draws_of_some_commits_are_everything_and_the_same_commit_draws_alike():
    seconds = {f"t.py::a[{i}]": 0.5 for i in range(12)}
    draws = [tiers.drawn(list(seconds), seconds, f"commit {i}") for i in range(40)]
    assert set().union(*draws) == seconds.keys()
    assert draws[7] == tiers.drawn(list(reversed(seconds)), seconds, "commit 7")


def test_tiers_divide_all_cases(monkeypatch):
    seconds = {f"t.py::a[{i}]": 1.5 for i in range(5)}
    monkeypatch.setattr(tiers, "durations", lambda: seconds)
    monkeypatch.setattr(tiers, "changed", set)
    cases = {**dict.fromkeys((*seconds, "t.py::fast"), ""), "t.py::sweep": "slow", "tests/docs/s.py::site": "slow"}
    quick, rest, full, nightly = (tiers.selected(tier, cases) for tier in ("quick", "rest", "full", "nightly"))
    assert quick == {"t.py::fast"}
    assert "tests/docs/s.py::site" in rest
    assert "t.py::sweep" in nightly
    assert (len(rest), len(nightly)) == (2, 5)
    assert quick | rest == full
    assert full | nightly == cases.keys()
    assert not quick & rest | full & nightly


def test_of_thorough_cases_the_commit_draws_a_few(monkeypatch):
    monkeypatch.setattr(tiers, "durations", dict)
    monkeypatch.setattr(tiers, "changed", set)
    cases = {f"t.py::a[{i}]": "thorough" if i % 4 else "" for i in range(400)}
    quick, full = (tiers.selected(tier, cases) for tier in ("quick", "full"))
    assert quick == {case for case, mark in cases.items() if not mark}
    assert len(full - quick) == pytest.approx(tiers.DRAWN_S / tiers.FAST_S * 2, abs=1)


def test_files_left_out_of_the_rest_have_nothing_of_it():
    assert tiers.may_have_rest(tiers.ROOT / "tests/docs/test_site.py")
    assert tiers.may_have_rest(tiers.ROOT / next(iter(tiers.durations())).partition("::")[0])
    assert tiers.may_have_rest(tiers.ROOT / "tests/bounds/runtime/test_law.py")  # marked every(3)
    assert not tiers.may_have_rest(tiers.ROOT / "tests/bounds/special/test_no_such_file.py")


@pytest.mark.thorough
def test_quick_and_rest_are_the_full_tier():
    counted = []
    for tier in ("quick", "rest", "full"):
        command = ["--collect-only", "tests/operators/tcdq", "--tier", tier]
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
    monkeypatch.setattr(tiers, "ROOT", tmp_path)
    (tmp_path / "t").mkdir()
    (tmp_path / "t/a.py").touch()
    tiers.DURATIONS.write_text('{"t/a.py": {"z": 3.0, "w": 4.0}, "t/gone.py": {"v": 5.0}}')
    (tmp_path / "times").write_text(
        '["t/b.py::x[1]", 0.5, 1.0]\n["t/a.py::y", 2.04, 3.0]\n["t/a.py::z", 0.1, 9.0]\n["t/a.py::u", 50.0, 0.05]\n'
    )
    tiers.main(str(tmp_path / "times"))
    found = tiers.durations()
    assert found == {"t/a.py::w": 4.0, "t/a.py::y": 2.0, "t/b.py::x[1]": 0.5}
    assert all(one <= other for one, other in pairwise(found))


def test_processor_seconds_are_those_of_all_processes_below():
    spin = "import time; end = time.process_time() + {}\nwhile time.process_time() < end: pass"
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin.format(0.5)!r}])"
    before = tiers.processor_seconds()
    subprocess.run([sys.executable, "-c", inner], check=True)
    with subprocess.Popen([sys.executable, "-c", spin.format(0.5) + "\ninput()"], stdin=subprocess.PIPE) as running:
        while tiers.processor_seconds(running.pid) < 0.4:
            pass
        assert tiers.processor_seconds() - before > 0.8
        running.communicate(b"\n")
