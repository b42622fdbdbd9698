"""How much is unknown at (m, eta, tau) = (16, .2, 8): a measured kink against the best certified bound."""

import math
from fractions import Fraction

import numpy as np

from bounds import theorems
from bounds.pep import certified_floor

M, ETA, TAU, COPIES, ROUNDS, WARM_UP = 16, 0.2, 8, 400, 150, 50


def measured(seed, kink, *, rare):
    """Stationary mean of F'(xbar)^2 for F' = max(x, -kink) and two-valued noise of variance 1, the large value with
    probability rare; with its standard error.
    """
    rng = np.random.default_rng(seed)
    x, total = np.zeros((COPIES, M)), np.zeros(COPIES)
    large, small = math.sqrt((1 - rare) / rare), -math.sqrt(rare / (1 - rare))
    for r in range(ROUNDS):
        for _ in range(TAU):
            if r >= WARM_UP:
                total += np.maximum(x.mean(1), -kink) ** 2
            x -= ETA * (np.maximum(x, -kink) + np.where(rng.random(x.shape) < rare, large, small))
        x[:] = x.mean(1, keepdims=True)
    runs = total / (TAU * (ROUNDS - WARM_UP))
    return runs.mean(), runs.std(ddof=1) / math.sqrt(COPIES)


def factors(mean):
    """Certified, sharp and published floor over what was measured."""
    at = {"gap": 0.0, "eta": ETA, "L": 1.0, "sigma2": 1.0, "m": M, "tau": TAU, "K": 10**12}
    certified = certified_floor(about="gradient", x=Fraction(1, 5), m=M, tau=TAU)
    published = ETA / M + ETA**2 * (TAU - 1)  # Theorem 1, whose condition does not even hold here
    return [bound / mean for bound in (certified, theorems.pasgd_convex_sharp(**at), published)]


def test_the_unknown_factor_falls_from_24_to_2_6():
    mean, error = measured(5, 0.18, rare=0.5)
    certified, sharp, published = factors(mean)
    assert error < 0.01 * mean
    assert certified * (1 - 6 * error / mean) > 1
    assert certified <= 2.6
    assert 3.5 < sharp < 3.9
    assert 22 < published < 26


def test_skewed_noise_leaves_a_factor_of_two():
    """Rare large steps towards the flat side: a third more than symmetric noise, the hardest case known here."""
    mean, error = measured(6, 0.24, rare=0.05)
    certified, sharp, _ = factors(mean)
    assert certified * (1 - 6 * error / mean) > 1
    assert certified < 2.05
    assert sharp < 2.95
