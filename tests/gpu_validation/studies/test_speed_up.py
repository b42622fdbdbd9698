"""The fair study: equal effort, choices by the tuning seeds alone, paired ratios, real processes that agree."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from gpu_validation.judging.verdict import Verdict
from gpu_validation.studies.speed_up import (
    CONSTANT,
    DECAYED,
    DIGITS,
    PRESET,
    SHARDS,
    TEXT,
    SpeedUp,
    at_one_rate,
    cells,
    choose,
    race,
    speedup,
    trials,
)
from gpu_validation.workloads import SmallNetwork

pytestmark = pytest.mark.timeout(120)

TINY = SpeedUp(
    courses=(("digits", replace(DIGITS, targets=(2.38, 2.3, 0.1), budget_s=0.6, rates=(0.1, 0.4))),),
    cells=(("digits", 2, False),),
    points=2,
    tuning=(0,),
    seeds=(10, 11),
    looks=12,
    checked_s=0.4,
    timed=(),
)


def test_everything_is_fixed_beforehand_and_seeds_are_apart():
    assert [(name, m) for name, m, _ in PRESET.cells][:3] == [("digits", 2), ("digits", 4), ("digits", 8)]
    assert not set(PRESET.tuning) & set(PRESET.seeds)
    assert len(PRESET.seeds) >= 10
    units = PRESET.units()
    assert len(set(units)) == len(units)
    for _, course in PRESET.courses:
        assert list(course.targets) == sorted(course.targets, reverse=True)
        assert course.targets[-1] > course.floor


def test_every_method_is_tried_as_often_and_at_the_same_rates():
    found = trials(DIGITS, 10)
    rates = {method: [race(DIGITS, method, trial, 0).workload.eta for trial in found] for method in CONSTANT}

    assert len({tuple(own) for own in rates.values()}) == 1
    assert len(set(rates["gamma"])) == 10
    assert trials(DIGITS, 4) == found[:4]
    assert {trial.tau_0 for trial in found} <= set(range(5, 201))


def test_rates_fall_where_the_rule_looks_at_them_and_nowhere_else():
    (trial,) = trials(DIGITS, 1)
    course = dict(PRESET.courses)["decayed"]

    assert [bool(race(course, method, trial, 0).decay) for method in (*CONSTANT, *DECAYED)] == [False] * 6 + [True] * 4
    rules = {method: race(course, method, trial, 0).schedule for method in ("published", "derived")}
    assert [(rule.eta_exponent, rule.gamma, rule.cap) for rule in rules.values()] == [(0.5, 0.5, 100), (1.5, 0.5, 100)]


def test_floors_are_those_of_the_problems():
    workload = DIGITS.workload
    model = workload.model()
    search = torch.optim.LBFGS(model.parameters(), max_iter=120, history_size=20, line_search_fn="strong_wolfe")

    def again():
        search.zero_grad()
        value = workload.objective(model)
        value.backward()
        return value

    search.step(again)
    assert float(again().detach()) == pytest.approx(DIGITS.floor, abs=2e-3)
    assert TEXT.workload.source.floor() == pytest.approx(TEXT.floor, abs=1e-3)
    assert SHARDS.workload.workers == 4


# -- records made by hand ----------------------------------------------------------------------------------------
STUDY = replace(TINY, points=3, tuning=(0, 1, 2), seeds=(10, 11, 12))


def one(method, trial, times, last=0.5):
    return {"method": method, "trial": trial, "times": times, "last": last, "diverged": False, "took_s": 9.0,
            "accuracy": 0.9, "seconds": [0.0, 9.0], "losses": [2.4, last], "taus": [1, 1]}  # fmt: skip


def unit(kind, seed, scale=1.0):
    """Trial 1 is the best one of every method; its times are (8, 4, 2, ...) over the method's rank."""
    races = []
    (empty,) = cells(STUDY, [{"unit": "tune:digits:2:0", "races": []}])
    for rank, method in enumerate(empty.methods, start=1):
        for trial, slow in ((0, 2.0), (1, 1.0), (2, 3.0)):
            late = None if trial == 2 else 8 * slow * scale / rank
            races.append(one(method, trial, [slow / rank, late, None], last=slow))
    return {"unit": f"{kind}:digits:2:{seed}", "m": 2, "races": races}


def test_tuning_chooses_the_smallest_median_for_each_target():
    (cell,) = cells(STUDY, [unit("tune", seed) for seed in STUDY.tuning])
    choice = choose(cell)

    assert set(map(tuple, choice.trials.values())) == {(1, 1, 1)}  # where none arrives, the lowest last loss
    assert choice.strongest == ["tau = 100"] * 2 + choice.strongest[2:]
    assert choice.reached == 2
    assert choice.seconds["tau = 5"][1] == 4.0


def test_ratios_are_paired_by_seed_and_the_report_changes_no_choice():
    reported = [unit("report", seed, scale) for seed, scale in zip(STUDY.seeds, (1.0, 1.5, 2.0), strict=True)]
    reported[1]["races"][16]["times"][1] = None  # gamma, trial 1: tau = 1, 5, 20, 100, basic have three each
    (cell,) = cells(STUDY, [*(unit("tune", seed) for seed in STUDY.tuning), *reported])
    choice = choose(cell)

    assert reported[1]["races"][16]["method"] == "gamma"
    assert speedup(cell, choice, "tau = 20", 0).value == pytest.approx(0.6 * 3)  # the baseline's budget is .6 s
    assert speedup(cell, choice, "gamma", 1).interval[0] == 0.0


def test_one_common_rate_compares_equal_trials():
    (cell,) = cells(STUDY, [unit("tune", seed) for seed in STUDY.tuning])
    found = at_one_rate(cell, "tau = 20", 1)

    assert len(found) == 2  # trial 2 does not arrive
    assert [ratio for _, ratio in found] == pytest.approx([3.0, 3.0])


# -- a tiny run --------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def records():
    found = []
    for name in TINY.units():
        found.append({"unit": name, **TINY.with_records(found, None).measure(name)})
    return found


@pytest.mark.thorough
def test_real_processes_repeat_the_rehearsal(records):
    (row,) = [row for row in TINY.judge(records) if row.operator == "real processes"]

    assert row.verdict is Verdict.HOLDS
    assert row.measured == row.bound > 50


def test_the_tiny_study_is_whole(records):
    assert len(records) == len(TINY.units()) == 4
    tuned, first = records[0]["races"], records[1]["races"]
    assert len(tuned) == 2 * 6  # points, methods
    assert all(len(r["times"]) == 3 and r["times"][2] is None for r in tuned)
    assert all(np.isfinite(r["losses"]).all() for r in first)
    rows = TINY.judge(records)
    assert not [row for row in rows if row.verdict is Verdict.VIOLATED]
    assert any(row.operator == "strongest fixed" for row in rows)
    assert all(math.isfinite(row.measured) for row in rows)
    for figure in TINY.figures(records):
        figure.draw()
        assert "D/Y = 4 is imposed" in figure.caption


def test_a_wrong_number_would_be_found(records):
    wrong = [{**r, "equal": r["equal"] - 1} if r["unit"].startswith("same") else r for r in records]

    assert [row.verdict for row in TINY.judge(wrong) if row.operator == "real processes"] == [Verdict.VIOLATED]


def test_workload_of_a_course_has_a_noisy_floor():
    assert isinstance(DIGITS.workload, SmallNetwork)
    assert DIGITS.workload.decay > 0
