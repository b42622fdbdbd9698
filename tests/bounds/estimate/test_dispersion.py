import math

import numpy as np
import pytest

from bounds.estimate import deflation, dispersion, momentum_spread, variance_from_dispersion

LAMBDA = np.geomspace(0.01, 1, 10)  # the reference quadratic: unit noise in ten eigendirections


def exact_ratio(eta, tau, beta, divisor):
    """(variance of the displacement, curvature included)/(eta^2 sigma2 divisor), averaged over LAMBDA."""
    total = 0.0
    for curvature in LAMBDA:
        covariance, step = np.zeros((2, 2)), np.array([[1 - eta * curvature, -eta * beta], [curvature, beta]])
        noise = np.array([-eta, 1.0])
        for _ in range(tau):
            covariance = step @ covariance @ step.T + np.outer(noise, noise)
        total += covariance[0, 0] / LAMBDA.size
    return total / (eta**2 * divisor)


def simulated_dispersions(rng, *, m, eta, tau, beta=0.0, rounds=200):
    """sum_i |x^i - xbar|^2 after tau noisy steps on the quadratic, for many rounds."""
    found = []
    for _ in range(rounds):
        x, v = np.zeros((m, LAMBDA.size)), np.zeros((m, LAMBDA.size))
        for _ in range(tau):
            v = beta * v + LAMBDA * x + rng.standard_normal(x.shape)
            x = x - eta * v
        found.append(dispersion(x))
    return found


@pytest.mark.parametrize("beta", [0.0, 0.9])
@pytest.mark.parametrize("tau", [1, 16])
def test_estimator_is_unbiased_up_to_the_contraction(beta, tau):
    eta, m = 0.01, 8
    values = simulated_dispersions(np.random.default_rng(tau), m=m, eta=eta, tau=tau, beta=beta)
    found = variance_from_dispersion(values, m=m, eta=eta, tau=tau, momentum=beta, level=0.9999)
    truth = LAMBDA.size * exact_ratio(eta, tau, beta, momentum_spread(beta, tau))
    assert truth in found.interval
    assert found.interval.hi - found.interval.lo < 0.2 * truth


def test_single_step_needs_no_correction():
    values = simulated_dispersions(np.random.default_rng(2), m=8, eta=0.5, tau=1)
    found = variance_from_dispersion(values, m=8, eta=0.5, tau=1, level=0.9999)
    assert 10.0 in found.interval
    assert found.bias == ""


@pytest.mark.parametrize(
    ("eta", "tau", "low", "high"),
    [(0.05, 16, 0.855, 0.90), (0.05, 64, 0.60, 0.73), (0.5, 16, 0.38, 0.59), (0.5, 64, 0.16, 0.33)],
)
def test_curvature_deflates_the_plain_estimate_as_measured(eta, tau, low, high):
    ratio = float(np.mean([deflation(eta * curvature, tau) for curvature in LAMBDA]))
    assert ratio == pytest.approx(exact_ratio(eta, tau, 0.0, tau), rel=1e-10)
    assert low <= ratio <= high


def test_momentum_spread_is_the_right_divisor_and_the_usual_one_is_not():
    for tau, ours, usual in ((16, (0.88, 0.94), (0.30, 0.32)), (64, (0.47, 0.64), (0.37, 0.50))):
        assert ours[0] < exact_ratio(0.01, tau, 0.9, momentum_spread(0.9, tau)) < ours[1]
        assert usual[0] < exact_ratio(0.01, tau, 0.9, tau / 0.1**2) < usual[1]


def test_momentum_spread_has_its_closed_form():
    assert momentum_spread(0.0, 7) == 7
    assert momentum_spread(0.9, 4) == pytest.approx(23.781, abs=5e-4)
    assert momentum_spread(0.9, 16) == pytest.approx(545.22, abs=5e-3)
    b, tau = 0.7, 9
    closed = (tau - 2 * b * (1 - b**tau) / (1 - b) + b**2 * (1 - b ** (2 * tau)) / (1 - b**2)) / (1 - b) ** 2
    assert momentum_spread(b, tau) == pytest.approx(closed, rel=1e-12)


def test_widened_interval_covers_the_undeflated_variance():
    eta, tau, m = 0.5, 16, 8
    values = simulated_dispersions(np.random.default_rng(5), m=m, eta=eta, tau=tau)
    plain = variance_from_dispersion(values, m=m, eta=eta, tau=tau)
    widened = variance_from_dispersion(values, m=m, eta=eta, tau=tau, eta_L=eta * 1.0)
    assert 10.0 not in plain.interval
    assert "low" in plain.bias
    assert 10.0 in widened.interval
    assert widened.interval.hi == plain.interval.hi / deflation(eta, tau)


def test_deflation_decreases_with_curvature():
    values = [deflation(x, 20) for x in np.linspace(0, 1, 50)]
    assert values[0] == 1
    assert np.all(np.diff(values) < 0)
    assert deflation(0.3, 4) == pytest.approx((1 - 0.49**4) / (4 * (1 - 0.49)))


def test_dispersion_by_hand():
    assert dispersion(np.array([[1.0, 0.0], [3.0, 4.0]])) == 10.0
    with pytest.raises(ValueError, match=r"shape \(m, d\) with m >= 2; got shape \(1, 3\)"):
        dispersion(np.zeros((1, 3)))


def test_one_synchronisation_gives_a_value_but_no_interval():
    found = variance_from_dispersion([12.0], m=4, eta=0.1, tau=4)
    assert found.value == pytest.approx(12 / (3 * 0.01 * 4))
    assert (found.interval.lo, found.interval.hi) == (0.0, math.inf)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"m": 1}, "m >= 2"),
        ({"eta": 0.0}, "eta > 0"),
        ({"tau": 4.5}, "tau must be an integer >= 1; got tau = 4.5"),
        ({"momentum": 1.0}, "0 <= beta < 1; got momentum = 1.0"),
        ({"dispersions": [-1.0]}, "dispersions must be >= 0; got -1.0"),
        ({"eta_L": 1.5}, r"eta_lambda must lie in \[0, 1\]; got 1\.5"),
        ({"eta_L": 0.5, "momentum": 0.9}, "without momentum only"),
    ],
)
def test_bad_input_is_refused(change, message):
    at = {"dispersions": [1.0, 2.0], "m": 4, "eta": 0.1, "tau": 4} | change
    with pytest.raises(ValueError, match=message):
        variance_from_dispersion(at.pop("dispersions"), **at)


def test_no_step_has_neither_spread_nor_deflation():
    for function in (momentum_spread, deflation):
        with pytest.raises(ValueError, match="tau must be an integer >= 1; got tau = 0"):
            function(0.5, 0)
