"""Each problem: its gradient is unbiased, its constants are what they are said to be."""

import numpy as np
import pytest
import torch

from gpu_validation.workloads import LogisticRegression, Quadratic, SmallNetwork
from gpu_validation.workloads.digits import digits, top_curvature
from operators import Key

ALL = [Quadratic(), LogisticRegression(), SmallNetwork()]
ids = [workload.name for workload in ALL]


def gradient(workload, model, value):
    return torch.cat([g.reshape(-1).double() for g in torch.autograd.grad(value, list(model.parameters()))]).numpy()


@pytest.mark.parametrize("workload", ALL, ids=ids)
def test_every_process_starts_from_the_same_point_and_draws_from_its_key_alone(workload):
    first, second = workload.model(), workload.model()

    for p, q in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(p, q)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    one, again, other = (gradient(workload, first, workload.loss(first, key=Key(s))) for s in (5, 5, 6))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("workload", ALL, ids=ids)
def test_stochastic_gradients_average_to_the_gradient_with_the_stated_variance(workload):
    model = workload.model()
    full = gradient(workload, model, workload.objective(model))
    n = 400
    draws = np.array([gradient(workload, model, workload.loss(model, key=Key(1, step=k))) for k in range(n)])

    error2 = float(np.square(draws.mean(axis=0) - full).sum())
    sigma2 = workload.constants().sigma2
    # E error2 = sigma2/n; the seed is fixed, the factors leave six standard deviations of a chi-square mean
    assert error2 < 3 * sigma2 / n
    assert float(np.square(draws - full).sum(axis=1).mean()) == pytest.approx(sigma2, rel=0.15)


def test_quadratic_constants_by_hand():
    constants = Quadratic().constants()

    assert constants.exact
    assert (constants.L, constants.sigma2) == (1.0, 4.0)
    assert constants.gap == pytest.approx(1.24091, abs=5e-6)
    value, norm2 = Quadratic().evaluate(Quadratic().model())
    assert value == pytest.approx(constants.gap)
    assert norm2 == pytest.approx(np.square(Quadratic().eigenvalues).sum())


@pytest.mark.parametrize("workload", ALL[1:], ids=ids[1:])
def test_estimated_constants_say_so(workload):
    constants = workload.constants()

    assert not constants.exact
    assert constants.reason
    assert min(constants.L, constants.sigma2, constants.gap) > 0


def test_power_iteration_finds_the_top_eigenvalue_and_the_logistic_bound_lies_above():
    assert top_curvature(Quadratic(smallest=0.3), Quadratic().model(), iterations=60) == pytest.approx(1, rel=1e-3)
    logistic = LogisticRegression()
    assert top_curvature(logistic, logistic.model()) <= logistic.constants().L


def test_digits_are_the_real_ones():
    images, labels = digits()

    assert images.shape == (1797, 64)
    assert (float(images.min()), float(images.max())) == (0.0, 1.0)
    assert labels.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


@pytest.mark.parametrize("workload", ALL, ids=ids)
def test_gradient_descent_lowers_the_objective(workload):
    model = workload.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta)
    before = workload.evaluate(model)[0]
    for _ in range(20):
        optimizer.zero_grad()
        workload.objective(model).backward()
        optimizer.step()

    assert workload.evaluate(model)[0] < 0.9 * before
