"""Races simulated together are those rehearsed one by one, bit for bit."""

from dataclasses import replace

import pytest

from bounds.runtime import Constant, Exponential, RuntimeModel, ShiftedExponential
from bounds.schedules import AdaComm, GradientRetention
from gpu_validation import SGD, Nesterov
from gpu_validation.averaging.merge.rules import Corrected, Delayed, Eager, Overwrite
from gpu_validation.studies.runs.batched_simulation import simulate_together
from gpu_validation.studies.runs.simulation import simulate
from gpu_validation.studies.runs.spec import TrainingRun
from gpu_validation.workloads import LogisticRegression, SmallNetwork
from operators import QSGD

RUNTIME = RuntimeModel(step=ShiftedExponential(2.0, 1.0), delay_s=Exponential(6.0), m=3)
NETWORK = SmallNetwork(decay=1e-3)
RULE = AdaComm(tau_0=7, interval_s=15.0, gamma=0.5)
RACES = [
    TrainingRun(NETWORK, 1, Constant(1.0), 0, budget_s=60.0),
    TrainingRun(replace(NETWORK, eta=0.7), 4, Constant(1.0), 0, budget_s=90.0),
    TrainingRun(NETWORK, RULE, Constant(1.0), 1, budget_s=90.0, optimizer="momentum", decay=((5, 0.5),)),
    TrainingRun(NETWORK, RULE, Constant(1.0), 2, steps=20, decay=((5, 0.5),)),
]


def test_together_and_alone_give_the_same_records():
    together = simulate_together(RACES, RUNTIME)

    for race, record in zip(RACES, together, strict=True):
        alone = simulate(race, RUNTIME)
        assert record.pop("diverged") is False
        assert record == {name: alone[name] for name in record}
    assert len({record["steps_done"] for record in together}) > 1  # lanes end at different steps
    assert len(together[2]["rounds"]) > 1


def test_losses_are_looked_at_when_asked():
    (record,) = simulate_together([RACES[1]], RUNTIME, looks=[30.0, 31.0, 1e9])
    seconds = simulate(RACES[1], RUNTIME)["seconds"]

    assert record["seconds"] == [0.0, next(t for t in seconds if t >= 30.0), seconds[-1]]
    assert record["accuracies"][:-1] == [None, None]
    assert record["accuracies"][-1] == simulate(RACES[1], RUNTIME)["accuracies"][-1]


def test_a_race_ends_where_it_is_told_to():
    (record,) = simulate_together([RACES[1]], RUNTIME, looks=range(1, 90), until=lambda _, losses: losses[-1] < 2.2)

    assert record["losses"][-1] < 2.2 <= min(record["losses"][:-1])
    assert record["took_s"] == record["seconds"][-1] < 90


def test_a_diverging_race_ends_and_says_so():
    wild = LogisticRegression(eta=1e38)
    calm, lost = simulate_together([TrainingRun(replace(wild, eta=0.1), 2, Constant(1.0), 0, steps=6),
                                    TrainingRun(wild, 2, Constant(1.0), 0, steps=6)], RUNTIME)  # fmt: skip

    assert (calm["diverged"], calm["steps_done"]) == (False, 6)
    assert (lost["diverged"], lost["losses"]) == (True, lost["losses"][: len(lost["seconds"])])
    assert lost["steps_done"] < 6


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (replace(RACES[0], workload=SmallNetwork(hidden=8)), "on one workload; got 2"),
        (
            replace(RACES[0], optimizer="momentum", operator=QSGD(levels=4)),
            "only SGD is simulated together with an outer",
        ),
        (replace(RACES[0], optimizer="adam"), "only SGD without a trace"),
    ],
)
def test_what_cannot_go_together_is_refused(other, message):
    with pytest.raises(ValueError, match=message):
        simulate_together([RACES[0], other], RUNTIME)


def test_nothing_gives_nothing():
    assert simulate_together([], RUNTIME) == []


IN_FLIGHT = [
    TrainingRun(NETWORK, 4, Constant(1.0), 0, budget_s=60.0, outer=Nesterov(0.9, 0.5)),
    TrainingRun(NETWORK, 4, Constant(1.0), 1, budget_s=60.0, merge=Corrected(delay=3)),
    TrainingRun(NETWORK, 5, Constant(1.0), 1, steps=23, merge=Overwrite(delay=2)),
    TrainingRun(NETWORK, 4, Constant(1.0), 2, budget_s=60.0, merge=Delayed(), outer=Nesterov(0.5, 0.3)),
    TrainingRun(NETWORK, 4, Constant(1.0), 2, budget_s=50.0, merge=Eager(), outer=SGD(0.8, 0.2)),
    TrainingRun(NETWORK, "auto", Constant(1.0), 2, budget_s=90.0),
    TrainingRun(NETWORK, GradientRetention(), Constant(1.0), 3, budget_s=80.0),
    TrainingRun(NETWORK, 3, Constant(1.0), 3, budget_s=70.0, operator=QSGD(levels=4)),
]


def test_averages_in_flight_together_and_alone_are_the_same_beside_races_that_wait():
    together = simulate_together([*RACES, *IN_FLIGHT], RUNTIME)

    for race, record in zip([*RACES, *IN_FLIGHT], together, strict=True):
        alone = simulate(race, RUNTIME)
        assert record.pop("diverged") is False
        assert record == {name: alone[name] for name in record}
    losses = [tuple(record["losses"]) for record in together]
    assert len(set(losses)) == len(losses)


def test_momentum_inside_does_not_go_together_with_averages_in_flight():
    with pytest.raises(ValueError, match="only SGD is simulated together with an outer step"):
        simulate_together([replace(IN_FLIGHT[1], optimizer="momentum")], RUNTIME)
