"""FedAdam, FedAdagrad and FedYogi: bounds against exactly enumerated runs on non-convex problems."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounds import AssumptionViolated, theorems

ROUNDING = 1 + 1e-12
NEXT_SQUARE = {
    "fedadam": lambda v, change2, b: b * v + (1 - b) * change2,
    "fedadagrad": lambda v, change2, b: v + change2,
    "fedyogi": lambda v, change2, b: v - (1 - b) * change2 * np.sign(v - change2),
}


def load(name, *, b, L, server_eta, gradient_max):
    """What eta tau times it must not exceed adaptivity."""
    kept = 0 if name == "fedadagrad" else b
    return 4 * math.sqrt(1 - kept) * gradient_max + 2 * L * server_eta / (math.sqrt(b) if name == "fedyogi" else 1)


def mean_gradient(name, start, centres, scales, noise, *, tau, rounds, eta, server_eta, adaptivity, b):
    """The exact mean of |grad F|^2 over rounds and over all signs of the noise of every worker and step.

    F_i(x) is the sum over coordinates of scales (1 - cos(x - centres_i)).
    """
    m = len(centres)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=m * tau * rounds if noise.any() else 0)))
    signs = signs.reshape(len(signs), -1, tau, m) if noise.any() else np.zeros((1, rounds, tau, m))
    x = np.broadcast_to(start, (len(signs), len(start))).copy()
    v, total = np.zeros_like(x), 0.0
    for r in range(rounds):
        total += ((scales * np.sin(x[:, None] - centres)).mean(axis=1) ** 2).sum(axis=1).mean()
        local = np.repeat(x[:, None], m, axis=1)
        for t in range(tau):
            local = local - eta * (scales * np.sin(local - centres) + signs[:, r, t, :, None] * noise)
        change = (local - x[:, None]).mean(axis=1)
        v = NEXT_SQUARE[name](v, change**2, b)
        x = x + server_eta * change / (np.sqrt(v) + adaptivity)
    return total / rounds


def ratio(name, seed, *, shape, share, b):
    """The exact value over the bound, for a drawn problem whose adaptivity is its least one over ``share``.

    The two halves of the workers have opposite centres, so that the least value of F is known.
    """
    m, tau, rounds = shape
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 3))
    half = rng.uniform(-1.5, 1.5, (m // 2, d))
    centres = np.concatenate([half, -half, np.zeros((m % 2, d))])
    scales, start = rng.uniform(0.2, 1, d), rng.uniform(-3, 3, d)
    noise = rng.uniform(0, 1, d) * (m * tau * rounds <= 12) * rng.integers(0, 2)
    at = {"L": scales.max(), "gradient_max": (scales + noise).max(), "server_eta": 10 ** rng.uniform(-2, 1)}
    eta = 10 ** rng.uniform(-2, 1)
    adaptivity = eta * tau * load(name, b=b, **at) / share
    exact = mean_gradient(
        name,
        start,
        centres,
        scales,
        noise,
        tau=tau,
        rounds=rounds,
        eta=eta,
        server_eta=at["server_eta"],
        adaptivity=adaptivity,
        b=b,
    )
    sigma2 = (noise**2).sum()
    gap = (scales * np.cos(centres).mean(axis=0) * (1 - np.cos(start))).sum()  # cos(centres) is positive
    at |= {"gap": gap, "eta": eta, "adaptivity": adaptivity, "G": math.sqrt((scales**2).sum() + sigma2)}
    at |= {"sigma2": sigma2, "tau": tau, "m": m, "rounds": rounds}
    at |= {} if name == "fedadagrad" else {"server_decay": b}
    return exact / (getattr(theorems, name)(**at) * ROUNDING)


SHAPES = [(1, 1, 6), (1, 3, 3), (2, 1, 4), (2, 2, 2), (2, 3, 2), (3, 2, 2), (2, 5, 40), (4, 20, 60)]


RUNS = given(st.integers(0, 2**32 - 1), st.sampled_from(SHAPES), st.floats(0.01, 1 - 1e-12), st.floats(0.01, 1 - 1e-9))


@RUNS
def test_fedadam_lies_above_enumerated_runs(seed, shape, share, b):
    assert ratio("fedadam", seed, shape=shape, share=share, b=b) <= 1


@RUNS
def test_fedadagrad_lies_above_enumerated_runs(seed, shape, share, b):
    assert ratio("fedadagrad", seed, shape=shape, share=share, b=b) <= 1


@RUNS
def test_fedyogi_lies_above_enumerated_runs(seed, shape, share, b):
    assert ratio("fedyogi", seed, shape=shape, share=share, b=b) <= 1


@pytest.mark.parametrize(
    ("name", "seed", "share", "b"),
    [
        ("fedadam", 1941148438, 0.947, 0.529),
        ("fedadagrad", 2916455170, 0.601, 0.593),
        ("fedyogi", 3556783858, 0.893, 0.997),
    ],
)
def test_half_of_a_bound_is_exceeded(name, seed, share, b):
    assert ratio(name, seed, shape=(1, 1, 6), share=share, b=b) > 0.5


@pytest.mark.parametrize(
    ("name", "rounds", "step_over_adaptivity", "server_eta"),
    [("fedadam", 2000, 3.9, 1e-3), ("fedyogi", 2000, 3.9, 1e-3), ("fedadagrad", 1000, 0.24, 0.03)],
)
def test_a_long_run_exceeds_a_bound_without_its_growing_denominator(name, rounds, step_over_adaptivity, server_eta):
    """One worker without noise goes down a cosine, while v grows to its limit."""
    sizes = {"eta": step_over_adaptivity, "server_eta": server_eta, "adaptivity": 1.0, "tau": 1, "rounds": rounds}
    b, one = 1 - 1 / 16**2, np.ones(1)
    exact = mean_gradient(name, one * math.pi / 2, np.zeros((1, 1)), one, np.zeros(1), b=b, **sizes)
    at = sizes | {"gap": 1, "L": 1, "G": 1, "gradient_max": 1, "sigma2": 0, "m": 1}
    bound = getattr(theorems, name)(**at | ({} if name == "fedadagrad" else {"server_decay": b}))
    without = 2 / (server_eta * step_over_adaptivity * rounds)
    assert without < exact <= bound


SLOW = {"gap": 2.0, "eta": 0.01, "L": 1.0, "G": 3.0, "gradient_max": 2.0, "sigma2": 1.0, "tau": 5, "m": 4, "rounds": 50}


@pytest.mark.parametrize("name", NEXT_SQUARE)
def test_without_adaptation_it_is_local_sgd_with_twice_the_noise(name):
    """The server divides by a large constant, which its learning rate makes up for."""
    at = SLOW | {"adaptivity": 1e12, "server_eta": 1e12}
    at |= {} if name == "fedadagrad" else {"server_decay": 1 - 1e-12}
    sgd = theorems.pasgd_iterations(gap=2, eta=0.01, L=1, sigma2=2, tau=1, m=4, K=250)
    drift = 0.01**2 * 3**2 * (1 + 4 + 9 + 16) / 5
    assert getattr(theorems, name)(**at) == pytest.approx(sgd + drift, rel=1e-9)


@pytest.mark.parametrize("name", NEXT_SQUARE)
def test_the_published_step_sizes_have_the_published_order(name):
    """1/sqrt(m tau R) for m workers, tau steps and R rounds: four times as many of either halve the bound."""

    def at(m, tau, rounds):
        eta, server_eta = 1 / (tau * math.sqrt(rounds)), math.sqrt(m * tau)
        sizes = {"m": m, "tau": tau, "rounds": rounds, "eta": eta, "server_eta": server_eta, "adaptivity": 3.0}
        return SLOW | sizes | ({} if name == "fedadagrad" else {"server_decay": 0.5})

    one, *others = (
        getattr(theorems, name)(**at(*sizes))
        for sizes in ((4, 4, 10**10), (16, 4, 10**10), (4, 16, 10**10), (4, 4, 4 * 10**10))
    )
    assert [one / other for other in others] == pytest.approx([2, 2, 2], rel=0.05)


def test_the_bound_tells_where_the_step_is_too_large():
    at = SLOW | {"adaptivity": 1.0, "server_eta": 1.0, "server_decay": 0.64}
    with pytest.raises(AssumptionViolated):
        theorems.fedadam(**at | {"eta": 0.2})
