"""Races on real processes: what they record, where they stop, and that padding and the law make the time."""

import math

import numpy as np
import pytest
import torch

from bounds.runtime import Constant, ShiftedExponential
from bounds.schedules import AdaComm
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.processes.launch import run_ranks
from gpu_validation.studies.runs.spec import MINI_BATCHES, TrainingRun
from gpu_validation.studies.runs.training import run_training
from gpu_validation.workloads import LogisticRegression, Quadratic, SmallNetwork
from operators import Key, TopK

pytestmark = pytest.mark.timeout(90)
M = 2


@pytest.fixture(scope="module")
def records():
    """One set of processes for all of them."""
    races = [
        TrainingRun(SmallNetwork(), 4, Constant(1e-3), 3, steps=18, points=3),
        TrainingRun(SmallNetwork(), 1, Constant(1e-3), 3, budget_s=0.1, points=1000),
        TrainingRun(SmallNetwork(), AdaComm(6, 0.02, gamma=0.5), ShiftedExponential(5e-4, 5e-4), 3, steps=200),
        TrainingRun(LogisticRegression(), 3, Constant(0.0), 3, steps=6, trace=True, operator=TopK(k=5)),
        TrainingRun(Quadratic(), 5, Constant(1e-3), 3, steps=10, delay=Constant(0.02), decay=((3, 0.5), (7, 0.25))),
        TrainingRun(SmallNetwork(eta=0.01), "auto", Constant(2e-3), 3, steps=150, optimizer="adam"),
        TrainingRun(Quadratic(), 1, Constant(1e-4), 3, budget_s=0.15, delay=Constant(0.06), points=1000, fenced=0),
    ]
    return run_training(races, m=M, shape=None, scheduling="normal")


def test_losses_and_steps_are_those_of_a_run_by_hand(records):
    def work(place, emit):
        workload, losses = SmallNetwork(), []
        model = workload.model()
        losses.append(float(workload.objective(model).detach()))
        optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta)
        averaging = PeriodicAveraging(model, schedule=4)
        for k in range(20):
            optimizer.zero_grad()
            workload.loss(model, key=Key(3, step=k, rank=place.rank).fold_in(MINI_BATCHES)).backward()
            optimizer.step()
            if averaging.step() is not None:
                losses.append(float(workload.objective(model).detach()))
        if place.rank == 0:
            emit(losses)

    (losses,) = run_ranks(work, processes=M, hang_timeout_s=60)
    record = records[0]

    assert record["rounds"] == [[4, 5]]  # the round in which step 18 falls is finished
    assert record["steps_done"] == 20
    assert set(record["step"]) <= set(range(0, 24, 4))
    np.testing.assert_allclose(record["losses"], [losses[k // 4] for k in record["step"]], rtol=1e-6)
    assert (record["step"][0], record["step"][-1]) == (0, 20)


def test_time_passes_as_the_law_and_the_budget_say(records):
    record = records[1]

    assert record["seconds"] == sorted(record["seconds"])
    assert record["seconds"][0] == 0
    assert record["took_s"] == record["seconds"][-1] >= 0.1
    assert record["steps_done"] * 1e-3 <= record["took_s"]
    assert record["mean_step_s"] >= 1e-3
    assert len(record["fenced_s"]) == 6


def test_an_adaptive_rule_changes_tau_on_all_ranks_together(records):
    record = records[2]

    assert record["rounds"][0][0] == 6
    assert len(record["rounds"]) > 1
    assert [record["taus"][0], record["taus"][-1]] == [record["rounds"][0][0], record["rounds"][-1][0]]
    assert sum(tau * n for tau, n in record["rounds"]) == record["steps_done"] == record["step"][-1]


def test_a_trace_holds_the_gradient_before_every_step(records):
    record, workload = records[3], LogisticRegression()

    assert len(record["gradient2"]) == 6
    assert record["gradient2"][0] == pytest.approx(workload.evaluate(workload.model())[1])
    assert record["bits"][-1] > 0
    assert all(accuracy is None for accuracy in record["accuracies"])  # nothing is held out


def test_a_race_ends_with_the_first_round_that_ends_after_its_budget(records):
    *_, before, end = records[6]["seconds"]

    assert before < 0.15 <= end


def test_a_delay_is_slept_after_every_averaging(records):
    record = records[4]

    assert min(record["fenced_s"]) >= 0.02
    assert record["took_s"] >= 10 * 1e-3 + 2 * 0.02


def test_a_rule_that_measures_is_given_padded_probes(records):
    record = records[5]

    rule, probes = record["rule"], record["probes"]
    assert rule["step"] == record["steps_done"] == 150
    assert all(seconds >= 2e-3 for seconds in rule["steps_s"])  # per step, without the probes
    assert probes <= 1 + 0.02 * record["took_s"] / 2e-3
    assert (probes > 0) == (max(record["taus"]) > 1)


def test_learning_rate_falls_at_the_given_steps():
    race = TrainingRun(Quadratic(eta=0.4), 1, Constant(0.0), 0, steps=1, decay=((3, 0.5), (7, 0.25)))

    assert [race.eta(k) for k in (0, 2, 3, 6, 7, 99)] == pytest.approx([0.4, 0.4, 0.2, 0.2, 0.1, 0.1])


@pytest.mark.parametrize(
    "fields", [{}, {"steps": 1, "decay": ((5, 0.1), (2, 0.5))}, {"steps": 1, "decay": ((1, 0.0),)}]
)
def test_a_race_without_an_end_or_with_a_senseless_decay_is_refused(fields):
    with pytest.raises(ValueError, match=r"give budget_s or steps|must be \(step"):
        TrainingRun(Quadratic(), 1, Constant(1e-3), 0, **fields)


def test_all_numbers_are_finite(records):
    for record in records:
        assert all(map(math.isfinite, record["losses"]))


def test_an_unknown_optimizer_is_refused():
    with pytest.raises(ValueError, match="optimizer must be one of sgd, momentum, adam, adamw, adagrad; got 'lion'"):
        TrainingRun(Quadratic(), 1, Constant(1e-3), 0, steps=1, optimizer="lion")
