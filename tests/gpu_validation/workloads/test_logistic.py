"""Logistic regression: derivatives by autograd, constants at the points that attain them, the minimum by scipy."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from gpu_validation.workloads import Bundled, LogisticRegression
from gpu_validation.workloads.linear import top_eigenvalue

TWO = LogisticRegression(source=Bundled("breast_cancer"), decay=1e-2)
THREE = LogisticRegression(source=Bundled("wine"), decay=1e-2)
both = pytest.mark.parametrize("workload", [TWO, THREE], ids=["two classes", "three classes"])


def model_at(workload, x):
    model = workload.model()
    torch.nn.utils.vector_to_parameters(torch.as_tensor(x, dtype=torch.float64), model.parameters())
    return model


def curvatures(workload, x):
    """Eigenvalues of the Hessian at x, ascending, from the workload's own derivatives."""
    _, hessian = workload.derivatives(x, np.arange(len(workload.data().train)))
    return np.linalg.eigvalsh(hessian) + workload.decay


@both
def test_derivatives_are_those_of_the_objective(workload):
    x = np.linspace(-0.5, 0.4, sum(p.numel() for p in workload.model().parameters()))
    model = model_at(workload, x)
    parameters = list(model.parameters())
    slopes = torch.autograd.grad(workload.objective(model), parameters, create_graph=True)
    slope = torch.cat([g.reshape(-1) for g in slopes])
    rows = [torch.autograd.grad(entry, parameters, retain_graph=True) for entry in slope]
    second = np.array([torch.cat([part.reshape(-1) for part in row]).numpy() for row in rows])

    gradient, hessian = workload.derivatives(x, np.arange(len(workload.data().train)))
    np.testing.assert_allclose(gradient + workload.decay * x, slope.detach(), rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(hessian + workload.decay * np.eye(len(x)), second, rtol=1e-9, atol=1e-13)


@both
def test_the_minimum_agrees_with_another_solver_and_is_certified(workload):
    everything = np.arange(len(workload.data().train))
    start = np.zeros(sum(p.numel() for p in workload.model().parameters()))
    other = minimize(
        lambda x: workload.evaluate(model_at(workload, x))[0],
        start,
        jac=lambda x: workload.derivatives(x, everything)[0] + workload.decay * x,
        method="BFGS",
        options={"gtol": 1e-9},
    )

    found = workload.optimum()
    assert found.value <= other.fun + 1e-15
    assert found.value == pytest.approx(other.fun, abs=1e-12)
    assert found.error < 1e-20
    assert np.linalg.norm(workload.gradient(found.x)) < 1e-12


def test_the_digits_are_solved_too():
    found = LogisticRegression().optimum()

    assert found.error < 1e-12
    assert found.value == pytest.approx(0.26392582, abs=1e-8)


def test_two_classes_attain_L_at_zero():
    constants = TWO.constants()

    assert curvatures(TWO, np.zeros(31))[-1] == pytest.approx(constants.L, rel=1e-12)
    assert top_eigenvalue(TWO.features()) / 4 + 1e-2 == pytest.approx(constants.L)


def test_three_classes_approach_L_where_two_share_the_probability():
    x = np.zeros(3 * 14)
    x[-1] = -40.0  # the third intercept

    assert curvatures(THREE, x)[-1] == pytest.approx(THREE.constants().L, rel=1e-9)
    assert curvatures(THREE, np.zeros(42))[-1] < 0.7 * THREE.constants().L


@both
def test_mu_is_approached_where_the_probabilities_saturate(workload):
    x = np.zeros(sum(p.numel() for p in workload.model().parameters()))
    x[-1] = 40.0  # an intercept

    assert curvatures(workload, x)[-1] == pytest.approx(workload.constants().mu, rel=1e-9)


@both
def test_sigma2_bounds_the_variance_wherever_x_is(workload):
    bound = workload.constants().sigma2 * workload.batch
    A = workload.features()
    d = sum(p.numel() for p in workload.model().parameters())
    rng = np.random.default_rng(0)
    for scale in (0.0, 0.1, 1.0, 30.0):
        x = scale * rng.standard_normal(d)
        each = np.array([workload.derivatives(x, np.array([i]))[0] for i in range(len(A))])
        assert np.square(each - each.mean(axis=0)).sum(axis=1).mean() <= bound


def test_labels_follow_the_sign_and_the_largest_output():
    held = LogisticRegression(source=Bundled("breast_cancer", held_out=0.2), decay=1e-2)

    assert held.accuracy(model_at(held, held.optimum().x)) > 0.95
    assert THREE.labels(torch.tensor([[0.1, 0.3, 0.2]])).tolist() == [1]


def test_a_regression_is_refused():
    with pytest.raises(ValueError, match="needs labels; diabetes is a regression"):
        LogisticRegression(source=Bundled("diabetes")).model()
