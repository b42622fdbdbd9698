"""Gossip keeps the mean, forgets differences at the rate zeta, and does to SGD what the theorem allows."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bounds import dynamics
from bounds.theorems import cooperative, pasgd_iterations
from gpu_validation.averaging.mixing import Full, gossip, hypercube, ring, zeta
from gpu_validation.averaging.simulated import InProcessTransport, SimulatedWorkers
from gpu_validation.workloads import Quadratic
from operators import Key
from operators.random import normal


def mixed(mode, X):
    return np.stack([b.numpy() for b in mode.mix(InProcessTransport(len(X)), [torch.from_numpy(x) for x in X], 0)])


def random_doubly_stochastic(m, rng):
    """A mixture of permutations and of the identity, so that it is neither symmetric nor periodic."""
    weights = rng.dirichlet(np.ones(4))
    return weights[0] * np.eye(m) + sum(w * np.eye(m)[rng.permutation(m)] for w in weights[1:])


@given(st.integers(2, 12), st.integers(0, 2**32 - 1), arrays(np.float64, (12, 3), elements=st.floats(-1e6, 1e6)))
def test_the_mean_is_kept_up_to_the_stated_rounding(m, seed, X):
    W = random_doubly_stochastic(m, np.random.default_rng(seed))
    X = X[:m]
    try:
        mode = gossip(W)
    except ValueError as error:  # the drawn permutations may leave two groups apart
        assert "zeta = 1" in str(error)  # noqa: PT017
        return

    after = mixed(mode, X)

    bound = (m + 2) * 2.0**-53 * np.abs(X).max() + np.abs(W.sum(axis=0) - 1).max() * np.abs(X).max()
    assert np.abs(after.mean(axis=0) - X.mean(axis=0)).max() <= bound + 2.0**-1074


def test_dyadic_weights_keep_the_mean_of_whole_numbers_exactly():
    W = 0.5 * np.eye(8) + 0.25 * np.roll(np.eye(8), 1, axis=0) + 0.25 * np.roll(np.eye(8), -1, axis=0)
    X = np.random.default_rng(0).integers(-1000, 1000, (8, 5)).astype(np.float64)

    after = mixed(gossip(W), X)

    np.testing.assert_array_equal(after.sum(axis=0), X.sum(axis=0))
    assert (after != X).any()


@given(st.integers(2, 10), st.integers(0, 2**32 - 1))
def test_differences_shrink_at_least_by_zeta(m, seed):
    rng = np.random.default_rng(seed)
    mode, X = ring(m), rng.standard_normal((m, 4))
    spread = np.linalg.norm(X - X.mean(axis=0))

    after = mixed(mode, X)

    assert np.linalg.norm(after - after.mean(axis=0)) <= mode.zeta * spread + 1e-12


@pytest.mark.parametrize("m", [2, 3, 4, 5, 8, 16, 33])
def test_zeta_of_a_ring(m):
    expected = 0.0 if m == 2 else max(abs(1 + 2 * np.cos(2 * np.pi * k / m)) / 3 for k in range(1, m))

    assert ring(m).zeta == pytest.approx(expected, abs=1e-14)
    assert ring(m).spectral_gap == 1 - ring(m).zeta
    if m > 8:
        assert ring(m).spectral_gap == pytest.approx(4 * np.pi**2 / (3 * m**2), rel=0.02)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_zeta_of_a_hypercube(k):
    assert hypercube(2**k).zeta == pytest.approx((k - 1) / (k + 1), abs=1e-14)
    assert all(len(hypercube(2**k).neighbours(rank)) == k for rank in range(2**k))


def test_small_networks():
    assert ring(1).weights == hypercube(1).weights == ((1.0,),)
    assert ring(2).weights == hypercube(2).weights == ((0.5, 0.5), (0.5, 0.5))
    assert ring(5).neighbours(0) == [1, 4]
    with pytest.raises(ValueError, match=r"power of two of ranks; got m = 6: use ring\(6\)"):
        hypercube(6)


def test_matrices_that_are_not_doubly_stochastic_are_refused():
    for W, words in (
        (np.ones((2, 3)), r"square matrix; got shape \(2, 3\)"),
        ([[0.5, 0.5], [0.4, 0.5]], "row 1 sums to 0.9"),
        ([[0.5, 0.5], [0.4, 0.6]], "column 1 sums to 1.1"),
        ([[1.5, -0.5], [-0.5, 1.5]], "must be >= 0; got -0.5"),
        ([[float("nan"), 1.0], [1.0, 0.0]], "must be >= 0; got nan"),
        (np.eye(3), "must connect all ranks; got zeta = 1"),
        ([[0.0, 1.0], [1.0, 0.0]], "a weight on itself"),
    ):
        with pytest.raises(ValueError, match=words):
            gossip(W)
    with pytest.raises(ValueError, match="one row for each of the 4 ranks; got 3 rows"):
        ring(3).check(4)


# -- the theory --------------------------------------------------------------------------------------------
M, TAU, STEPS = 8, 4, 40
WORKLOAD = Quadratic(eta=0.03)
PROBLEM = dynamics.Quadratic(WORKLOAD.eigenvalues, np.ones(WORKLOAD.d), np.full(WORKLOAD.d, WORKLOAD.noise))
NETWORKS = {"full": Full(), "ring": ring(M), "cube": hypercube(M)}


def noise(rank, step):
    return np.sqrt(WORKLOAD.noise) * normal(Key(2, step=step, rank=rank), WORKLOAD.d)


def run_by_gossip(mode):
    """The models before every step, shape (steps, m, d)."""
    models = [WORKLOAD.model() for _ in range(M)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=WORKLOAD.eta) for model in models]
    workers = SimulatedWorkers(models, optimizers, schedule=TAU, mixing=mode)
    path = []
    for k in range(STEPS):
        path.append(np.stack([model.x.detach().numpy().copy() for model in models]))
        for rank, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
            optimizer.zero_grad()
            WORKLOAD.loss(model, key=Key(2, step=k, rank=rank)).backward()
            optimizer.step()
        workers.step()
    return np.array(path)


def run_by_matrix(W):
    """The same in plain numpy."""
    X, path = np.ones((M, WORKLOAD.d)), []
    for k in range(STEPS):
        path.append(X)
        X = X - WORKLOAD.eta * (WORKLOAD.eigenvalues * X + np.stack([noise(rank, k) for rank in range(M)]))
        X = W @ X if (k + 1) % TAU == 0 else X
    return np.array(path)


def expected_spread(W):
    """Exact E (1/m) sum_i |x_i - mean|^2 before every step: the covariance of the differences, propagated."""
    found = np.zeros(STEPS)
    for eigenvalue in WORKLOAD.eigenvalues:
        S = np.zeros((M, M))
        for k in range(STEPS):
            found[k] += np.trace(S) / M
            added = WORKLOAD.eta**2 * WORKLOAD.noise * (np.eye(M) - 1 / M)
            S = (1 - WORKLOAD.eta * eigenvalue) ** 2 * S + added
            S = W @ S @ W.T if (k + 1) % TAU == 0 else S
    return found


@pytest.fixture(scope="module")
def paths():
    return {name: run_by_gossip(mode) for name, mode in NETWORKS.items()}


@pytest.mark.parametrize("name", NETWORKS)
def test_virtual_workers_multiply_by_the_matrix(paths, name):
    # numbers below 4, and a few roundings a step
    np.testing.assert_allclose(paths[name], run_by_matrix(NETWORKS[name].matrix(M)), rtol=0, atol=STEPS * 16 * 2.0**-52)


def test_averaged_model_of_the_additive_noise_quadratic_does_not_depend_on_the_matrix(paths):
    full = paths["full"].mean(axis=1)
    for name in ("ring", "cube"):
        np.testing.assert_allclose(paths[name].mean(axis=1), full, rtol=0, atol=STEPS * 16 * 2.0**-52)
        assert np.abs(paths[name] - paths["full"]).max() > 0.01  # the models themselves do


@pytest.mark.parametrize("name", NETWORKS)
def test_the_theorem_covers_the_exact_gradient_and_the_exact_spread(name):
    W, constants = NETWORKS[name].matrix(M), WORKLOAD.constants()
    at = {"gap": constants.gap, "eta": WORKLOAD.eta, "L": constants.L, "sigma2": constants.sigma2, "m": M, "K": STEPS}
    bound = float(cooperative(**at, tau=TAU, zeta=zeta(W)))

    assert bound > dynamics.additive.mean_squared_gradient(PROBLEM, eta=WORKLOAD.eta, m=M, K=STEPS)
    # its last term is twice L^2 times a bound of the mean spread that the noise causes
    of_spread = (bound - float(pasgd_iterations(**at, tau=1))) / 2
    exact = expected_spread(W).mean()
    assert of_spread > constants.L**2 * exact
    if name != "full":
        assert of_spread < 5 * constants.L**2 * exact


def test_exact_spread_of_full_averaging_is_that_of_the_exact_model():
    found = expected_spread(Full().matrix(M))

    expected = dynamics.additive.dispersion(PROBLEM, eta=WORKLOAD.eta, m=M, r=np.arange(STEPS) % TAU)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-17)  # the last for what J leaves of 0
