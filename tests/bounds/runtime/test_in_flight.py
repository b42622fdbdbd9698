"""Averages in flight: expected maxima of sums and a fixed time against simulation, limits, and fragments."""

import math

import numpy as np
import pytest

from bounds.runtime import (
    AutoregressiveLogNormal,
    Constant,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Pareto,
    PersistentStragglers,
    Ring,
    RuntimeModel,
    ShiftedExponential,
    ShiftedGamma,
    Uniform,
    Weibull,
    fragment_load,
    seconds_per_step_in_flight,
)

LAWS = (
    Constant(1.0),
    Exponential(1.0),
    Gamma(2.5, 0.4),
    ShiftedExponential(0.8, 0.2),
    ShiftedGamma(0.5, 2.0, 0.25),
    Pareto(2 / 3, 3.0),
    Uniform(0.5, 1.5),
    Weibull(1.0, 0.7),
    LogNormal(-0.125, 0.5),
    Empirical([0.9, 1.0, 1.3, 2.6]),
)
HEAVY = Pareto(1 / 3, 1.5)


def name(law):
    return type(law).__name__


def simulated(law, m, tau, floor, runs=40_000):
    """Mean of max(S_1, ..., S_m, floor) and six standard errors."""
    sums = law.sample(np.random.default_rng(7), (runs, m, tau)).sum(2)
    longest = np.maximum(sums.max(1), floor)
    return longest.mean(), 6 * longest.std(ddof=1) / math.sqrt(runs) + 1e-9


@pytest.mark.every(4)
@pytest.mark.parametrize("share", [0.9, 1.1, 1.5])
@pytest.mark.parametrize("law", LAWS, ids=name)
def test_the_longest_of_sums_and_a_fixed_time_agrees_with_simulation(law, share):
    m, tau = 4, 6
    floor = share * tau * law.mean_s
    mean, error = simulated(law, m, tau, floor)
    assert law.expected_max_above(floor, m=m, tau=tau) == pytest.approx(mean, abs=error)


def test_a_law_without_variance_waits_as_simulated():
    """Means of heavy tails converge slowly: the part below the floor, which is bounded, is compared."""
    floor = 8.0
    sums = HEAVY.sample(np.random.default_rng(3), (40_000, 4, 6)).sum(2).max(1)
    waiting = np.maximum(floor - sums, 0)
    computed = HEAVY.expected_max_above(floor, m=4, tau=6) - 6 * HEAVY.expected_max(m=4, tau=6)
    assert computed == pytest.approx(waiting.mean(), abs=6 * waiting.std() / 200)


@pytest.mark.parametrize("law", [Exponential(1.0), Gamma(2.5, 0.4)], ids=name)
@pytest.mark.parametrize("floor", [3.0, 8.0, 15.0])
def test_lattices_agree_with_quadrature_of_sums_that_stay_in_their_family(law, floor):
    from bounds.runtime.nested_lattices import waiting_below

    lattice = 6 * law.expected_max(m=4, tau=6) + waiting_below(law, 6, 4, floor)
    assert lattice == pytest.approx(law.expected_max_above(floor, m=4, tau=6), rel=1e-8)


@pytest.mark.parametrize("law", [*LAWS, HEAVY], ids=name)
def test_a_floor_below_all_sums_or_above_them_decides_alone(law):
    assert law.expected_max_above(0.0, m=4, tau=5) == pytest.approx(5 * law.expected_max(m=4, tau=5), rel=1e-9)
    high = 1e4 * law.mean_s
    assert high <= law.expected_max_above(high, m=4, tau=5) <= high * (1.001 if law == HEAVY else 1 + 1e-6)


