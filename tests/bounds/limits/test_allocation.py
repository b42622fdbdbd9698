"""Bits of layers at equal slope: the digits of the notes, an independent minimiser, and both ends of the level."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from bounds.limits import feedback_water_filling, unbiased_water_filling
from bounds.special.allocation import feedback_level, feedback_roots, unbiased_constants, unbiased_level

# variances, sizes, bits; level, omegas, error, one omega for all, gain, by an independent program with 30 digits
UNBIASED = [
    (
        (4, 1, "0.25"),
        (10, 10, 10),
        60,
        0.0767468247,
        (0.0188320597, 0.0716177260, 0.246315817),
        2.08524919,
        3.5,
        1.67846,
    ),
    ((4, 1, "0.25"), (10, 10, 10), 15, 2.63264167, (0.452974511, 1.19783441, 2.78337733), 37.0557678, 52.5, 1.41678),
    ((1, "1e-4"), (1000, 9000), 10000, 0.000252226113, (0.000252162527, 1.16501085), 1.30067229, 333.633333, 256.508),
    (
        (100, 1, "0.01"),
        (64, 640, 6400),
        7104,
        0.00961790574,
        (9.61698087e-5, 0.00952713935, 0.600813596),
        45.1649261,
        2368,
        52.4301,
    ),
]
FEEDBACK = [  # squared gradients, sizes, bits; alphas, memory, one alpha for all, gain
    ((4, 1, "0.25"), (10, 10, 10), 60, (0.0244576890, 0.0665662009, 0.149958422), 0.358219037, 0.583333333, 1.62843),
    ((4, 1, "0.25"), (10, 10, 10), 15, (0.366668343, 0.519654027, 0.656027884), 20.6362318, 30.5992424, 1.48279),
    ((100, 1), (64, 6400), 3232, (0.00223134943, 0.527805642), 7.30194249, 588.67114, 80.6184),
]


@pytest.mark.parametrize(("v", "n", "bits", "level", "omegas", "error", "equal", "gain"), UNBIASED)
def test_unbiased_layers_have_the_known_digits(v, n, bits, level, omegas, error, equal, gain):
    found = unbiased_water_filling(v, n, bits)
    assert found.level.midpoint == pytest.approx(level, rel=1e-8)
    assert [c.midpoint for c in found.constants] == pytest.approx(omegas, rel=1e-8)
    assert (found.error.midpoint, found.equal.midpoint) == pytest.approx((error, equal), rel=1e-8)
    assert found.equal.midpoint / found.error.midpoint == pytest.approx(gain, rel=4e-6)


@pytest.mark.parametrize(("v", "n", "bits", "alphas", "error", "equal", "gain"), FEEDBACK)
def test_layers_with_memory_have_the_known_digits(v, n, bits, alphas, error, equal, gain):
    found = feedback_water_filling(v, n, bits)
    assert [c.midpoint for c in found.constants] == pytest.approx(alphas, rel=1e-8)
    assert (found.error.midpoint, found.equal.midpoint) == pytest.approx((error, equal), rel=1e-8)
    assert found.equal.midpoint / found.error.midpoint == pytest.approx(gain, rel=4e-6)


def test_bits_over_time_have_the_known_digits():
    """Prices .9^t of 100 rounds, one bit per coordinate on average."""
    found = unbiased_water_filling([0.9**k for k in range(100)], [1] * 100, 100)
    assert found.level.midpoint == pytest.approx(0.00880991223, rel=1e-8)
    assert found.error.midpoint == pytest.approx(0.475084199, rel=1e-8)
    assert found.equal.midpoint == pytest.approx(3.33324480, rel=1e-8)
    assert (found.layers[0].midpoint, found.layers[-1].midpoint) == pytest.approx((3.42587, 0.0417448), rel=2e-6)


LAYERS = st.lists(st.tuples(st.floats(1e-6, 1e6), st.integers(1, 10**5)), min_size=1, max_size=5)


@given(LAYERS, st.floats(0.05, 12))
def test_the_level_is_enclosed_and_spends_the_bits(layers, rate):
    v, n = zip(*layers, strict=True)
    bits = rate * sum(n)
    found = unbiased_water_filling(v, n, bits)
    assert found.level.lo <= unbiased_level(v, n, bits) * (1 + 1e-12)
    assert found.level.hi >= unbiased_level(v, n, bits) * (1 - 1e-12)
    assert sum(b.lo for b in found.layers) <= bits * (1 + 1e-12)
    assert sum(b.hi for b in found.layers) >= bits * (1 - 1e-12)
    assert found.error.lo <= found.equal.hi
    assert all(b.lo > 0 for b in found.layers)  # no layer is switched off


@given(LAYERS, st.floats(0.05, 12))
def test_memory_spends_the_bits_and_never_loses_to_one_alpha(layers, rate):
    g, n = zip(*layers, strict=True)
    bits = rate * sum(n)
    found = feedback_water_filling(g, n, bits)
    assert sum(b.lo for b in found.layers) <= bits * (1 + 1e-9)
    assert sum(b.hi for b in found.layers) >= bits * (1 - 1e-9)
    assert found.error.lo <= found.equal.hi


def test_an_independent_minimiser_finds_no_better_split():
    rng = np.random.default_rng(3)
    for _ in range(5):
        v, n = 10 ** rng.uniform(-2, 2, 4), rng.integers(1, 20, 4)
        bits = float(rng.uniform(0.5, 4)) * n.sum()

        def unbiased(z, v=v, n=n, bits=bits):
            share = bits * np.exp(z) / np.exp(z).sum() / n
            return math.log(float((n * v / np.expm1(2 * math.log(2) * share)).sum()))

        def memory(z, v=v, n=n, bits=bits):
            share = bits * np.exp(z) / np.exp(z).sum() / n
            return math.log(float((v / np.expm1(math.log(2) * share) ** 2).sum()))

        for cost, found in (
            (unbiased, unbiased_water_filling(v, n, bits)),
            (memory, feedback_water_filling(v, n, bits)),
        ):
            least = minimize(cost, np.log(n / n.sum()), method="BFGS", options={"gtol": 1e-9}).fun
            assert math.log(found.error.midpoint) == pytest.approx(least, abs=1e-7)


def test_the_constants_solve_their_equations():
    v = np.geomspace(1e-8, 1e8, 30)
    omega, s = unbiased_constants(0.3, v), feedback_roots(v)
    assert omega * (1 + omega) * v == pytest.approx(0.3, rel=1e-13)
    assert s**2 == pytest.approx(v * (1 - s) ** 3, rel=1e-7)
    assert feedback_level([4.0, 1.0], [3, 5], 12.0) > 0


@pytest.mark.parametrize(
    ("amounts", "sizes", "bits"), [([], [], 1), ([1], [1, 2], 1), ([0], [1], 1), ([1], [0], 1), ([1], [1], 0)]
)
@pytest.mark.parametrize("allocate", [unbiased_water_filling, feedback_water_filling])
def test_impossible_layers_are_refused(allocate, amounts, sizes, bits):
    with pytest.raises(ValueError, match="layer"):
        allocate(amounts, sizes, bits)
