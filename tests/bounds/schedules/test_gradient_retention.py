"""The rule against a scalar one written from its description, and the laws that it keeps whatever is measured."""

import itertools
import json
import math
from fractions import Fraction
from statistics import median

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from bounds.schedules import GradientRetention, Measured, Observation
from bounds.schedules.gradient_retention import best_integer, best_period, overhead_cap
from bounds.schedules.retention_proof import DECLINE, SPARE, N, derivation, period

RULE = GradientRetention()
ratios = st.floats(0, 200) | st.sampled_from([0.0, 0.5, 1.0, 4.0, 20.0])
declines = st.floats(0, 3) | st.floats(1e-6, 1e-2)
stragglers = st.floats(0, 5)


# -- the closed form -----------------------------------------------------------------------------------------
def test_closed_form_is_the_only_minimiser_of_time_for_progress():
    tau = period(derivation().minimiser)

    assert sp.simplify(tau - (-N + sp.sqrt(N**2 + N + 2 * N / DECLINE))) == 0
    assert sp.solve(period(SPARE) - sp.Symbol("tau", positive=True), SPARE)  # every tau in (0, 2/a) has its z > 0


def test_marginal_value_theorem_holds_at_the_closed_form():
    t = period(derivation().minimiser)
    progress = t - DECLINE * t * (t - 1) / 2
    marginal = 1 + DECLINE / 2 - DECLINE * t
    assert sp.simplify(marginal * (t + N) - progress) == 0


@given(st.floats(1e-6, 1e6), st.floats(1e-9, 10))
def test_closed_form_solves_its_quadratic_without_cancellation(n, a):
    tau, exact_n, exact_a = (Fraction(value) for value in (best_period(delay_ratio=n, decline=a), n, a))
    residual = exact_a * tau**2 / 2 + exact_a * exact_n * tau - exact_n * (1 + exact_a / 2)  # increases in tau
    slope = exact_a * (tau + exact_n)
    assert abs(residual / slope) <= tau * Fraction(1, 10**14)


@pytest.mark.parametrize(("n", "a", "limit"), [(1e8, 0.02, 50.5), (2e-6, 0.01, 0.02005)])
def test_limits_of_slow_and_fast_averagings(n, a, limit):
    assert best_period(delay_ratio=n, decline=a) == pytest.approx(limit, rel=1e-3)


def plain_rate(t, n, a, s):
    progress = sum(max(0.0, 1 - a * (k - 1)) for k in range(1, t + 1)) if a * t > 1 else t - a * t * (t - 1) / 2
    return progress / (t + n + s * math.sqrt(t))


@given(ratios, declines, stragglers)
def test_best_integer_beats_all_others(n, a, s):
    found = best_integer(delay_ratio=n, decline=a, straggler=s)
    rates = {t: plain_rate(t, n, a, s) for t in range(1, 513)}
    assert rates[found] >= max(rates.values()) * (1 - 1e-14)


@given(st.floats(0, 1e-5) | ratios, stragglers, st.booleans())
def test_where_nothing_is_lost_the_best_integer_is_the_first_of_the_largest_rates(n, s, overlapped):
    taus = np.arange(1, 513)
    steps = taus + s * np.sqrt(taus)
    rates = taus / (np.maximum(steps, n) if overlapped else taus + n + s * np.sqrt(taus))
    assert best_integer(delay_ratio=n, decline=0.0, straggler=s, overlapped=overlapped) == 1 + rates.argmax()


@given(st.floats(0.1, 100), st.floats(1e-4, 1))
def test_best_integer_is_a_neighbour_of_the_closed_form(n, a):
    real = best_period(delay_ratio=n, decline=a)
    assert abs(best_integer(delay_ratio=n, decline=a) - min(512, max(1.0, real))) <= 1 + 1e-9


@given(ratios, stragglers)
def test_cap_is_the_least_period_within_a_ninth(n, s):
    cap = overhead_cap(n, straggler=s)
    enough = [t for t in range(1, 513) if 9 * (n + s * math.sqrt(t)) <= t]
    assert cap == min(enough, default=512)


@given(ratios, ratios, declines, stragglers)
def test_more_delay_never_shortens_a_round(n, more, a, s):
    shorter, longer = sorted((n, more))
    longer *= 1 + 1e-9  # apart by more than rounding
    assert overhead_cap(shorter, straggler=s) <= overhead_cap(longer, straggler=s)
    assert best_integer(delay_ratio=shorter, decline=a, straggler=s) <= best_integer(
        delay_ratio=longer, decline=a, straggler=s
    )


