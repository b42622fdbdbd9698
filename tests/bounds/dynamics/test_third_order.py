"""The third-order law against its recursion, finite differences, published values and a deterministic check."""

import numpy as np
import pytest

from bounds.dynamics import third_order

HESSIAN = np.array([[1.0, 0.2, 0.0], [0.2, 0.5, 0.1], [0.0, 0.1, 0.3]])
NOISE = np.array([[1.0, -0.3, 0.0], [-0.3, 0.7, 0.2], [0.0, 0.2, 0.5]])


@pytest.mark.parametrize("tau", [1, 2, 7])
def test_round_covariance_equals_its_recursion(tau):
    eta, m = 0.4, 5
    step = np.eye(3) - eta * HESSIAN
    covariance, total = np.zeros((3, 3)), np.zeros((3, 3))
    for _ in range(tau):
        total += covariance
        covariance = step @ covariance @ step + eta**2 * NOISE
    expected = (1 - 1 / m) * total / tau
    assert third_order.round_covariance(HESSIAN, NOISE, eta=eta, m=m, tau=tau) == pytest.approx(expected, abs=1e-15)


def test_scalar_bias_reproduces_the_check_values():
    predicted = third_order.scalar_bias(third=0.5, curvature=1.0, sigma2=1.0, eta=0.05, m=64, tau=[8, 32, 200])
    assert predicted == pytest.approx([-0.00178, -0.00436, -0.00599], abs=5e-6)


def test_scalar_bias_is_the_one_dimensional_case():
    covariance = third_order.round_covariance([[0.7]], [[2.0]], eta=0.1, m=8, tau=20)
    general = third_order.bias([[[0.5]]], covariance)
    assert general[0] == pytest.approx(
        third_order.scalar_bias(third=0.5, curvature=0.7, sigma2=2.0, eta=0.1, m=8, tau=20), rel=1e-14
    )


def test_logistic_bias_equals_the_third_derivative_of_the_loss():
    generator = np.random.default_rng(5)
    features, x = generator.normal(size=(20, 3)), generator.normal(size=3)
    covariance = third_order.round_covariance(HESSIAN, NOISE, eta=0.4, m=5, tau=7)

    def hessian(point):
        p = 1 / (1 + np.exp(-features @ point))
        return features.T @ ((p * (1 - p))[:, None] * features) / len(features)

    h = 1e-5
    third = np.array([(hessian(x + h * axis) - hessian(x - h * axis)) / (2 * h) for axis in np.eye(3)])
    probabilities = 1 / (1 + np.exp(-features @ x))
    assert third_order.logistic_bias(features, probabilities, covariance) == pytest.approx(
        third_order.bias(third, covariance), rel=1e-7
    )


def test_divergent_step_is_refused():
    with pytest.raises(ValueError, match=r"need \|1 - eta lambda\| <= 1"):
        third_order.round_covariance(HESSIAN, NOISE, eta=5.0, m=2, tau=2)
