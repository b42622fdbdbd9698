"""The choice against a scalar search over all candidates and periods, and what a run is told to do when."""

import itertools
import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bounds.schedules import Candidate, GradientRetention, Measured, Observation, RateAndRetention
from bounds.schedules.gradient_retention import best_integer
from bounds.schedules.rate_and_retention import SWITCH

WHOLE, LONG, SHORT = Candidate("whole", 800.0), Candidate("long", 200.0, 0.01), Candidate("short", 50.0, 0.5)
RULE = RateAndRetention((WHOLE, LONG, SHORT), senders=4)


def told(rule, *, latency, per_byte, rounds=60, a=0.0, y=1.0, spread=4.0, errors=None, stop=None):
    """(states, taus): rounds on a network where every averaging takes latency + bytes*per_byte + coding."""
    state, tau = rule.init(), 0
    states, taus, step, before, probed = [], [], 0, 0, False
    averaged = None
    for k in range(rounds):
        step += tau
        seen = None
        if k:
            probe = (max(0.0, a * (before - 1)), 1.0) if probed and before > 1 else (None, None)
            sent = (None, None, None) if averaged is None else messages(rule, averaged, spread, errors)
            delay = None if averaged is None else latency + per_byte * rule.candidates[averaged].link_bytes
            seen = Measured(y * tau, 0.0, delay, *probe, None, *sent)
            averaged = state.choice
        probed, before = state.probe, tau
        if k == stop:
            state = rule.restore(json.loads(json.dumps(state.to_dict())))
        state, tau = rule(state, Observation(float(k), step, 0.1, measured=seen))
        states.append(state)
        taus.append(tau)
    return states, taus


def messages(rule, i, spread, errors):
    """(error2, norm2, mean2) of movements of squared norm 1 whose mean is compressed as candidate i does."""
    omega = (errors or [c.error for c in rule.candidates])[i]
    uncompressed = 1.0 / spread
    once = uncompressed + omega / rule.senders
    return omega, 1.0, once * (1 + omega) if rule.candidates[i].twice else once


def plain_choice(rule, n_of, a, spread, errors):
    """(candidate, tau) of the largest progress a second, by plain loops."""
    a = math.sqrt(max(a, 1 / 512) / 256)
    best = (-1.0, 0, 0)
    for i, c in enumerate(rule.candidates):
        phi = errors[i] * spread / rule.senders
        if c.twice:
            phi += errors[i] * (1 + phi)
        rates = []
        for t in range(1, 513):
            progress = sum(max(0.0, 1 - a * k) for k in range(t))
            rates.append(progress / (t + n_of(c)))
        tau = 1 + rates.index(max(rates))
        best = max(best, (rates[tau - 1] / (1 + phi / 5), i, tau))
    return best


@pytest.mark.parametrize("a", [0.0, 0.02, 0.2])
@pytest.mark.parametrize(("latency", "per_byte"), [(0.1, 0.0), (4.0, 0.0), (0.1, 0.005), (0.1, 0.06), (5.0, 0.2)])
def test_steady_measurements_lead_to_the_best_of_all_candidates_and_periods(latency, per_byte, a):
    states, taus = told(RULE, latency=latency, per_byte=per_byte, a=a)

    def n_of(c):
        return latency + per_byte * c.link_bytes

    errors = [c.error for c in RULE.candidates]
    rate, i, tau = plain_choice(RULE, n_of, a, 4.0, errors)
    chosen = states[-1].choice
    if chosen == i:
        assert abs(taus[-1] - tau) <= (1 if tau == 1 else 0)  # where a probe is due a round of one step has two
    else:  # it was there before, and is not worse by 2 %
        alone = RateAndRetention((RULE.candidates[chosen],), senders=4)
        assert plain_choice(alone, n_of, a, 4.0, [errors[chosen]])[0] * SWITCH > rate


def test_bandwidth_latency_and_errors_each_decide():
    def chosen(**network):
        errors = network.pop("errors", None)
        return RULE.candidates[told(RULE, a=0.2, errors=errors, **network)[0][-1].choice].name

    assert chosen(latency=4.0, per_byte=0.0) == "whole"
    assert chosen(latency=0.1, per_byte=0.5) == "short"
    wrong = [0.0, 0.01, 8.0]  # an error that is measured, not as claimed
    assert chosen(latency=0.1, per_byte=0.05, errors=wrong) == "long"
    assert (
        chosen(latency=0.1, per_byte=0.05, errors=wrong, spread=1.0) == "short"
    )  # alike movements: errors average out