def test_slow_workers_and_correlated_steps_have_sums_too():
    slow, rng = PersistentStragglers(Weibull(1.0, 0.7), [1.0, 1.0, 1.5]), np.random.default_rng(5)
    sums = Weibull(1.0, 0.7).sample(rng, (60_000, 3, 5)).sum(2) * np.array([1.0, 1.0, 1.5])
    longest = np.maximum(sums.max(1), 9.0)
    assert slow.expected_max_above(9.0, m=3, tau=5) == pytest.approx(longest.mean(), abs=6 * longest.std() / 244)
    steps = AutoregressiveLogNormal(1.0, 0.5, 0.8)
    floors = [steps.expected_max_above(floor, m=8, tau=12) for floor in (0.0, 12.0, 20.0, 1e3)]
    assert floors == sorted(floors)
    assert floors[0] == pytest.approx(12 * steps.expected_max(m=8, tau=12), rel=1e-9)
    assert floors[-1] == pytest.approx(1e3)


@pytest.mark.parametrize("delay", [0.0, 3.0, 40.0])
def test_constant_steps_cost_the_longer_of_steps_and_message(delay):
    model = RuntimeModel(Constant(0.5), delay_s=delay, m=4)
    assert seconds_per_step_in_flight(model, tau=10) == pytest.approx(max(0.5, delay / 10))
    half = seconds_per_step_in_flight(model, tau=10, in_flight=4)
    assert half == pytest.approx((3.0 + max(2.0, delay)) / 10)
    assert seconds_per_step_in_flight(model, tau=10, in_flight=0) == pytest.approx(model.seconds_per_iteration(tau=10))


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_a_round_in_flight_is_never_longer_than_a_blocking_one(law):
    model = RuntimeModel(law, delay_s=4.0, m=8)
    blocking = model.seconds_per_iteration(tau=6)
    hidden = seconds_per_step_in_flight(model, tau=6)
    assert max(law.expected_max(m=8, tau=6), 4 / 6) * (1 - 1e-9) <= hidden <= blocking * (1 + 1e-9)


def test_fragments_are_shorter_rounds_with_shorter_messages():
    ring = Ring(0.0, 1e5)
    model = RuntimeModel(Constant(1.0), communication=ring, m=4)
    whole = RuntimeModel(Constant(1.0), delay_s=ring.seconds(m=4, bits=2e6), m=4)
    short = RuntimeModel(Constant(1.0), delay_s=ring.seconds(m=4, bits=5e5), m=4)
    assert seconds_per_step_in_flight(model, tau=8, bits=2e6) == seconds_per_step_in_flight(whole, tau=8)
    in_parts = seconds_per_step_in_flight(model, tau=8, parts=4, in_flight=1, bits=2e6)
    assert in_parts == seconds_per_step_in_flight(short, tau=2, in_flight=1)


@pytest.mark.parametrize(
    ("parts", "in_flight", "travelling", "peak"), [(1, 8, 1, 2.5), (4, 8, 4, 2.5), (4, 2, 1, 2.5), (4, 1, 1, 5.0)]
)
def test_the_peak_counts_the_fragments_under_way(parts, in_flight, travelling, peak):
    load = fragment_load(bits=20.0, parts=parts, tau=8, in_flight=in_flight, step_s=1.0)
    assert (load.travelling, load.peak_bit_per_s, load.mean_bit_per_s) == (travelling, peak, 2.5)
    whole = fragment_load(bits=20.0, parts=1, tau=8, in_flight=in_flight, step_s=1.0)
    assert load.peak_bit_per_s <= whole.peak_bit_per_s


def test_what_cannot_travel_is_refused():
    model = RuntimeModel(Constant(1.0), delay_s=1.0, m=2)
    with pytest.raises(ValueError, match="multiple of parts; got tau = 5, parts = 2"):
        seconds_per_step_in_flight(model, tau=5, parts=2)
    with pytest.raises(ValueError, match="from 0 to tau/parts = 2; got 3"):
        seconds_per_step_in_flight(model, tau=4, parts=2, in_flight=3)
    with pytest.raises(ValueError, match="need a fixed delay_s"):
        seconds_per_step_in_flight(RuntimeModel(Constant(1.0), delay_s=Exponential(1.0), m=2), tau=4)
    with pytest.raises(ValueError, match="in_flight <= tau; got tau = 4, parts = 2, in_flight = 5"):
        fragment_load(bits=1.0, parts=2, tau=4, in_flight=5, step_s=1.0)
