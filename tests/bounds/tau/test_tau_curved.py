import math

import numpy as np
import pytest

from bounds.runtime import Constant, Exponential, RuntimeModel
from bounds.tau import TauCurved, joint_optimum, tau_convex, tau_curved, tau_straggler
from bounds.theorems import pasgd_smooth_sharp

AT = {"gap": 1, "delay_s": 10, "eta": "0.05", "L": 1, "sigma2": 1, "time_s": 10_000}
PROBLEM = {"gap": 1.0, "L": 1.0, "sigma2": 1.0, "time_s": 10_000.0}


@pytest.mark.parametrize("rho", [0, "1e-9", "0.01", "0.1", "0.5", 1])
@pytest.mark.parametrize("m", [2, 4, 1000])
def test_integer_minimises_the_bound_of_the_class(m, rho):
    taus = np.arange(1, 60)
    values = pasgd_smooth_sharp(
        gap=1, eta=0.05, L=1, sigma2=1, m=m, rho=float(rho), tau=taus, K=10_000 / (1 + 10 / taus)
    )
    best = tau_curved(**AT, m=m, rho=rho)
    assert best.integer == taus[np.argmin(values)]
    assert abs(best.real - best.integer) < 1


def test_real_minimiser_is_stationary():
    best = tau_curved(**AT, m=4, rho="0.3").real
    near = best * np.array([1 - 1e-4, 1, 1 + 1e-4])
    values = pasgd_smooth_sharp(gap=1, eta=0.05, L=1, sigma2=1, m=4, rho=0.3, tau=near, K=10_000 / (1 + 10 / near))
    assert values.argmin() == 1


def test_between_convex_and_smooth_the_period_shortens():
    periods = [tau_curved(**AT, m=4, rho=rho).real for rho in (0, "0.01", "0.1", "0.5", 1)]
    assert periods == sorted(periods, reverse=True)
    assert periods[0] == pytest.approx(tau_convex(**AT, m=4).real, rel=1e-14)
    assert periods[-1] > 4  # Theorem 2, which assumes no more than rho = L


def test_ends_and_refusals():
    assert tau_curved(**AT, m=1, rho=0).integer is None
    assert tau_curved(**(AT | {"delay_s": 0}), m=4, rho="0.1").integer == 1
    assert tau_curved(**(AT | {"sigma2": 0}), m=4, rho="0.1").real == math.inf
    assert "e^u" in TauCurved.latex()
    with pytest.raises(ValueError, match="needs rho <= L; got rho = 2"):
        tau_curved(**AT, m=4, rho=2)
    with pytest.raises(ValueError, match=r"eta L <= 1; got eta L = 1\.5: lower eta"):
        tau_curved(**(AT | {"eta": "1.5"}), m=4, rho=0)


@pytest.mark.parametrize("rho", [0.0, 0.2, 1.0])
def test_stragglers_are_counted_exactly(rho):
    runtime = RuntimeModel(Exponential(1.0), 10.0, m=4)
    n = np.arange(1, 60)
    seconds = np.array([runtime.seconds_per_iteration(tau=int(k)) for k in n])
    values = pasgd_smooth_sharp(gap=1, eta=0.05, L=1, sigma2=1, m=4, rho=rho, tau=n, K=10_000 / seconds)
    found = tau_straggler(runtime=runtime, eta=0.05, **PROBLEM, rho=rho)
    assert found.integer == n[np.argmin(values)]
    assert (found.cap, found.capped) == (None, None)
    constant = tau_straggler(runtime=RuntimeModel(Constant(1.0), 10.0, m=4), eta=0.05, **PROBLEM, rho=rho)
    assert constant.integer == tau_curved(**AT, m=4, rho=str(rho)).integer
    assert constant.predictor == pytest.approx(tau_curved(**AT, m=4, rho=str(rho)).real)


@pytest.mark.parametrize("rho", [0.0, 0.3])
def test_joint_optimum_is_that_of_a_grid(rho):
    runtime = RuntimeModel(Constant(1.0), 10.0, m=8)
    found = joint_optimum(runtime=runtime, **PROBLEM, rho=rho)
    rates, n = np.geomspace(1e-3, 0.999, 2000)[:, None], np.arange(1, 80)
    values = pasgd_smooth_sharp(gap=1, eta=rates, L=1, sigma2=1, m=8, rho=rho, tau=n, K=10_000 / (1 + 10 / n))
    i, j = np.unravel_index(values.argmin(), values.shape)
    assert found.tau == n[j]
    assert values.min() * (1 - 1e-5) <= found.value <= values.min()
    assert found.eta == pytest.approx(rates[i, 0], rel=5e-3)
    assert found.value < joint_optimum(runtime=runtime, **PROBLEM).value
