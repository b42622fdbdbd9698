"""Where local steps do cost something: on a kink the term of tau in Theorem 1 cannot be left out.

On quadratics the mean iterate ignores tau, so no test there can notice that term.  F'(x) = max(L x, -c) with a kink
near the minimiser shifts the mean of the workers against the zero of their mean gradient.
"""

import math

import numpy as np

from bounds import theorems

ETA, TAU, M, COPIES, ROUNDS, WARM_UP = 0.01, 16, 2048, 8, 300, 100
SIGMAS = 20  # Student t with 7 degrees of freedom: two-sided level 2e-7; seeded


def mean_squared_gradients(seed):
    """Stationary mean of F'(xbar)^2 in each of the independent runs, started at the minimiser."""
    generator = np.random.default_rng(seed)
    c = 0.399 * ETA * 2 / 3 * math.sqrt(TAU)  # makes the effect about as large as it can be
    x, total = np.zeros((COPIES, M)), np.zeros(COPIES)
    for r in range(ROUNDS):
        for _ in range(TAU):
            if r >= WARM_UP:
                total += np.maximum(x.mean(1), -c) ** 2
            x -= ETA * (np.maximum(x, -c) + generator.standard_normal(x.shape))
        x[:] = x.mean(1, keepdims=True)
    return total / (TAU * (ROUNDS - WARM_UP))


def test_a_kink_needs_the_term_of_tau_and_respects_it():
    runs = mean_squared_gradients(seed=2024)
    mean, error = runs.mean(), runs.std(ddof=1) / math.sqrt(COPIES)
    at = {"gap": 0.0, "eta": ETA, "L": 1.0, "sigma2": 1.0, "m": M, "K": TAU * ROUNDS}
    assert mean - SIGMAS * error > 5 * theorems.pasgd_convex(tau=1, **at)
    assert mean + SIGMAS * error < theorems.pasgd_convex(tau=TAU, **at) / 5
    assert mean + SIGMAS * error < theorems.pasgd_iterations(tau=TAU, **at) / 10
    assert mean - SIGMAS * error > theorems.pasgd_iterations(tau=TAU, **at) / 40  # the order is attained
