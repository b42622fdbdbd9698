"""Every proved rate of a compressed method lies above the exact value on random quadratics.

The compressor is the Bernoulli sparsifier, coordinate by coordinate: unbiased with E(C(v) - v)^2 = omega v^2, so its
constant is tight.  Each coordinate then is a short linear recursion with random coefficients.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bounds import theorems
from bounds.dynamics import Quadratic, additive, linear
from bounds.dynamics.geometric import excess, geometric_sum, repeated
from bounds.theorems.compressed_gradients import layer_sums

ROUNDING = 1 + 1e-12
drawn = settings(max_examples=80, deadline=None)

seeds = st.integers(0, 2**32)
workers = st.integers(1, 40)
steps = st.integers(1, 400)
shares = st.floats(1e-3, 1)
omegas = st.floats(1e-3, 100)


def random_quadratic(seed, d=3):
    generator = np.random.default_rng(seed)
    return Quadratic(10 ** generator.uniform(-2, 1, d), generator.normal(size=d), generator.exponential(size=d))


@given(seeds, st.integers(1, 5), steps, shares, omegas)
@drawn
def test_dcgd_lies_above_the_exact_distance(seed, m, K, share, omega):
    generator = np.random.default_rng(seed)
    eigenvalues, gradients = generator.uniform(0.01, 1, (m, 3)), generator.normal(size=(m, 3))
    gradients -= gradients.mean(0)  # grad F_i at the common minimiser 0
    L, mu = eigenvalues.max(), eigenvalues.mean(0).min()
    eta = share / (L * (1 + 2 * omega / m))
    mean, second = generator.normal(size=3), None
    R0, second = np.linalg.norm(mean), mean**2
    for _ in range(K):
        squares = (eigenvalues**2 * second + 2 * eigenvalues * gradients * mean + gradients**2).mean(0)
        shrink = 1 - eta * eigenvalues.mean(0)
        mean, second = shrink * mean, shrink**2 * second + eta**2 * omega / m * squares
    optimum = (gradients**2).sum(1).mean()
    value = theorems.dcgd(R0=R0, eta=eta, K=K, L=L, mu=mu, omega=omega, m=m, sigma2_opt=optimum)
    assert value * ROUNDING >= second.sum()


@given(seeds, workers, omegas, st.floats(1e-6, 0.9))
@drawn
def test_dcgd_iterations_reach_the_accuracy(seed, m, omega, epsilon):
    problem = random_quadratic(seed)
    eta = 1 / (problem.L * (1 + omega / m))
    x = eta * problem.eigenvalues
    count = math.ceil(theorems.dcgd_iterations(kappa=problem.L / problem.mu, omega=omega, m=m, epsilon=epsilon))
    left = ((1 - x) ** 2 + omega / m * x**2) ** count @ problem.start**2
    assert left <= epsilon * problem.R0**2 * ROUNDING


def transition_power(transitions, weights, count):
    """The map of vec(E z z^T) over many steps, per coordinate."""
    one = sum(
        weight * np.einsum("jab,jcd->jacbd", A, A).reshape(len(A), A.shape[1] ** 2, -1)
        for weight, A in zip(weights, transitions, strict=True)
    )
    return np.linalg.matrix_power(one, count)


def diana_moments(eigenvalues, omega, start, count):
    """E z z^T after so many steps of DIANA, per coordinate; z = (x - x*, h_i - grad F_i(x*)), start of shape (d, m+1).

    eigenvalues : of F_i, shape (m, d).
    """
    m, d = eigenvalues.shape
    eta, rate = 1 / (eigenvalues.max() * (1 + 6 * omega / m)), 1 / (1 + omega)
    transitions, weights = [], []
    for weight, pattern in linear.keep_patterns(m, 1 / (1 + omega)):
        A = np.zeros((d, m + 1, m + 1))
        A[:, 0, 0] = 1
        for i, kept in enumerate(pattern, start=1):
            message = np.zeros((d, m + 1))
            message[:, 0], message[:, i] = eigenvalues[i - 1], -1
            message *= kept * (1 + omega)
            A[:, i] = rate * message
            A[:, i, i] += 1
            A[:, 0] -= eta / m * message
            A[:, 0, i] -= eta / m
        transitions.append(A)
        weights.append(weight)
    vec = np.einsum("ja,jb->jab", start, start).reshape(d, -1, 1)
    return (transition_power(transitions, weights, count) @ vec).reshape(d, m + 1, m + 1)


@given(seeds, st.integers(1, 3), st.floats(1e-2, 30), st.floats(1e-4, 0.9))
@drawn
def test_diana_reaches_the_accuracy(seed, m, omega, epsilon):
    generator = np.random.default_rng(seed)
    eigenvalues = generator.uniform(0.05, 1, (m, 3))
    L, mu = eigenvalues.max(), eigenvalues.mean(0).min()
    eta = 1 / (L * (1 + 6 * omega / m))
    start = generator.normal(size=(3, m + 1))
    lyapunov = np.diag([1, *[4 * omega * eta**2 * (1 + omega) / m / m] * m])
    count = math.ceil(theorems.diana(kappa=max(L / mu, 1), omega=omega, m=m, epsilon=epsilon))
    left = np.sum(lyapunov * diana_moments(eigenvalues, omega, start, count))
    assert left <= epsilon * np.sum(lyapunov * diana_moments(eigenvalues, omega, start, 0)) * ROUNDING


def exact_shifts(eigenvalues, error):
    """z at x_0 - x* = error with h_i = grad F_i(x_0)."""
    return np.column_stack([error, *(eigenvalues * error)])


@given(seeds, st.integers(1, 3), st.floats(1e-2, 100), st.floats(1e-4, 0.9), st.booleans())
@drawn
def test_diana_distance_reaches_the_accuracy_from_exact_shifts(seed, m, omega, epsilon, equal):
    generator = np.random.default_rng(seed)
    eigenvalues = np.ones((m, 3)) if equal else 10 ** generator.uniform(-2, 0, (m, 3))
    kappa = eigenvalues.max() / eigenvalues.mean(0).min()
    start = exact_shifts(eigenvalues, generator.normal(size=3))
    count = math.ceil(theorems.diana_distance(kappa=max(kappa, 1), omega=omega, m=m, epsilon=epsilon))
    left = diana_moments(eigenvalues, omega, start, count)[:, 0, 0].sum()
    assert left <= epsilon * np.sum(start[:, 0] ** 2) * ROUNDING


@pytest.mark.parametrize(("distance", "ratio"), [(0.1, 0.32), (0.03, 3.46), (0.01, 31.0)])
def test_the_rate_of_the_potential_is_none_of_the_distance(distance, ratio):
    """Two workers with minimisers at +-1, x* = 0, shifts that start at 0: a tenth of Psi is no tenth of |x|^2."""
    eigenvalues, at = np.ones((2, 1)), {"kappa": 1, "omega": 9, "m": 2, "epsilon": 0.1}
    count = math.ceil(theorems.diana(**at))
    wrong = diana_moments(eigenvalues, 9.0, np.array([[distance, 1.0, -1.0]]), count)[0, 0, 0]
    assert (count, wrong / distance**2) == (65, pytest.approx(ratio, rel=0.02))

    enough = math.ceil(theorems.diana_distance(**at))
    assert enough == 71
    start = exact_shifts(eigenvalues, np.array([distance]))
    assert diana_moments(eigenvalues, 9.0, start, enough)[0, 0, 0] <= 0.1 * distance**2


@given(seeds, st.integers(1, 3), st.floats(1e-2, 30), st.floats(0.02, 1), st.floats(0.01, 0.9))
@drawn
def test_marina_reaches_the_accuracy(seed, m, omega, p, relative):
    problem = random_quadratic(seed)
    lam = problem.eigenvalues
    root = math.sqrt((1 - p) * omega / (p * m))
    eta = 1 / (problem.L * (1 + root))
    epsilon = relative * 2 * problem.L * problem.gap
    transitions, weights = [], []

    def move(share):  # (error, estimate) when the change of the gradient is sent ``share`` times; None: in full
        A = np.zeros((3, 2, 2))
        A[:, 0, 0], A[:, 0, 1] = 1, -eta
        A[:, 1, 1] = 1 - share * lam * eta if share is not None else -lam * eta
        A[:, 1, 0] = lam if share is None else 0
        return A

    transitions.append(move(None))
    weights.append(p)
    for weight, pattern in linear.keep_patterns(m, 1 / (1 + omega)):
        transitions.append(move(sum(pattern) * (1 + omega) / m))
        weights.append((1 - p) * weight)
    start = np.stack([problem.start, lam * problem.start], axis=1)
    moments = np.einsum("ja,jb->jab", start, start)
    count = math.ceil(
        theorems.marina(L=problem.L, gap=problem.gap, epsilon=epsilon, omega=omega, m=m, sync_probability=p)
    )
    total = 0.0
    for _ in range(count):
        total += lam**2 @ moments[:, 0, 0]
        moments = linear.step(moments, transitions, weights)
    assert total / count <= epsilon * ROUNDING


@given(seeds, workers, steps, shares, st.integers(1, 8), st.integers(1, 1000))
@drawn
def test_qsgd_lies_above_the_exact_gap(seed, m, K, share, levels, d):
    problem = random_quadratic(seed)
    omega = min(d / levels**2, math.sqrt(d) / levels)
    eta = share / (problem.L * (1 + omega / m))
    x = eta * problem.eigenvalues
    moments = repeated(excess(x) + omega / m * x**2, (1 + omega) * eta**2 * problem.noise / m, problem.start**2, K)
    value = theorems.qsgd(R0=problem.R0, eta=eta, K=K, L=problem.L, d=d, levels=levels, sigma2=problem.sigma2, m=m)
    assert value * ROUNDING >= problem.eigenvalues @ moments / (2 * K)


@given(seeds, steps, st.floats(1e-3, 1.9))
@drawn
def test_terngrad_exceeds_the_exact_distance_in_one_dimension_by_its_transient_only(seed, K, share):
    problem = random_quadratic(seed, d=1)  # where TernGrad is exact and |g|_inf |g|_1 = g^2
    mu = problem.L
    eta = share / mu
    exact = additive.squared_distance(problem, eta=eta, m=1, k=K)
    value = theorems.terngrad(R0=problem.R0, eta=eta, K=K, mu=mu, max_norm_floor=problem.sigma2, max_norm_growth=mu**2)
    transient = (1 - share) ** (2 * K)  # the recursion is exact; the bound only rounds up its geometric sum
    floor = eta * problem.sigma2 / (2 * mu - eta * mu**2)
    assert value - transient * floor == pytest.approx(exact, rel=1e-9)


@given(seeds, workers, steps, shares)
@drawn
def test_layerwise_sgd_lies_above_the_exact_value(seed, m, K, share):
    problem = random_quadratic(seed)
    generator = np.random.default_rng(seed + 1)
    worker, master = generator.exponential(5, 3), generator.exponential(5, 3)  # every coordinate its own layer
    sums = layer_sums(worker, master, problem.noise, m=m)
    eta = share / (problem.L * sums["layer_load"])
    lam = problem.eigenvalues
    growth = eta**2 * lam**2 * (1 + master) * (1 + worker / m) - 2 * eta * lam
    added = eta**2 * (1 + master) * (1 + worker) * problem.noise / m
    exact = lam**2 @ repeated(growth, added, problem.start**2, K) / K
    value = theorems.layerwise_sgd(gap=problem.gap, eta=eta, K=K, L=problem.L, m=m, **sums)
    assert value * ROUNDING >= exact


@given(seeds, st.integers(1, 3), steps, shares, st.floats(0.01, 1))
@drawn
def test_proxskip_lies_above_the_exact_lyapunov_function(seed, m, K, share, p):
    generator = np.random.default_rng(seed)
    eigenvalues, noise = generator.uniform(0.05, 1, (m, 3)), generator.exponential(size=3)
    L, mu = eigenvalues.max(), eigenvalues.min()
    eta = share / L
    local = np.zeros((3, 2 * m, 2 * m))  # of the iterates and the control variates, both minus their limits
    local[:, :m, m:] = eta * np.eye(m)
    local[:, m:, m:] = np.eye(m)
    local[:, range(m), range(m)] = 1 - eta * eigenvalues.T
    average = np.zeros((2 * m, 2 * m))
    average[:m, :m] = average_shift = np.full((m, m), 1 / m)
    average[:m, m:] = -eta / p * average_shift
    average[m:, :m] = p / eta * (average_shift - np.eye(m))
    average[m:, m:] = np.eye(m) - average_shift
    added = np.zeros((3, 2 * m, 2 * m))
    added[:, range(m), range(m)] = eta**2 * noise[:, None]
    weights = np.r_[np.full(m, 1 / m), np.full(m, (eta / p) ** 2 / m)]

    start = generator.normal(size=(3, 2 * m))
    moments = np.einsum("ja,jb->jab", start, start)
    psi0 = float(np.sum(weights * start**2))
    for _ in range(K):
        moments = linear.step(moments, [local], [1.0], added)
        moments = linear.step(moments, [np.eye(2 * m), average], [1 - p, p])
    exact = np.einsum("jaa,a->", moments, weights)
    value = theorems.proxskip(eta=eta, mu=mu, L=L, K=K, psi0=psi0, sigma2=noise.sum(), sync_probability=p)
    assert value * ROUNDING >= exact


def test_entire_model_constants_are_never_better_than_layer_wise_ones():
    layers = layer_sums([1.0, 3.0], [0.5, 0.1], [2.0, 1.0], m=4)
    entire = layer_sums([3.0, 3.0], [0.5, 0.5], [2.0, 1.0], m=4)
    assert layers["layer_load"] <= entire["layer_load"]
    assert layers["layer_noise"] <= entire["layer_noise"]


def test_layer_sums_refuse_incomplete_layers():
    with pytest.raises(ValueError, match="each layer needs two constants and a variance"):
        layer_sums([1.0], [1.0, 2.0], [1.0], m=2)
    with pytest.raises(ValueError, match="must be >= 0"):
        layer_sums([-1.0], [1.0], [1.0], m=2)


def test_geometric_helpers_agree_with_plain_sums():
    y, n = -0.3, 6
    assert geometric_sum(y, n) == pytest.approx(sum((1 + y) ** s for s in range(n)), rel=1e-15)
    terms, term = [], 2.0
    for _ in range(n):
        terms.append(term)
        term = (1 + y) * term + 0.7
    assert repeated(y, 0.7, 2.0, n) == pytest.approx(sum(terms), rel=1e-14)


def test_linear_step_refuses_weights_that_are_no_probabilities():
    with pytest.raises(ValueError, match="summing to 1"):
        linear.step(np.eye(2), [np.eye(2), np.eye(2)], [0.5, 0.6])
