"""Model A: its constants by hand, and a loop of workers against the exact law."""

import numpy as np
import pytest
import torch

from bounds.dynamics import additive, reference_quadratic
from gpu_validation.workloads import Quadratic
from gpu_validation.workloads.quadratic import Point

COPIES = 400  # independent copies of the reference problem in one vector


def test_the_defaults_are_the_reference_problem():
    problem, reference = Quadratic().problem, reference_quadratic()

    np.testing.assert_allclose(problem.eigenvalues, reference.eigenvalues, rtol=1e-15)
    np.testing.assert_array_equal(problem.noise, reference.noise)
    np.testing.assert_array_equal(problem.start, reference.start)


def test_constants_by_hand():
    constants = Quadratic().constants()

    assert constants.exact
    assert (constants.L, constants.mu, constants.sigma2, constants.heterogeneity) == (1.0, 0.01, 4.0, 0.0)
    assert constants.gap == pytest.approx(1.24091, abs=5e-6)
    value, norm2 = Quadratic().evaluate(Quadratic().model())
    assert value == pytest.approx(constants.gap)
    assert norm2 == pytest.approx(np.square(Quadratic().eigenvalues).sum())


def test_copies_repeat_every_eigenvalue():
    one, three = Quadratic(d=4), Quadratic(d=4, copies=3)

    np.testing.assert_array_equal(three.eigenvalues.reshape(4, 3), one.eigenvalues[:, None].repeat(3, axis=1))
    assert three.constants().sigma2 == pytest.approx(3 * one.constants().sigma2)


@pytest.mark.parametrize("tau", [1, 5])
def test_a_loop_of_workers_follows_the_exact_law_at_any_period(averaged_path, tau):
    workload, m, steps = Quadratic(copies=COPIES, eta=0.2), 4, 60
    path = averaged_path(workload, m=m, tau=tau, steps=steps)[:steps]

    # one number a copy: the mean over steps of |grad F|^2; n = 400, five standard errors are a level of 6e-7
    each = (workload.eigenvalues**2 * path**2).mean(axis=0).reshape(workload.d, COPIES).sum(axis=0)
    exact = additive.mean_squared_gradient(Quadratic(eta=0.2).problem, eta=0.2, m=m, K=steps)
    assert abs(each.mean() - exact) < 5 * each.std(ddof=1) / np.sqrt(COPIES)
    assert each.std(ddof=1) / np.sqrt(COPIES) < 0.01 * exact


def test_the_point_can_be_anywhere():
    model = Point(np.array([2.0] + 9 * [0.0]))

    assert Quadratic().evaluate(model)[0] == pytest.approx(0.5 * 0.01 * 4)
    assert model.x.dtype == torch.float64


@pytest.mark.parametrize("wrong", [{"d": 0}, {"smallest": 0.0}, {"smallest": 1.5}, {"noise": -1.0}, {"copies": 0}])
def test_values_outside_the_range_are_refused(wrong):
    with pytest.raises(ValueError, match="need d >= 1"):
        Quadratic(**wrong)