def test_coding_seconds_are_paid_by_those_not_tried():
    slow = RateAndRetention((replace(WHOLE, coding_s=90.0), LONG, SHORT), senders=4)
    states, _ = told(slow, latency=4.0, per_byte=0.0)
    assert all(state.choice != 0 for state in states)


def test_the_opening_sends_the_two_shortest_messages():
    states, taus = told(RULE, latency=1.0, per_byte=0.1, rounds=4)
    assert taus[:2] == [32, 32]
    assert [RULE.candidates[s.choice].name for s in states[:3]] == ["short", "long", "short"]
    assert states[3].delay_ratio == pytest.approx(1.0 + 0.1 * RULE.candidates[states[3].choice].link_bytes)


def test_what_is_measured_is_errors_and_the_spread_of_movements():
    for twice in (False, True):
        rule = RateAndRetention((WHOLE, replace(LONG, twice=twice), replace(SHORT, twice=twice)), senders=4)
        states, _ = told(rule, latency=1.0, per_byte=0.06, spread=2.5, errors=[0.0, 0.03, 0.9])
        assert states[-1].spread == pytest.approx(2.5)
        assert [e for e, tried in zip(states[-1].errors, states[-1].tried, strict=True) if tried][-1] in (0.03, 0.9)
        known = dict(zip(("whole", "long", "short"), states[-1].errors, strict=True))
        assert known["short"] == pytest.approx(0.9)
        assert known["long"] == pytest.approx(0.03)


def test_one_candidate_leaves_the_rule_for_tau():
    alone, plain = RateAndRetention((WHOLE,), senders=4), GradientRetention()
    taus = told(alone, latency=3.0, per_byte=0.0, a=0.05)[1]
    state, tau, step, expected, before, probed = plain.init(), 0, 0, [], 0, False
    for k in range(60):
        step += tau
        probe = (0.05 * (before - 1), 1.0) if probed and before > 1 else (None, None)
        seen = Measured(1.0 * tau, 0.0, 3.0 if k > 1 else None, *probe) if k else None
        probed, before = state.probe, tau
        state, tau = plain(state, Observation(float(k), step, 0.1, measured=seen))
        expected.append(tau)
    assert (taus[:2], taus[30:]) == (expected[:2], expected[30:])


@settings(max_examples=max(10, settings().max_examples // 5))  # a quarter of a second each
@given(st.integers(0, 30), st.floats(0, 20), st.floats(0, 1), st.floats(0, 0.5))
def test_a_run_resumed_from_json_decides_as_if_never_stopped(stop, latency, per_byte, a):
    network = {"latency": latency, "per_byte": per_byte, "a": a, "rounds": 31}
    assert told(RULE, **network) == told(RULE, **network, stop=stop)


@given(st.floats(0, 50), st.floats(0, 0.5), st.floats(0, 1), st.floats(1, 4))
def test_periods_keep_their_bounds(latency, per_byte, a, spread):
    states, taus = told(RULE, latency=latency, per_byte=per_byte, a=a, spread=spread, rounds=25)
    assert all(1 <= tau <= 512 for tau in taus)
    for before, after in itertools.pairwise(states):
        if before.started:
            assert math.ceil(before.tau / 2) <= after.tau <= max(2, 2 * before.tau)
            if after.tau > before.tau:
                assert after.tau <= max(2, best_integer(delay_ratio=after.delay_ratio, decline=1 / 256 / math.sqrt(2)))


def test_another_model_begins_anew_with_the_times_of_steps_known():
    states, _ = told(RULE, latency=1.0, per_byte=0.06, rounds=20)
    other = tuple(replace(c, link_bytes=3 * c.link_bytes) for c in RULE.candidates)
    state = states[-1].beginning_with(other)
    assert (state.candidates, state.choice, state.ended_by, set(state.windows_s)) == (other, 2, None, {()})
    assert state.steps_s == states[-1].steps_s


def test_nothing_to_choose_from_is_refused():
    with pytest.raises(ValueError, match="give at least one candidate and one sender"):
        RateAndRetention(())
