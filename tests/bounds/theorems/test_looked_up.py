"""Late gradients, partial participation, close inputs and noise under EF21: bounds against exact values."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounds import theorems

ROUNDING = 1 + 1e-12


@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.floats(0.02, 1))
def test_stale_sgd_lies_above_quadratics_with_any_delays(seed, staleness, share):
    """Every iterate is linear in the start and in the noises, for a drawn sequence of delays."""
    rng = np.random.default_rng(seed)
    curvature, K, start, sigma2 = rng.uniform(0.05, 1), 40, rng.normal(), rng.uniform(0, 2)
    eta = share * 2 / (1 + math.sqrt(1 + 8 * staleness**2))  # eta + 2 eta^2 delta^2 = 1 at share 1
    x = np.zeros((K + 1, K + 1))  # row k: coefficients of the start and of the noises
    x[0, 0] = 1
    for k in range(K):
        x[k + 1] = x[k] - eta * curvature * x[k - int(rng.integers(0, min(staleness, k) + 1))]
        x[k + 1, k + 1] -= eta
    squares = (x[:K, 0] * start) ** 2 + sigma2 * (x[:K, 1:] ** 2).sum(axis=1)
    bound = theorems.stale_sgd(gap=curvature * start**2 / 2, eta=eta, L=1, sigma2=sigma2, staleness=staleness, K=K)
    assert curvature**2 * squares.mean() <= bound * ROUNDING


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.floats(0.05, 0.9), st.floats(0.05, 1))
def test_ef21_noise_lies_above_quadratics(seed, m, alpha, share):
    """Messages are sent with probability 1 - alpha; the second moments of models and memories are exact."""
    rng = np.random.default_rng(seed)
    curvature, start, sigma2, K = rng.uniform(0.05, 1, m), rng.normal(), rng.uniform(0, 1), 60
    load = alpha / (1 - math.sqrt(alpha)) ** 2
    eta = share * 2 / (1 + math.sqrt(1 + 8 * load))
    moments = np.outer(*[start * np.append(1.0, curvature)] * 2)
    step = np.append(1.0, np.full(m, -eta / m))
    total = 0.0
    for _ in range(K):
        total += curvature.mean() ** 2 * moments[0, 0]
        after = np.zeros_like(moments)
        for kept in itertools.product((0, 1), repeat=m):
            weight = math.prod(1 - alpha if k else alpha for k in kept)
            A = np.vstack([step, np.eye(m + 1)[1:]])
            for i, k in enumerate(kept):
                if k:
                    A[i + 1] = curvature[i] * step
            after += weight * (A @ moments @ A.T + sigma2 * np.diag([0.0, *kept]))
        moments = after
    gap = curvature.mean() * start**2 / 2
    assert total / K <= theorems.ef21_noise(gap=gap, eta=eta, L=1, sigma2=sigma2, K=K, alpha=alpha) * ROUNDING


def test_ef21_noise_is_not_averaged_out():
    """At a fixed learning rate the stationary error of the memory is the same for one and for four workers."""
    at = {"gap": 0, "eta": 0.2, "L": 1, "sigma2": 1, "K": 10**9, "alpha": 0.25}
    assert theorems.ef21_noise(**at) == pytest.approx(18)
    assert "m" not in {symbol.name for symbol in theorems.ef21_noise.parameters}


@pytest.mark.parametrize(("m", "participants"), [(2, 1), (4, 1), (5, 2), (6, 5), (6, 6)])
def test_partial_participation_error_reaches_the_enumerated_one(m, participants):
    x = np.random.default_rng(m).normal(size=(m, 3))
    errors = [
        ((x[list(chosen)].mean(axis=0) - x.mean(axis=0)) ** 2).sum()
        for chosen in itertools.combinations(range(m), participants)
    ]
    at = {"mean_square": (x**2).sum(axis=1).mean(), "square_of_mean": (x.mean(axis=0) ** 2).sum()}
    value = theorems.partial_participation_error(m=m, participants=participants, **at)
    assert value == pytest.approx(np.mean(errors), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("word_bits", [2, 3, 5])
def test_close_inputs_error_reaches_the_exact_one(word_bits):
    """The mean over a grid of dithers, whose square is off by one over the squared number of its points."""
    q, distance, points = 2**word_bits, 0.7, 20_000
    h = 2 * distance / (q - 1)
    u = (np.arange(points) + 0.5) / points
    for x, y in ((3.1, 3.1 + 0.699), (-20.3, -20.3 - 0.699), (0.05, 0.0)):
        sent = np.round(x / h + u) % q
        near = y / h + u
        k = sent + q * np.round((near - sent) / q)
        error = ((k - u) * h - x) ** 2
        value = theorems.close_inputs_error(d=1, distance=distance, m=1, word_bits=word_bits)
        assert error.mean() == pytest.approx(value, rel=1e-3)
        assert np.abs((k - u) * h - x).max() <= h / 2 * ROUNDING


def test_inputs_that_are_too_far_are_decoded_wrongly():
    q, distance = 4, 0.5
    h = 2 * distance / (q - 1)
    sent = round(1.0 / h) % q
    assert (sent + q * round((0.0 - sent) / q)) * h != pytest.approx(1.0, abs=h)


@pytest.mark.parametrize("spread", [0.0, 0.05, 0.4])
def test_correlated_bits_stay_below_the_recalled_error(spread):
    """All permutations of four workers, and their offsets on a grid."""
    m = 4
    x = 0.43 + spread * np.array([-1, -0.5, 0.5, 1]) / 2
    offsets = (np.arange(8) + 0.5) / 8
    grid = np.stack(np.meshgrid(*[offsets] * m), axis=-1).reshape(-1, m)
    errors = [
        np.mean((((np.array(order) + grid) / m < x).mean(axis=1) - x.mean()) ** 2)
        for order in itertools.permutations(range(m))
    ]
    deviation = np.abs(x - x.mean()).mean()
    bound = theorems.correlated_bit_error(value_range=1, mean_deviation=deviation, m=m)
    assert np.mean(errors) <= bound
    assert np.mean(errors) < 1 / (4 * m)  # below independent roundings of numbers near the middle


def test_recalled_methods_reduce_to_what_they_generalise():
    at = {"L": 1, "gap": 1, "sigma2": 1, "m": 8, "epsilon": 0.1}
    everyone = theorems.scaffold(**at, participants=8, tau=5)
    assert everyone == pytest.approx(1 / 8 / 0.01 + 5 / 0.1)
    assert theorems.scaffold(**at, participants=2, tau=5) > everyone

    nova = {"gap": 1, "eta": 0.05, "L": 1, "sigma2": 1, "m": 4, "K": 100}
    for tau in (1, 2, 5):
        proved = theorems.pasgd_heterogeneous(**nova, tau=tau, heterogeneity=0.5)
        recalled = theorems.fednova(**nova, tau=tau, heterogeneity=0.5)
        assert proved / 3 <= recalled <= proved  # the constants that FedNova's order leaves out

    no_momentum = theorems.slowmo(gap=1, L=1, sigma2=1, m=4, K=400, tau=5, block_momentum_factor=0)
    assert no_momentum == pytest.approx((2 + 4) / 40)
    assert theorems.slowmo(gap=1, L=1, sigma2=1, m=4, K=400, tau=5, block_momentum_factor=0.5) > no_momentum

    chance = math.sqrt(1 / 100)
    assert theorems.locodl(kappa=100, omega=1e-12, sync_probability=chance, epsilon=0.01) == pytest.approx(
        2 * 100 * math.log(100)
    )
