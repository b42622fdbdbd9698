import itertools

import numpy as np
import pytest

from bounds.runtime import Constant, Exponential, RuntimeModel
from bounds.tau import joint_optimum
from bounds.tau.in_eta import in_eta
from bounds.theorems.local_sgd import pasgd_iterations
from bounds.theorems.seconds import pasgd_runtime

RUNTIME = RuntimeModel(Constant(1.0), 10.0, m=8)
PROBLEM = {"gap": 1, "L": 1, "sigma2": 1}


def eta_max(tau, *, L):
    return float(in_eta(pasgd_iterations, gap=1, L=L, sigma2=1, m=8, tau=tau).eta_max)


@pytest.mark.parametrize(
    ("time_s", "eta", "tau", "value", "gain"),
    [
        (1e3, 0.4195, 1, 0.10488, 1.00),
        (1e4, 0.02290, 13, 0.024607, 1.348),
        (1e6, 0.003177, 25, 0.0015207, 2.181),
    ],
)
def test_longer_budgets_want_smaller_steps_and_longer_periods(time_s, eta, tau, value, gain):
    best = joint_optimum(runtime=RUNTIME, **PROBLEM, time_s=time_s)
    assert best.tau == tau
    assert best.eta == pytest.approx(eta, rel=2e-4)
    assert best.value == pytest.approx(value, rel=3e-5)
    assert best.gain == pytest.approx(gain, abs=6e-4)


@pytest.mark.parametrize("time_s", [300.0, 1e4, 1e5])
def test_no_pair_on_a_fine_grid_is_better(time_s):
    best = joint_optimum(runtime=RUNTIME, **PROBLEM, time_s=time_s)
    eta, tau = np.geomspace(1e-4, 1, 2000)[:, None], np.arange(1, 120)[None]
    at = {**PROBLEM, "m": 8, "time_s": time_s, "step_s": 1, "delay_s": 10}
    inside = pasgd_runtime.holds_at(eta=eta, tau=tau, **at)
    shape = inside.shape
    eta, tau = np.broadcast_to(eta, shape)[inside], np.broadcast_to(tau, shape)[inside]
    assert best.value <= pasgd_runtime(eta=eta, tau=tau, **at).min()


def test_the_learning_rate_stays_inside_the_theorem():
    best = joint_optimum(runtime=RUNTIME, gap=100, L=1, sigma2=0.01, time_s=50)
    assert pasgd_runtime.holds_at(
        gap=100, L=1, sigma2=0.01, time_s=50, m=8, step_s=1, delay_s=10, eta=best.eta, tau=best.tau
    )
    assert best.eta == pytest.approx(eta_max(best.tau, L=1))


def test_stragglers_raise_the_best_period():
    taus = [
        joint_optimum(runtime=RuntimeModel(step, 1.0, m=16), **PROBLEM, time_s=1e5).tau
        for step in (Constant(1.0), Exponential(1.0))
    ]
    assert taus[1] > taus[0]


def test_period_grows_like_the_fourth_root_of_the_budget():
    taus = [joint_optimum(runtime=RUNTIME, **PROBLEM, time_s=t).tau for t in (1e10, 1.6e11, 2.56e12)]
    for a, b in itertools.pairwise(taus):
        assert b / a == pytest.approx(2, rel=0.05)


def test_without_noise_the_largest_rate_is_best():
    best = joint_optimum(runtime=RUNTIME, gap=1, L=2, sigma2=0, time_s=1e3)
    assert best.eta == pytest.approx(eta_max(best.tau, L=2))


def test_derivation_has_one_best_rate_for_every_period():
    best = joint_optimum(runtime=RUNTIME, **PROBLEM, time_s=1e3)
    assert best.derivation().minimiser is None
    assert r"\eta" in best.latex()


def test_a_finished_problem_is_refused():
    with pytest.raises(ValueError, match="gap > 0"):
        joint_optimum(runtime=RUNTIME, gap=0, L=1, sigma2=1, time_s=1e3)
