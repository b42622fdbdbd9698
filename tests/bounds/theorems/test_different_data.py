"""Bounds for different data at every worker, against exact runs on different quadratics (model C, with noise)."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bounds import theorems

ROUNDING = 1 + 1e-12
shares = st.floats(1e-3, 1)  # of the largest admissible learning rate
seeds = st.integers(0, 2**32)


def noisy_model_c(seed, *, m, tau, rounds, eta_of, noisiness=1.0):
    """Mean squared gradient at every step, and the constants of the problem along the run, exactly.

    Per coordinate the workers' means move by local descent and their covariance grows between averagings.
    """
    generator = np.random.default_rng(seed)
    eigenvalues, centres = generator.uniform(0.01, 1, (m, 3)), generator.normal(size=(m, 3))
    noise = noisiness * generator.exponential(size=3)
    curvature, L = eigenvalues.mean(0), eigenvalues.max()
    minimiser = (eigenvalues * centres).mean(0) / curvature
    x0 = minimiser + generator.normal(size=3)
    eta = eta_of(L)
    mean, covariance = np.tile(x0, (m, 1)), np.zeros((3, m, m))
    squares, spreads = [], []
    for k in range(tau * rounds):
        centre, variance = mean.mean(0), covariance.mean((1, 2))
        squares.append(curvature**2 @ ((centre - minimiser) ** 2 + variance))
        apart = eigenvalues * (centre - centres) - curvature * (centre - minimiser)
        spreads.append(np.sum(apart**2 + (eigenvalues - curvature) ** 2 * variance) / m)
        shrink = (1 - eta * eigenvalues).T
        mean = mean - eta * eigenvalues * (mean - centres)
        covariance = shrink[:, :, None] * covariance * shrink[:, None, :] + eta**2 * noise[:, None, None] * np.eye(m)
        if (k + 1) % tau == 0:
            mean[:] = mean.mean(0)
            covariance[:] = covariance.mean((1, 2))[:, None, None]
    gap = 0.5 * curvature @ (x0 - minimiser) ** 2
    return np.array(squares), {"gap": gap, "L": L, "sigma2": noise.sum(), "heterogeneity": math.sqrt(max(spreads))}


@given(st.integers(1, 4), st.integers(1, 12), st.integers(1, 20), shares, seeds)
@settings(max_examples=60, deadline=None)
def test_pasgd_heterogeneous_lies_above_model_c_with_noise(m, tau, rounds, share, seed):
    def eta_of(L):
        return share / (L * max(1.0, 2 * math.sqrt(tau * (tau - 1))))

    squares, constants = noisy_model_c(seed, m=m, tau=tau, rounds=rounds, eta_of=eta_of)
    value = theorems.pasgd_heterogeneous(eta=eta_of(constants["L"]), K=tau * rounds, m=m, tau=tau, **constants)
    assert value * ROUNDING >= squares.mean()


@given(st.integers(1, 4), st.integers(1, 6), st.floats(0.2, 0.9), seeds)
@settings(max_examples=15, deadline=None)
def test_koloskova_reaches_the_accuracy(m, tau, relative, seed):
    fixed = {"m": m, "tau": tau, "noisiness": 0.05}
    _, constants = noisy_model_c(seed, rounds=1, eta_of=lambda L: 0.0, **fixed)
    L, sigma2 = constants["L"], constants["sigma2"]
    epsilon = relative * 2 * L * constants["gap"]
    constants["heterogeneity"] = zeta = 2 * constants["heterogeneity"] + 2  # enough for the whole run, checked below
    eta = min(
        1 / (2 * L * tau),
        m * epsilon / (4 * L * sigma2),
        math.sqrt(epsilon / (8 * tau * sigma2)) / L,
        math.sqrt(3 * epsilon / 32) / (L * tau * zeta),
    )
    rounds = math.ceil(theorems.koloskova(epsilon=epsilon, m=m, tau=tau, **constants) / tau)
    squares, along = noisy_model_c(seed, rounds=rounds, eta_of=lambda L: eta, **fixed)
    assert along["heterogeneity"] <= zeta
    assert squares.mean() <= epsilon * ROUNDING


@given(st.integers(2, 4), st.integers(1, 12), st.integers(1, 20), shares, seeds)
@settings(max_examples=60, deadline=None)
def test_khaled_heterogeneous_lies_above_model_c(m, tau, rounds, share, seed):
    generator = np.random.default_rng(seed)
    eigenvalues, centres = generator.uniform(0.01, 1, (m, 3)), generator.normal(size=(m, 3))
    minimiser = (eigenvalues * centres).sum(0) / eigenvalues.sum(0)
    optimum = np.mean(np.sum((eigenvalues * (minimiser - centres)) ** 2, axis=1))
    x0 = generator.normal(size=3)
    L = eigenvalues.max()
    eta = share * min(1 / 4, 1 / (8 * max(tau - 1, 0.5))) / L
    x, total = np.tile(x0, (m, 1)), np.zeros(3)
    for k in range(tau * rounds):
        total += x.mean(0)
        x = x - eta * eigenvalues * (x - centres)
        if (k + 1) % tau == 0:
            x[:] = x.mean(0)
    average = total / (tau * rounds)
    gap = 0.5 * eigenvalues.mean(0) @ (average - minimiser) ** 2
    value = theorems.khaled_heterogeneous(
        R0=np.linalg.norm(x0 - minimiser), eta=eta, K=tau * rounds, m=m, L=L, tau=tau, sigma2_opt=optimum
    )
    assert value * ROUNDING >= gap
