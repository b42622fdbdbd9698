"""Every proved bound with a memory lies above the exact value on random quadratics.

Exact expectations use the compressor that keeps everything with probability 1 - alpha and nothing otherwise: its
contraction constant is tight.  Top-k is not linear; there a noiseless run is the exact value.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bounds import theorems
from bounds.dynamics import Quadratic, linear
from bounds.dynamics.geometric import excess, geometric_sum, power

ROUNDING = 1 + 1e-12
drawn = settings(max_examples=60, deadline=None)

seeds = st.integers(0, 2**32)
shares = st.floats(1e-3, 1)
alphas = st.floats(0.01, 0.99)


def random_quadratic(seed, d=3):
    generator = np.random.default_rng(seed)
    return Quadratic(10 ** generator.uniform(-2, 0.5, d), generator.normal(size=d), generator.exponential(size=d))


def run_with_memory(problem, *, eta, m, tau, alpha, rounds):
    """Exact run of local SGD with memory: mean squared local gradient, largest E|g|^2 and largest E|memory|^2."""
    lam = problem.eigenvalues
    shrink, spread = (1 - eta * lam) ** tau, geometric_sum(excess(eta * lam), tau)
    transitions, weights = [], []
    added = np.zeros((3, m + 1, m + 1))
    for weight, pattern in linear.keep_patterns(m, 1 - alpha):
        A = np.zeros((3, m + 1, m + 1))  # of the error and the memories
        A[:, 0, 0] = 1
        share = np.zeros(m + 1)  # how one worker's noise enters
        for i, kept in enumerate(pattern, start=1):
            share[:] = 0
            share[0] = kept / m
            share[i] = -(1 - kept)
            A[:, 0, 0] -= kept / m * (1 - shrink)
            A[:, 0, i] = -kept / m
            A[:, i, 0] = (1 - kept) * (1 - shrink)
            A[:, i, i] = 1 - kept
            added += weight * (eta**2 * problem.noise * spread)[:, None, None] * np.outer(share, share)
        transitions.append(A)
        weights.append(weight)
    moments = np.zeros((3, m + 1, m + 1))
    moments[:, 0, 0] = problem.start**2
    gradients, memory = [], 0.0
    for _ in range(rounds):
        for k in range(tau):
            y = excess(eta * lam)
            local = power(y, k) * moments[:, 0, 0] + eta**2 * problem.noise * geometric_sum(y, k)
            gradients.append(lam**2 @ local)
        moments = linear.step(moments, transitions, weights, added)
        memory = max(memory, moments[:, 1, 1].sum())
    return np.mean(gradients), max(gradients) + problem.sigma2, memory


@given(seeds, st.integers(1, 3), st.integers(1, 40), shares, alphas)
@drawn
def test_ef_memory_lies_above_the_exact_memory(seed, m, K, share, alpha):
    problem = random_quadratic(seed)
    eta = share / problem.L
    _, largest, memory = run_with_memory(problem, eta=eta, m=m, tau=1, alpha=alpha, rounds=K)
    bound = theorems.ef_memory(eta=eta, G=math.sqrt(largest), alpha=alpha)
    assert memory <= bound * ROUNDING
    assert bound <= 4 * alpha / (1 - alpha) ** 2 * eta**2 * largest * ROUNDING  # the usual constant is never sharper


@given(seeds, st.integers(1, 3), st.integers(1, 40), shares, alphas)
@drawn
def test_ef_sgd_lies_above_the_exact_value(seed, m, K, share, alpha):
    problem = random_quadratic(seed)
    eta = share / problem.L
    exact, largest, _ = run_with_memory(problem, eta=eta, m=m, tau=1, alpha=alpha, rounds=K)
    value = theorems.ef_sgd(gap=problem.gap, eta=eta, K=K, L=problem.L, G=math.sqrt(largest), alpha=alpha)
    assert value * ROUNDING >= exact


@given(seeds, st.integers(1, 3), st.integers(1, 6), st.integers(1, 10), shares, alphas)
@drawn
def test_qsparse_lies_above_the_exact_value(seed, m, tau, rounds, share, alpha):
    problem = random_quadratic(seed)
    eta = share / (2 * problem.L)
    exact, largest, _ = run_with_memory(problem, eta=eta, m=m, tau=tau, alpha=alpha, rounds=rounds)
    value = theorems.qsparse(
        gap=problem.gap,
        eta=eta,
        K=tau * rounds,
        L=problem.L,
        G=math.sqrt(largest),
        alpha=alpha,
        m=m,
        tau=tau,
        sigma2=problem.sigma2,
    )
    assert value * ROUNDING >= exact


@given(
    seeds,
    st.integers(1, 3),
    st.integers(1, 6),
    st.tuples(st.integers(1, 10), st.integers(1, 10)),
    st.floats(0, 1),
    shares,
    alphas,
)
@drawn
def test_qsparse_wall_clock_lies_above_the_exact_value(seed, m, tau, counts, chance, share, alpha):
    """Either of two numbers of rounds, independent of the gradients: what is bounded is the mean over both."""
    problem = random_quadratic(seed)
    eta = share / (2 * problem.L)
    runs = [run_with_memory(problem, eta=eta, m=m, tau=tau, alpha=alpha, rounds=rounds) for rounds in counts]
    inverse = chance / counts[0] + (1 - chance) / counts[1]
    value = theorems.qsparse_wall_clock(
        gap=problem.gap,
        eta=eta,
        inverse_rounds=min(inverse, 1.0),
        L=problem.L,
        G=math.sqrt(max(largest for _, largest, _ in runs)),
        alpha=alpha,
        m=m,
        tau=tau,
        sigma2=problem.sigma2,
    )
    assert value * ROUNDING >= chance * runs[0][0] + (1 - chance) * runs[1][0]


@given(seeds, st.integers(1, 3), st.integers(1, 6), st.integers(1, 10), st.floats(1e-3, 0.999), alphas)
@drawn
def test_pasgd_memory_lies_above_the_exact_value(seed, m, tau, rounds, share, alpha):
    problem = random_quadratic(seed)
    eta = share / problem.L
    exact, largest, _ = run_with_memory(problem, eta=eta, m=m, tau=tau, alpha=alpha, rounds=rounds)
    at = {"gap": problem.gap, "eta": eta, "K": tau * rounds, "L": problem.L, "G": math.sqrt(largest), "alpha": alpha}
    at |= {"m": m, "tau": tau, "sigma2": problem.sigma2}
    value = theorems.pasgd_memory(**at)
    assert value * ROUNDING >= exact
    if share <= 1 / 2:
        assert value <= theorems.qsparse(**at) * ROUNDING  # never above the published form


@given(seeds, st.integers(1, 3), alphas, st.floats(0.02, 0.9))
@drawn
def test_ef21_reaches_the_accuracy(seed, m, alpha, relative):
    generator = np.random.default_rng(seed)
    eigenvalues, start = generator.uniform(0.05, 1, (m, 3)), generator.normal(size=3)
    L, mean = eigenvalues.max(), eigenvalues.mean(0)
    gap = 0.5 * mean @ start**2
    epsilon, eta = relative * 2 * L * gap, (1 - math.sqrt(alpha)) / L
    transitions, weights = [], []
    for weight, pattern in linear.keep_patterns(m, 1 - alpha):
        A = np.zeros((3, m + 1, m + 1))  # of the error and the gradient estimates minus their limits
        A[:, 0, 0], A[:, 0, 1:] = 1, -eta / m
        for i, kept in enumerate(pattern, start=1):
            A[:, i, i] = 1 - kept
            A[:, i] += kept * eigenvalues[i - 1][:, None] * A[:, 0]
        transitions.append(A)
        weights.append(weight)
    state = np.concatenate([start[:, None], (eigenvalues * start).T], axis=1)
    moments = np.einsum("ja,jb->jab", state, state)
    count, total = math.ceil(theorems.ef21(L=L, gap=gap, epsilon=epsilon, alpha=alpha)), 0.0
    for _ in range(count):
        total += mean**2 @ moments[:, 0, 0]
        moments = linear.step(moments, transitions, weights)
    assert total / count <= epsilon * ROUNDING


def top_k_run(problem, *, eta, k, K):
    """A noiseless run of one worker: mean squared gradient and the largest squared gradient."""
    error, memory, squares = problem.start.copy(), np.zeros_like(problem.start), []
    for _ in range(K):
        gradient = problem.eigenvalues * error
        squares.append(gradient @ gradient)
        pending = eta * gradient + memory
        sent = np.where(np.argsort(np.argsort(-np.abs(pending))) < k, pending, 0)
        memory, error = pending - sent, error - sent
    return np.mean(squares), max(squares)


@given(seeds, st.integers(1, 8), st.integers(1, 200), shares)
@drawn
def test_topk_sgd_lies_above_a_noiseless_run(seed, k, K, share):
    problem = random_quadratic(seed, d=8)
    eta = share / problem.L
    exact, largest = top_k_run(problem, eta=eta, k=k, K=K)
    at = {"gap": problem.gap, "eta": eta, "K": K, "L": problem.L, "G": math.sqrt(largest), "kept": k, "d": 8}
    assert theorems.topk_sgd(**at, topk_gap=0) * ROUNDING >= exact


@given(seeds, st.integers(1, 8), st.integers(1, 200), shares)
@drawn
def test_gtopk_sgd_lies_above_a_noiseless_run(seed, k, K, share):
    problem = random_quadratic(seed, d=8)
    eta = share / problem.L
    exact, largest = top_k_run(problem, eta=eta, k=k, K=K)
    at = {"gap": problem.gap, "eta": eta, "K": K, "L": problem.L, "G": math.sqrt(largest), "kept": k, "d": 8}
    assert theorems.gtopk_sgd(**at) * ROUNDING >= exact


def test_without_topk_gap_both_topk_bounds_agree():
    at = {"gap": 1.0, "eta": 0.1, "K": 50, "L": 1.0, "G": 2.0, "kept": 5, "d": 100}
    assert theorems.topk_sgd(**at, topk_gap=0) == pytest.approx(theorems.gtopk_sgd(**at), rel=1e-13)
