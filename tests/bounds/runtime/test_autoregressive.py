import math

import numpy as np
import pytest

from bounds.runtime import AutoregressiveLogNormal, LogNormal


@pytest.mark.parametrize(("rho", "excesses"), [(0.9, (0.49, 0.46, 0.37, 0.23)), (0.0, (0.49, 0.23, 0.11, 0.056))])
def test_correlation_slows_the_averaging_of_stragglers(rho, excesses):
    steps = AutoregressiveLogNormal(mean=1.0, log_sd=0.3, correlation=rho)
    for tau, excess in zip((1, 4, 16, 64), excesses, strict=True):
        assert steps.expected_max(m=8, tau=tau) - 1 == pytest.approx(excess, abs=5e-3)


def test_variance_of_the_mean_is_the_double_sum():
    steps = AutoregressiveLogNormal(mean=2.0, log_sd=0.5, correlation=0.7)
    lags = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    double_sum = 4 * np.expm1(0.25 * 0.7**lags).sum() / 36
    assert steps.sd_of_mean_s(6) == pytest.approx(math.sqrt(double_sum), rel=1e-12)


def test_single_step_is_the_log_normal_law():
    steps = AutoregressiveLogNormal(mean=1.0, log_sd=0.5, correlation=0.9)
    law = LogNormal(-0.125, 0.5)
    assert steps.expected_max(m=16) == pytest.approx(law.expected_max(m=16), rel=1e-12)
    assert steps.expected_max_above(2.0, m=16) == pytest.approx(law.expected_max_above(2.0, m=16), rel=1e-12)


def test_expected_maximum_agrees_with_simulated_processes():
    s, rho, m, tau = 0.5, 0.8, 8, 12
    rng = np.random.default_rng(9)
    x = s * rng.standard_normal((20_000, m))
    total = np.zeros_like(x)
    for _ in range(tau):
        total += np.exp(x - s**2 / 2)
        x = rho * x + math.sqrt(1 - rho**2) * s * rng.standard_normal(x.shape)
    maxima = (total / tau).max(axis=1)
    computed = AutoregressiveLogNormal(1.0, s, rho).expected_max(m=m, tau=tau)
    assert computed == pytest.approx(maxima.mean(), rel=0.006)  # the stated accuracy; the standard error is .002


def test_correlation_of_one_is_refused():
    with pytest.raises(ValueError, match="0 <= rho < 1; got correlation = 1"):
        AutoregressiveLogNormal(1.0, 0.3, 1.0)
