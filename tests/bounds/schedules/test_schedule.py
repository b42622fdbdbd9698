"""Laws that every rule obeys."""

import itertools
import json
import math

import pytest

from bounds import schedules
from bounds.schedules import (
    QSR,
    AdaComm,
    Candidate,
    Decreasing,
    Fixed,
    GradientRetention,
    Increasing,
    Measured,
    Observation,
    PostLocal,
    RateAndRetention,
    Schedule,
    StlSgd,
)

RULES = (
    Fixed(7),
    AdaComm(tau_0=20, interval_s=10.0),
    AdaComm(tau_0=20, interval_s=10.0, gamma=0.5, eta_exponent=0.5, cap=64, L=1.0),
    PostLocal(16),
    PostLocal(16, steps=50),
    QSR(tau_base=2, growth=0.5, warmup_steps=30, peak_eta=0.1),
    StlSgd(4),
    Increasing(1, 0.5, cap=5),
    Decreasing(32, 1.0),
    GradientRetention(),
    RateAndRetention((Candidate("a", 100.0), Candidate("b", 25.0, 0.1)), senders=4),
)
TRACE = [
    Observation(
        time_s=4.0 * k,
        step=10 * k,
        eta=0.1 if k < 6 else 0.02,
        loss=2.0 / (1 + k),
        steps_left=1000 - 10 * k,
        measured=Measured(compute_s=1.0, wait_s=0.1, delay_s=0.5 + k, lost=0.2, fresh=1.0),
    )
    for k in range(12)
]


def run(rule, trace, state=None):
    state = rule.init() if state is None else state
    taus = []
    for observation in trace:
        state, tau = rule(state, observation)
        taus.append(tau)
    return state, taus


def test_every_public_rule_is_under_these_laws():
    public = {c for c in vars(schedules).values() if isinstance(c, type) and issubclass(c, Schedule)} - {Schedule}
    assert {type(rule) for rule in RULES} == public


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_tau_is_a_positive_integer(rule):
    assert all(isinstance(tau, int) and tau >= 1 for tau in run(rule, TRACE)[1])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_equal_observations_give_equal_decisions(rule):
    assert run(rule, TRACE) == run(rule, TRACE)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("stop", [0, 1, 5])
def test_a_run_resumed_from_json_decides_as_if_never_stopped(rule, stop):
    state, head = run(rule, TRACE[:stop])
    resumed = rule.restore(json.loads(json.dumps(state.to_dict())))
    assert resumed == state
    assert head + run(rule, TRACE[stop:], resumed)[1] == run(rule, TRACE)[1]


def test_the_state_of_another_rule_is_refused():
    with pytest.raises(TypeError):
        Increasing(1, 0.5).restore({"first_eta": 0.1})


def test_shared_loss_does_not_depend_on_the_order_of_ranks():
    losses = [1e16, 3.0, -1e16, 5.0]
    means = {Observation.shared(p, time_s=0, step=0, eta=1).loss for p in itertools.permutations(losses)}
    assert means == {2.0}
    with pytest.raises(ValueError, match="one value for each rank"):
        Observation.shared([], time_s=0, step=0, eta=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": math.nan}, "the loss must be finite; got nan: the run has diverged"),
        ({"eta": -0.1}, "eta must be None or finite and >= 0; got eta = -0.1"),
        ({"eta": math.nan}, "eta must be None or finite and >= 0; got eta = nan"),
        ({"time_s": -1.0}, "time_s must be finite and >= 0"),
        ({"step": -1}, "step must be >= 0"),
        ({"step": 1.7}, "step must be a whole number; got step = 1.7"),
        ({"steps_left": -1}, "steps_left must be >= 0"),
    ],
)
def test_impossible_observations_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Observation(**({"time_s": 0.0, "step": 0, "eta": 0.1} | change))
