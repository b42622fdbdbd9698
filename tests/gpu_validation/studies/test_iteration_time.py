"""Rows from records made up by hand, and one real run with stragglers."""

import numpy as np
import pytest

from bounds.runtime import Constant, ShiftedExponential
from gpu_validation.judging.iteration_time import iteration_time_rows
from gpu_validation.judging.verdict import Verdict
from gpu_validation.network import LOOPBACK
from gpu_validation.processes.launch import run_ranks
from gpu_validation.studies.straggler import IterationTimePlan, measure_iteration_time
from gpu_validation.timing import slowest_seconds, step_seconds
from gpu_validation.workloads import Quadratic
from operators import Identity, Key

pytestmark = pytest.mark.timeout(90)

M, STEPS, DELAY_S = 2, 240, 0.02


def record(law, tau, *, slower=1.0, workload="logistic"):
    """What a perfect machine would measure, or one that is slower by a factor."""
    runs = []
    for repeat in range(5):
        runs.append(np.stack([step_seconds(law, key=Key(repeat), worker=i, steps=STEPS) for i in range(M)]))
    rounds = [slower * (slowest_seconds(run, tau) + DELAY_S) for run in runs]
    return {
        "kind": "pace",
        "workload": workload,
        "operator": "identity",
        "m": M,
        "tau": tau,
        "steps": STEPS,
        "law": repr(law),
        "mean_step_s": law.mean_s,
        "predicted_compute_s": law.expected_max(m=M, tau=tau),
        "seconds_per_iteration": [float(r.sum()) / STEPS for r in rounds],
        "round_s": [r.tolist() for r in rounds],
        "step_s": np.stack(runs, axis=1).tolist(),  # rank, repeat, step
        "delay_s": [0.99 * DELAY_S, 1.01 * DELAY_S],
        "overruns": 0,
        "scheduling": "normal",
        "method": "by hand",
    }


def rows_by_quantity(records):
    return {(row.quantity, row.tau): row for row in iteration_time_rows(records)}


def test_a_perfect_machine_agrees_with_the_model_everywhere():
    records = [record(Constant(0.01), tau) for tau in (1, 4, 16)]
    rows = rows_by_quantity(records)

    assert len(rows) == 2 * 3 + 2
    assert {row.verdict for row in rows.values()} == {Verdict.HOLDS}
    for tau in (1, 4, 16):
        row = rows["seconds per iteration, mean of the rounds", tau]
        assert row.measured == pytest.approx(0.01 + DELAY_S / tau)
        assert row.bound == pytest.approx(0.01 + DELAY_S / tau)
        assert "normal; by hand" in row.theorem
    assert rows["Y, fitted to the rounds of all tau", None].measured == pytest.approx(0.01)
    assert rows["D, fitted to the rounds of all tau", None].measured == pytest.approx(DELAY_S)


def test_stragglers_raise_the_prediction_not_the_delay():
    law = ShiftedExponential(0.01, 0.01)
    rows = rows_by_quantity([record(law, 4)])

    assert rows["D, from rounds without the slowest worker's steps", 4].measured == pytest.approx(DELAY_S)
    pace = rows["seconds per iteration, mean of the rounds", 4]
    assert pace.verdict is Verdict.HOLDS
    assert pace.bound > law.mean_s + DELAY_S / 4  # the slowest worker's mean is above the mean
    drawn = rows["law of Y: p-value of the best fit, rank 0", 4]
    assert drawn.verdict is Verdict.HOLDS
    assert "ShiftedExponential" in drawn.reason


@pytest.mark.parametrize(
    ("slower", "verdict"), [(1.09, Verdict.HOLDS), (1.11, Verdict.INCONCLUSIVE), (0.89, "INCONCLUSIVE")]
)
def test_ten_per_cent_are_allowed_and_more_decides_nothing(slower, verdict):
    row = rows_by_quantity([record(Constant(0.01), 4, slower=slower)])["seconds per iteration, mean of the rounds", 4]

    assert row.verdict == verdict
    assert not row.decides
    assert (row.reason == "") == (row.verdict is Verdict.HOLDS)


def test_a_real_run_is_recorded_whole():
    plan = IterationTimePlan(
        Quadratic(), Identity(), ShiftedExponential(1e-3, 1e-3), tau=2, steps=8, repeats=2, delays=2
    )

    def work(place, emit):
        emit((place.rank, measure_iteration_time(place, plan)))

    (_, first), (_, second) = sorted(run_ranks(work, processes=2, hang_timeout_s=30, scheduling="realtime"))

    assert {k: v for k, v in first.items() if k != "round_s"} == {k: v for k, v in second.items() if k != "round_s"}
    assert np.shape(first["step_s"]) == (2, 2, 8)
    assert np.shape(first["round_s"]) == (2, 4)
    assert len(first["seconds_per_iteration"]) == 2
    assert len(first["delay_s"]) == 4
    assert first["method"] == LOOPBACK.method
    assert first["scheduling"].startswith(("SCHED_RR", "normal (SCHED_RR refused"))
    for repeat in range(2):
        for rank in range(2):
            drawn = step_seconds(plan.law, key=Key(repeat).fold_in(3), worker=rank, steps=8)
            assert (np.array(first["step_s"][rank][repeat]) >= drawn).all()
    assert next(iter(iteration_time_rows([first, second]))).bound > 1.5e-3
