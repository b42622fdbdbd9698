"""A rehearsed race is the real one without its seconds."""

from dataclasses import replace

import numpy as np
import pytest

from bounds.runtime import Constant, Exponential, Ring, RuntimeModel, ShiftedExponential
from bounds.schedules import AdaComm
from gpu_validation.studies.runs.simulation import simulate
from gpu_validation.studies.runs.spec import TrainingRun
from gpu_validation.studies.runs.training import run_training
from gpu_validation.workloads import Quadratic, SmallNetwork
from operators import QSGD

pytestmark = pytest.mark.timeout(120)

RUNTIME = RuntimeModel(step=Constant(2.0), delay_s=3.0, m=2)


def test_rehearsed_losses_are_those_of_real_processes_bit_for_bit():
    race = TrainingRun(Quadratic(), 3, Constant(1e-4), seed=1, steps=12, operator=QSGD(levels=4), trace=True, fenced=0)
    (real,) = run_training([race], m=2, shape=None, scheduling="normal")
    twin = simulate(race, RUNTIME)
    losses = dict(zip(twin["step"], twin["losses"], strict=True))
    bits = dict(zip(twin["step"], twin["bits"], strict=True))
    shared = set(real["step"]) & set(losses)
    assert {0, 12} <= shared
    for k, loss, sent in zip(real["step"], real["losses"], real["bits"], strict=True):
        assert k not in shared or (loss, sent) == (losses[k], bits[k])
    assert real["rounds"] == twin["rounds"] == [[3, 4]]
    assert real["gradient2"] == twin["gradient2"]


JITTERY = RuntimeModel(step=ShiftedExponential(2.0, 1.0), delay_s=Exponential(3.0), m=2)
CURVE = ("seconds", "step", "taus", "bits", "losses", "accuracies", "rounds", "steps_done", "took_s")


@pytest.fixture(scope="module")
def pairs():
    """Races of real processes that go by a simulated clock, and their rehearsals."""
    rule = AdaComm(tau_0=6, interval_s=20.0, gamma=0.5)
    races = [
        TrainingRun(SmallNetwork(), 3, Constant(0.0), 1, steps=12, optimizer="momentum", runtime=JITTERY),
        TrainingRun(SmallNetwork(eta=0.01), 3, Constant(0.0), 1, steps=12, optimizer="adam", runtime=JITTERY),
        TrainingRun(SmallNetwork(), rule, Constant(0.0), 1, budget_s=100.0, optimizer="momentum", runtime=JITTERY),
        TrainingRun(Quadratic(), 4, Constant(0.0), 1, budget_s=12.0, runtime=RUNTIME),
    ]
    return list(zip(run_training(races, m=2, shape=None, scheduling="normal"), races, strict=True))


@pytest.mark.parametrize("which", [0, 1, 2, 3], ids=["momentum", "adam", "adaptive", "budget"])
def test_real_processes_by_the_same_clock_are_rehearsed_bit_for_bit(pairs, which):
    real, race = pairs[which]
    twin = simulate(race, race.runtime)

    assert {name: real[name] for name in CURVE} == {name: twin[name] for name in CURVE}
    assert real["losses"][-1] != real["losses"][0]


def test_optimizers_differ_from_plain_descent(pairs):
    plain = simulate(replace(pairs[0][1], optimizer="sgd"), JITTERY)

    assert plain["losses"] != pairs[0][0]["losses"]


def test_an_adaptive_race_changes_tau_by_the_simulated_clock(pairs):
    assert len(pairs[2][0]["rounds"]) > 1


def test_a_runtime_model_of_another_number_of_workers_is_refused():
    race = TrainingRun(Quadratic(), 1, Constant(0.0), 0, steps=1, runtime=RUNTIME)
    with pytest.raises(ValueError, match="is one of 2 workers; the run has m = 3"):
        run_training([race], m=3, shape=None)


def test_seconds_are_those_of_the_runtime_model():
    record = simulate(TrainingRun(Quadratic(), 4, Constant(2.0), seed=0, steps=8), RUNTIME)
    assert record["seconds"] == [0.0, 11.0, 22.0]
    assert record["step"] == [0, 4, 8]
    assert record["took_s"] == 8 * RUNTIME.seconds_per_iteration(tau=4)


def test_race_ends_with_the_first_round_that_ends_after_its_budget():
    record = simulate(TrainingRun(Quadratic(), 4, Constant(2.0), seed=0, budget_s=12.0), RUNTIME)
    assert (record["took_s"], record["steps_done"]) == (22.0, 8)


def test_messages_take_their_time_on_the_simulated_network():
    runtime = RuntimeModel(step=Constant(2.0), communication=Ring(1.0, 40.0), m=2)
    record = simulate(TrainingRun(Quadratic(), 1, Constant(2.0), seed=0, steps=1), runtime)
    assert record["bits"] == [0, 2 * 640]  # ten numbers of 64 bits from each of two workers
    assert record["took_s"] == 2.0 + runtime.seconds_per_averaging(bits=640)


def test_adaptive_schedules_hear_the_losses():
    rule = AdaComm(tau_0=6, interval_s=10.0, gamma=0.5)
    record = simulate(TrainingRun(Quadratic(noise=0.0, eta=0.5), rule, Constant(2.0), seed=0, budget_s=200.0), RUNTIME)
    taus = [tau for tau, _ in record["rounds"]]
    assert taus[0] == 6
    assert taus == sorted(taus, reverse=True)
    assert taus[-1] == 1


def test_local_gradients_exceed_that_of_the_mean_where_workers_have_parted():
    race = TrainingRun(Quadratic(), 8, Constant(2.0), seed=0, steps=8, trace=True)
    record = simulate(race, RUNTIME, locally=True)
    local, mean = np.array(record["local_gradient2"]), np.array(record["gradient2"])
    assert local[0] == mean[0]
    assert (local[1:] > mean[1:]).all()  # the square is convex, and F quadratic