@given(ratios, declines, declines, stragglers)
def test_faster_decline_never_lengthens_a_round(n, a, more, s):
    slower, faster = sorted((a, more))
    faster *= 1 + 1e-9
    assert best_integer(delay_ratio=n, decline=faster, straggler=s) <= best_integer(
        delay_ratio=n, decline=slower, straggler=s
    )


# -- the rule ------------------------------------------------------------------------------------------------
maybe = st.none() | st.floats(-1, 1)
measurements = st.builds(
    lambda y, wait, d, probe: Measured(y, wait, d, *(probe or (None, None)), None),
    st.floats(1e-4, 10),
    st.floats(0, 10),
    st.none() | st.floats(0, 10),
    st.none() | st.tuples(st.floats(-1, 1), st.floats(0, 1)),
)


def trace(rule, measured):
    """(states, taus) of rounds that make the steps the rule asks for; the k-th measurement comes after round k."""
    state, tau = rule.init(), 0
    states, taus, step = [], [], 0
    for k, seen in enumerate([None, *measured]):
        step += tau
        state, tau = rule(state, Observation(float(k), step, 0.1, measured=seen))
        states.append(state)
        taus.append(tau)
    return states, taus


def plain_rule(measured):
    """The taus, from the description, without the rule's functions: a scalar oracle."""
    steps_s, delays_s, straggler, lost, fresh = [], [], None, 0.0, 0.0
    tau, started, taus, lengths, age, probing = 32, False, [32], [], None, True
    for seen in measured:
        previous = lengths[-1] if lengths else 0
        lengths.append(tau)
        steps_s = [*steps_s, seen.compute_s / tau][-9:]
        x = seen.wait_s / median(steps_s) / tau**0.5
        straggler = x if straggler is None else 0.9 * straggler + (1 - 0.9) * x
        if seen.delay_s is not None:
            delays_s = [*delays_s, seen.delay_s][-9:]
        if seen.lost is not None and previous > 1:
            lost = 0.8 * lost + (1 - 0.8) * seen.lost
            fresh = 0.8 * fresh + (1 - 0.8) * (previous - 1) * seen.fresh
        if not delays_s:
            age = 0.0 if probing else age + tau
            tau, probing = 32, False
        else:
            n = median(delays_s) / median(steps_s)
            a = min(1.0, max(1 / 512, lost / fresh)) if fresh > 0 else 1 / 512
            a = math.sqrt(a / 256)
            rates = [plain_rate(t, n, a, straggler) for t in range(1, 513)]
            best = 1 + rates.index(max(rates))
            least = math.ceil(tau / 2) if started else 1
            tau, started = max(1, least, min(best, max(2, 2 * tau), 512)), True
            if age is not None:
                age += lengths[-1] + n
            if probing:
                age = 0.0
            due = age is None or age + tau + n >= 50
            if tau == 1 and due and 9 * (n + straggler) > 1:
                tau = 2
            probing = due and tau > 1
        taus.append(tau)
    return taus


@pytest.mark.thorough
@settings(max_examples=200)
@given(st.lists(measurements, max_size=12))
def test_the_rule_is_the_described_one(measured):
    assert trace(RULE, measured)[1] == plain_rule(measured)


@given(st.lists(measurements, max_size=30))
def test_tau_stays_in_range_and_changes_by_a_factor_of_two_at_most(measured):
    states, taus = trace(RULE, measured)
    for tau in taus:
        assert isinstance(tau, int)
        assert 1 <= tau <= 512
    for before, after in itertools.pairwise(states):
        if before.started:
            assert after.tau <= max(2, 2 * before.tau)
            assert 2 * after.tau >= before.tau
            if after.tau > max(2, before.tau):
                assert after.tau <= best_integer(
                    delay_ratio=after.delay_ratio, decline=1 / 256 / math.sqrt(2), straggler=after.straggler
                )


@given(st.lists(measurements, max_size=40))
def test_probes_are_fifty_local_steps_of_time_apart(measured):
    states, taus = trace(RULE, measured)
    since = math.inf
    for before, state, tau in zip(states, states[1:], taus[1:], strict=False):
        n = state.delay_ratio
        if n is None:
            since = 0.0 if before.probe else since + tau
            assert not state.probe
            continue
        since = 0.0 if before.probe else since + state.ended + n
        assert state.probe == (tau > 1 and since + tau + n >= 50)


