"""Model C against plain iteration and published check values."""

import numpy as np
import pytest

from bounds.dynamics import heterogeneous

HESSIANS = np.array([[[1.0, 0.0], [0.0, 0.2]], [[0.3, 0.0], [0.0, 1.0]]])
CENTRES = np.array([[1.0, 0.0], [-1.0, 1.0]])


def test_fixed_point_is_where_local_descent_stays():
    turned = np.array([[[1.0, 0.3], [0.3, 0.5]], [[0.4, -0.1], [-0.1, 1.0]], [[0.6, 0.0], [0.0, 0.6]]])
    centres = np.array([[1.0, 0.0], [-1.0, 1.0], [0.5, 2.0]])
    eta, tau = 0.3, 5
    x = np.zeros(2)
    for _ in range(2000):
        ends = []
        for hessian, centre in zip(turned, centres, strict=True):
            local = x.copy()
            for _ in range(tau):
                local -= eta * hessian @ (local - centre)
            ends.append(local)
        x = np.mean(ends, axis=0)
    assert heterogeneous.fixed_point(turned, centres, eta=eta, tau=tau) == pytest.approx(x, rel=1e-12)


def test_one_local_step_has_no_bias_and_many_end_at_the_mean_centre():
    at_one = heterogeneous.fixed_point(HESSIANS, CENTRES, eta=0.1, tau=1)
    assert at_one == pytest.approx(heterogeneous.minimiser(HESSIANS, CENTRES), rel=1e-12)
    assert np.abs(heterogeneous.gradient(HESSIANS, CENTRES, at_one)).max() < 1e-15
    forever = heterogeneous.fixed_point(HESSIANS, CENTRES, eta=0.1, tau=10_000)
    assert forever == pytest.approx(CENTRES.mean(0), abs=1e-12)


@pytest.mark.parametrize(
    ("tau", "squared", "law"),
    [(2, 8.321e-5, 7.63e-5), (4, 7.431e-4, None), (8, 3.942e-3, None), (16, 1.656e-2, 1.72e-2)],
)
def test_bias_reproduces_the_check_values(tau, squared, law):
    x = heterogeneous.fixed_point(HESSIANS, CENTRES, eta=0.1, tau=tau)
    assert np.sum(heterogeneous.gradient(HESSIANS, CENTRES, x) ** 2) == pytest.approx(squared, rel=1e-3)
    if law:
        leading = heterogeneous.leading_order_gradient(HESSIANS, CENTRES, eta=0.1, tau=tau)
        assert np.sum(leading**2) == pytest.approx(law, rel=2e-3)


def test_leading_order_is_the_limit_of_small_steps():
    eta, tau = 1e-6, 9
    x = heterogeneous.fixed_point(HESSIANS, CENTRES, eta=eta, tau=tau)
    leading = heterogeneous.leading_order_gradient(HESSIANS, CENTRES, eta=eta, tau=tau)
    assert heterogeneous.gradient(HESSIANS, CENTRES, x) == pytest.approx(leading, rel=1e-4)


def test_too_large_a_step_is_refused():
    with pytest.raises(ValueError, match=r"eta must satisfy .* got eta = 2.0"):
        heterogeneous.fixed_point(HESSIANS, CENTRES, eta=2.0, tau=2)
