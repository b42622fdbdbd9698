"""The best tau and steps in flight against every integer, and the published thresholds at which overlap pays."""

import math

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bounds import AssumptionViolated, theorems
from bounds.tau import tau_overlap, tau_star


def every_point(**at):
    """The bound at every (tau, delta) that it covers."""
    found = {}
    for tau in range(1, 400):
        for delta in range(tau + 1):
            try:
                found[tau, delta] = theorems.pasgd_overlap_runtime(tau=tau, in_flight=delta, **at)
            except AssumptionViolated:
                if delta == 0:
                    return found
                break
    raise AssertionError("the learning rate allows more than 400 steps")


@given(
    st.floats(1e-3, 5),
    st.floats(0, 60),
    st.floats(0.3, 4),
    st.floats(0.02, 0.9),
    st.floats(0, 5),
    st.floats(1, 3000),
    st.integers(1, 9),
)
@settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.generate))
@pytest.mark.thorough
def test_no_integers_are_better(gap, delay_s, step_s, eta, sigma2, time_s, m):
    at = {"gap": gap, "delay_s": delay_s, "step_s": step_s, "eta": eta, "L": 1.0, "sigma2": sigma2, "time_s": time_s}
    best = tau_overlap(m=m, **at)
    every = every_point(m=m, **at)
    assert best.error == pytest.approx(every[best.tau, best.in_flight], rel=1e-12)
    assert best.error <= min(every.values()) * (1 + 1e-12)
    assert best.blocking_error <= min(value for (_, delta), value in every.items() if delta == 0) * (1 + 1e-12)


def at_share(u, steps_hidden=400):
    """A problem whose n = D/Y is ``steps_hidden`` and whose blocking tau* is n/u, eta small enough for any tau."""
    eta, time_s = 1e-6, 1.0
    star = steps_hidden / u
    noise = 2 * steps_hidden / (star**2 * eta**3 * time_s)  # A D/B = star^2 at gap = L = Y = 1, m large
    return {"gap": 1, "delay_s": steps_hidden, "step_s": 1, "eta": eta, "L": 1, "sigma2": noise, "time_s": time_s}


@pytest.mark.parametrize(("u", "pays"), [(0.2, True), (0.66, True), (0.70, False), (1.5, False)])
def test_it_pays_where_tau_star_exceeds_1_464_delays(u, pays):
    """1/1.4641 = .683."""
    assert tau_overlap(m=10**9, **at_share(u)).pays is pays
    assert (1 / u > 2 * (math.sqrt(3) - 1)) is pays


def without_what_tau_does_not_enter(error, at):
    return error - at["eta"] * at["L"] * at["sigma2"] * 1e-9 + at["eta"] ** 2 * at["L"] ** 2 * at["sigma2"]


def test_the_gain_is_at_most_1_264():
    gains = {}
    for u in (0.1, 0.2, (math.sqrt(21) - 3) / 6, 0.35, 0.5, 0.6):
        at = at_share(u)
        best = tau_overlap(m=10**9, **at)
        waiting, hidden = (without_what_tau_does_not_enter(e, at) for e in (best.blocking_error, best.error))
        gains[u] = waiting / hidden
        expected = (1 + 2 * u) / (1 + 3 * u**2) if u <= 1 / math.sqrt(3) else (1 + 2 * u) / (2 * math.sqrt(3) * u)
        assert gains[u] == pytest.approx(expected, rel=1e-3)
        if u <= 1 / math.sqrt(3):
            assert (best.tau, best.in_flight) == (400, 400)
    assert max(gains.values()) == gains[(math.sqrt(21) - 3) / 6] == pytest.approx((3 + math.sqrt(21)) / 6, rel=1e-3)


def test_blocking_is_theorem_2_for_many_workers():
    at = {"gap": 1, "delay_s": 10, "eta": 0.05, "L": 1, "sigma2": 1, "time_s": 10**4}
    assert tau_overlap(m=10**9, step_s=1, **at).blocking_tau == tau_star(**at).capped


def test_without_noise_the_learning_rate_decides():
    best = tau_overlap(gap=1, delay_s=10, step_s=1, eta=0.05, L=1, sigma2=0, time_s=100, m=4)
    every = every_point(gap=1, delay_s=10, step_s=1, eta=0.05, L=1, sigma2=0, time_s=100, m=4)
    assert best.error == pytest.approx(min(every.values()), rel=1e-12)


def test_a_free_average_is_taken_at_every_step():
    best = tau_overlap(gap=1, delay_s=0, step_s=1, eta=0.05, L=1, sigma2=1, time_s=100, m=4)
    assert (best.tau, best.in_flight, best.pays) == (1, 0, False)


@pytest.mark.parametrize(
    ("wrong", "sentence"), [({"step_s": 0}, "step_s > 0"), ({"eta": 2}, "eta L > 1"), ({"gap": -1}, "gap")]
)
def test_arguments_out_of_range_are_said(wrong, sentence):
    at = {"gap": 1, "delay_s": 10, "step_s": 1, "eta": 0.05, "L": 1, "sigma2": 1, "time_s": 100, "m": 4} | wrong
    with pytest.raises(ValueError, match=sentence):
        tau_overlap(**at)
