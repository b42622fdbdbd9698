"""The study of averages in flight: equal effort, choices by the tuning seeds, hindsight for the fixed tau only."""

from dataclasses import replace

import numpy as np
import pytest

from gpu_validation.judging.verdict import Verdict
from gpu_validation.studies.overlap import (
    PRESET,
    _until,
    best_fixed,
    cells,
    choose,
    predicted_ratio,
    speed_up,
    speed_up_in_real_seconds,
)
from gpu_validation.studies.overlap_problems import (
    AUTO,
    FIXED,
    METHODS,
    TASKS,
    TAUS,
    Trial,
    budget_s,
    excess_left,
    round_s,
    run_of,
    runtime,
)

pytestmark = pytest.mark.timeout(400)
SOFTMAX = TASKS["softmax"]
TINY = replace(
    PRESET,
    tasks=(("softmax", SOFTMAX),),
    ratios=(4,),
    points=3,
    tuning=(0, 1, 2),
    seeds=(10, 11, 12),
    looks=10,
    checked=(("softmax", 4),),
    checked_s=0.4,
    timed=(),
)


def test_everything_is_fixed_beforehand_and_seeds_are_apart():
    units = PRESET.units()

    assert len(set(units)) == len(units)
    assert not set(PRESET.tuning) & set(PRESET.seeds)
    assert len(PRESET.tuning) >= 3
    assert len(PRESET.seeds) >= 5
    assert PRESET.ratios == (4, 10, 30)
    for task in TASKS.values():
        assert list(task.targets) == sorted(task.targets, reverse=True)
        assert excess_left(task, task.start) == pytest.approx(1)


def test_runs_are_those_of_their_method():
    trial = Trial(0.1, 24)
    runs = {method: run_of(SOFTMAX, method, trial, 10, 0) for method in METHODS}

    for method, run in runs.items():
        assert type(run.merge).__name__.lower() == METHODS[method].overlap.replace("none", "blocking")
    assert [method for method, run in runs.items() if run.outer] == [m for m in METHODS if m.endswith("+ outer")]
    assert runs[AUTO].schedule == "auto"
    assert runs["corrected"].merge.delay == min(10, trial.tau)
    assert runs["overwrite"].merge.delay == min(10, trial.tau - 1)


def test_a_round_costs_what_the_runtime_model_says():
    Y = runtime(10).step.mean_s

    assert round_s("none", 5, 10, None) > (5 + 10) * Y  # the slowest of four is waited for
    assert round_s("corrected", 40, 10, 10) < round_s("none", 40, 10, None) - 9 * Y
    assert round_s("delayed", 5, 10, None) == pytest.approx(10 * Y, rel=1e-3)


def test_floors_are_those_of_the_problems():
    assert SOFTMAX.workload.optimum().value == pytest.approx(SOFTMAX.floor, abs=1e-5)


def test_a_run_ends_at_the_target_or_long_after_another_was_there():
    until, falls, stays = _until(0.5, patience=3), [1.0, 0.6, 0.1, 0.1], [1.0] * 9

    assert not until(range(2), falls[:2])
    assert until(range(4), falls)  # between seconds 1 and 3
    assert [until(range(n), stays[:n]) for n in (3, 4, 9)] == [False, False, True]


# -- records made by hand ----------------------------------------------------------------------------------------
def tuned(best=1):
    """Seconds 4 and 8 with the best trial of each, 6 and none with the others; of the fixed tau two rates a tau."""
    searches = {
        method: {
            "trials": [Trial(0.1, 2 + i).numbers() for i in range(3)],
            "times": [[6.0, None] if i != best else [4.0, 8.0] for i in range(3)],
        }
        for method in METHODS
    }
    searches[FIXED] = {
        "trials": [Trial(rate, tau).numbers() for rate in (0.1, 0.2) for tau in TAUS],
        "times": [[2.0 * (g + 1), 4.0 * (g + 1) + worse] for worse in (0, 1) for g in range(len(TAUS))],
    }
    return {"unit": "tune:softmax:4:0", "searches": searches}


def reported(seed, scale=1.0):
    runs = [{"method": m, "trial": 1, "times": [scale, 2 * scale]} for m in METHODS if m != FIXED]
    runs += [{"method": FIXED, "trial": g, "times": [3.0, 9.0 - g]} for g in range(len(TAUS))]
    return {"unit": f"report:softmax:4:{seed}", "runs": runs}


def test_tuning_chooses_for_each_target_and_for_every_tau():
    (cell,) = cells(TINY, [tuned()])
    choice = choose(cell)

    assert choice.picked["corrected"] == [1, 1]
    assert choice.picked[FIXED] == [0, 0]
    assert choice.by_tau == [[g, g] for g in range(len(TAUS))]
    assert choice.trial("corrected", 1) == Trial(0.1, 3)