@given(st.lists(measurements, max_size=10), st.integers(0, 10))
def test_a_run_resumed_from_json_decides_as_if_never_stopped(measured, stop):
    states, taus = trace(RULE, measured)
    k = min(stop, len(measured))
    state = RULE.restore(json.loads(json.dumps(states[k].to_dict())))
    assert state == states[k]
    step, tau, again = states[k].step, taus[k], []
    for seen in measured[k:]:
        step += tau
        state, tau = RULE(state, Observation(0.0, step, 0.1, measured=seen))
        again.append(tau)
    assert again == taus[k + 1 :]


def steady(n, a, *, rounds=60, s=0.0, y=0.01):
    """The taus where Y, n, the decline and the stragglers never change."""
    state, tau = RULE.init(), 0
    step, before, taus, probed = 0, 0, [], False
    for _ in range(rounds):
        step += tau
        fresh = (1.0, max(0.0, a * (before - 1))) if probed else (None, None)
        seen = Measured(y * tau, s * math.sqrt(tau) * y, n * y if before else None, fresh[1], fresh[0])
        probed, before = state.probe, tau
        state, tau = RULE(state, Observation(0.0, step, 0.1, measured=seen))
        taus.append(tau)
    return taus


@pytest.mark.parametrize(("n", "longest"), [(0.0, 1), (0.5, 19), (1.0, 26), (5.0, 55), (20.0, 102), (100.0, 187)])
def test_the_longest_round_grows_with_the_root_of_the_delay(n, longest):
    """-n + sqrt(n^2 + n + 2 n/a') at the smallest believed decline, a' = 1/(256 sqrt(2))."""
    first, second, third, *_, last = steady(n, 0.0)
    assert (first, second, third) == (32, 32, min(64, longest))
    assert last == longest


def test_measured_and_prior_decline_weigh_alike():
    for a in (1 / 64, 1 / 4, 1.0):
        assert steady(4.0, a)[-1] == best_integer(delay_ratio=4.0, decline=math.sqrt(a / 256))


def test_the_first_rounds_measure_before_anything_is_known():
    states, taus = trace(RULE, [Measured(0.04, 0.0)] * 3)
    assert taus == [32, 32, 32, 32]
    assert [state.probe for state in states] == [True, False, False, False]


def test_a_smaller_decline_lets_tau_rise_again():
    state, _ = RULE(RULE.init(), Observation(0.0, 0, 0.1))
    step, taus = 0, []
    for turn in range(200):
        step += state.tau
        length = state.ended
        a = 0.25 if turn < 100 else 0.025  # a learning rate that falls to a tenth
        lost = (a * (length - 1), 1.0) if length else (None, None)
        seen = Measured(0.01 * state.tau, 0.0, 0.04, *lost)
        state, tau = RULE(state, Observation(0.0, step, 0.1, measured=seen))
        taus.append(tau)
    early, late = taus[99], taus[-1]
    assert early == best_integer(delay_ratio=4.0, decline=math.sqrt(0.25 / 256))
    assert late == best_integer(delay_ratio=4.0, decline=math.sqrt(0.025 / 256))


def test_stragglers_lengthen_the_rounds():
    longest = best_integer(delay_ratio=1.0, decline=1 / 256 / math.sqrt(2), straggler=0.5)
    assert steady(1.0, 0.0, s=0.0)[-1] < steady(1.0, 0.0, s=0.5)[-1] == longest


def test_a_pause_in_one_round_does_not_matter():
    ratios = []
    for pause_s in (0.0, 60.0):
        state = RULE.init()
        for turn in range(20):
            computing_s = 0.01 * state.tau + (pause_s if turn == 10 else 0.0)  # a checkpoint, an evaluation
            seen = Measured(computing_s, 0.0, 0.04)
            state, _ = RULE(state, Observation(0.0, state.step + state.tau, 0.1, measured=seen))
        ratios.append(state.delay_ratio)
    assert ratios[0] == pytest.approx(4.0) == ratios[1]


def test_the_last_round_ends_with_the_run():
    state, tau = RULE(RULE.init(), Observation(0.0, 0, 0.1, steps_left=100))
    for step in (1, 2):
        state, tau = RULE(state, Observation(0.0, step, 0.1, steps_left=5, measured=Measured(0.01, 0.0, 0.08)))
    assert (state.tau, tau) == (best_integer(delay_ratio=8.0, decline=1 / 256 / math.sqrt(2)), 5)