def test_the_finalists_are_chosen_by_their_medians_over_the_tuning_seeds():
    (cell,) = cells(TINY, [tuned()])
    again = choose(cell).finalists

    assert again["corrected"] == [0, 1, 2]
    assert again[FIXED] == list(range(2 * len(TAUS)))  # three rates a tau at most, and there are two
    seconds = {method: [[5.0, 6.0] if i != 1 else [9.0, None] for i in trials] for method, trials in again.items()}
    seconds[FIXED] = [[2.0, 30.0 if i < len(TAUS) else 3.0] for i in again[FIXED]]
    confirmed = [{"unit": f"confirm:softmax:4:{seed}", "times": seconds} for seed in (1, 2)]
    (cell,) = cells(TINY, [tuned(), *confirmed])
    choice = choose(cell)

    assert choice.picked["corrected"] == [0, 0]  # the first seed's best was luck
    assert [at_tau[1] for at_tau in choice.by_tau] == [len(TAUS) + g for g in range(len(TAUS))]


def test_the_fixed_tau_is_chosen_in_hindsight_and_ratios_are_paired_by_seed():
    (cell,) = cells(TINY, [tuned(), *(reported(seed, s) for seed, s in zip(TINY.seeds, (1.0, 0.5, 2.0), strict=True))])
    choice = choose(cell)

    assert best_fixed(cell.reported, choice, 1) == len(TAUS) - 1  # which tuning had last
    assert speed_up(cell, choice, "corrected", 1).value == pytest.approx((9.0 - 6) / 2)
    assert speed_up(cell, choice, "corrected", 1).interval == pytest.approx((0.75, 3.0))
    assert speed_up(cell, choice, "eager", 1, than="AdaComm").value == pytest.approx(1.0)


def test_who_does_not_arrive_has_speed_up_zero():
    late = reported(10)
    for run in late["runs"]:
        run["times"] = [None, None] if run["method"] == "delayed" else run["times"]
    (cell,) = cells(TINY, [tuned(), late])

    assert speed_up(cell, choose(cell), "delayed", 0).value == 0


def test_predictions_are_ratios_to_the_best_predicted_fixed_tau():
    predicted = {FIXED: {"times": [2.0, None]}, "eager": {"times": [1.0, None]}, "corrected": {"times": [4.0, 1.0]}}
    (cell,) = cells(TINY, [{"unit": "predict:softmax", "4": predicted}, tuned()])

    assert [predicted_ratio(cell, m, 0) for m in ("eager", "corrected", "AdaComm")] == [2.0, 0.5, None]
    assert predicted_ratio(cell, "eager", 1) is None  # neither arrives
    assert predicted_ratio(cell, "corrected", 1) == budget_s(4)


def test_real_seconds_are_paired_by_seed_and_a_baseline_that_is_late_counts_for_nothing():
    timed = [{**reported(seed, s), "averaging_s": 0.1, "scheduling": "normal"} for seed, s in ((10, 1.0), (11, 3.0))]
    for record in timed:
        record["unit"] = record["unit"].replace("report", "seconds")
    (cell,) = cells(TINY, [tuned(), *timed])
    choice = choose(cell)

    assert speed_up_in_real_seconds(cell, choice, "corrected").interval == pytest.approx((3 / 6, 3 / 2))
    for run in timed[0]["runs"]:
        run["times"] = [None, None] if run["method"] == FIXED else run["times"]
    assert speed_up_in_real_seconds(cell, choice, "corrected").value == pytest.approx((0 + 9 / 6) / 2)


@pytest.mark.parametrize(("equal", "verdict"), [(400, Verdict.HOLDS), (399, Verdict.VIOLATED)])
def test_a_wrong_number_is_found(equal, verdict):
    (row,) = TINY.judge([{"unit": "same:softmax:4", "equal": equal, "numbers": 400}])

    assert row.verdict is verdict
    assert (row.measured, row.bound) == (equal, 400)


# -- a tiny run --------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def records():
    measured = []
    for name in TINY.units():
        measured.append({"unit": name, **TINY.with_records(measured, None).measure(name)})
    return measured


@pytest.mark.thorough
def test_the_tiny_study_is_whole_and_real_processes_repeat_it(records):
    rows = TINY.judge(records)

    (same,) = [row for row in rows if row.operator == "real processes"]
    assert same.verdict is Verdict.HOLDS
    assert same.measured == same.bound > 300
    ratios = [row for row in rows if "best fixed tau" in row.quantity]
    assert {row.operator for row in ratios} == set(METHODS) - {FIXED}
    assert all(np.isfinite(row.measured) for row in ratios)
    assert any("the exact model says" in row.reason for row in ratios)
    for figure in TINY.figures(records):
        figure.draw()
        assert "D/Y imposed" in figure.caption