# -- measurements --------------------------------------------------------------------------------------------
NAN = math.nan


def test_ranks_share_means_the_slowest_wait_and_the_least_delay():
    rows = [
        (1.0, 0.5, 0.2, 1.0, NAN, 3.0, 2.0, -0.5),
        (3.0, 0.1, 0.4, 2.0, 0.3, -1.0, 4.0, -0.5),
        (2.0, 0.3, NAN, 7.0, 0.1, 7.0, NAN, -0.5),
    ]

    seen = Measured.shared(rows)

    assert (seen.compute_s, seen.wait_s, seen.delay_s) == (2.0, 1.0, 0.1)
    assert seen.lost == pytest.approx(0.3)
    assert seen.fresh == 1.5  # a rank with half a probe has none
    assert seen.loss_jump == pytest.approx(0.2)
    assert (seen.bend2, seen.curve, seen.turn, seen.workers) == (5.0, 3.0, -0.5, 3)
    assert Measured.shared(rows[::-1]) == seen
    assert Measured.shared([(NAN,) * 8] * 2) == Measured(workers=2)


def test_impossible_measurements_are_refused():
    with pytest.raises(ValueError, match="delay_s must be >= 0; got delay_s = -1"):
        Measured(delay_s=-1.0)
    with pytest.raises(ValueError, match="lost must be finite; got lost = nan"):
        Measured(lost=NAN, fresh=1.0)
    with pytest.raises(ValueError, match="delay_ratio must be finite and >= 0"):
        best_integer(delay_ratio=-1.0, decline=0.0)


@pytest.mark.parametrize(("n", "a"), [(1.0, 0.45), (2.0, 0.6), (5.0, 0.75)])
def test_two_steps_are_taken_where_they_beat_one(n, a):
    # (2 - a)/(2 + n) > 1/(1 + n); a tau^2/2 instead of the sum makes 1 look better
    assert plain_rate(2, n, a, 0) > plain_rate(1, n, a, 0)
    assert best_integer(delay_ratio=n, decline=a) >= 2
    assert min(steady(n, a)[10:]) >= 2


def test_tau_of_one_is_left_when_less_is_lost():
    rule = GradientRetention(overlapped=True)
    state, tau = rule.init(), 0
    step, before, taus, probed = 0, 0, [], False
    for turn in range(400):
        a = 0.9 if turn < 200 else 0.02
        step += tau
        lost, fresh = (max(0.0, a * (before - 1)), 1.0) if probed else (None, None)
        seen = Measured(0.01 * tau, 0.0, 0.015 if before else None, lost, fresh)
        probed, before = state.probe, tau
        state, tau = rule(state, Observation(0.0, step, 0.1, measured=seen))
        taus.append(tau)
    assert taus[60:200].count(1) >= 130  # but for a probing round of two now and then
    assert min(taus[-20:]) == 2


def test_where_averaging_is_free_one_step_is_kept_without_probes():
    _, opening, *rest = steady(0.04, 0.5)
    assert opening == 32
    assert set(rest) == {1}


@pytest.mark.parametrize(("n", "a", "period"), [(10.0, 0.0, 10), (9.2, 0.0, 10), (0.4, 0.3, 1), (10.0, 0.25, 4)])
def test_in_flight_a_round_is_as_long_as_the_average_unless_steps_gain_nothing(n, a, period):
    """It costs max(tau, n): up to n steps are free, and the fifth loses all at a decline of 1/4."""
    best = best_integer(delay_ratio=n, decline=a, overlapped=True)

    assert best == max(range(1, 60), key=lambda t: (sum(max(0, 1 - a * k) for k in range(t)) / max(t, n), -t)) == period


@pytest.mark.parametrize("n", [0.4, 3.0, 9.5])
def test_in_flight_tau_goes_to_the_whole_number_above_the_delay(n):
    rule = GradientRetention(overlapped=True)
    state, step, taus = rule.init(), 0, []
    for _ in range(12):
        state, tau = rule(
            state,
            Observation(float(step), step, 0.1, measured=Measured(compute_s=0.01 * state.tau, delay_s=0.01 * n)),
        )
        step += tau
        taus.append(tau)

    assert taus == [4, *[math.ceil(n)] * 11]
    assert GradientRetention() != rule
