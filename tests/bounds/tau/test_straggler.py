import numpy as np
import pytest

from bounds.runtime import Constant, Exponential, Pareto, RuntimeModel, Uniform
from bounds.tau import tau_star, tau_straggler
from bounds.theorems import pasgd_runtime

ETA, NOISE = 0.1, 100.0  # eta^2 sigma2 = 1, so A/B = A


def solve(ratio, *, m, delay_s=1.0, step=None):
    runtime = RuntimeModel(step or Exponential(1.0), delay_s, m=m)
    return tau_straggler(runtime=runtime, gap=ratio * ETA / 2, eta=ETA, L=1.0, sigma2=NOISE, time_s=1.0)


@pytest.mark.parametrize(("m", "optima"), [(16, (2, 6, 25, 104)), (64, (2, 8, 30, 125))])
def test_stragglers_lengthen_the_period_as_tabulated(m, optima):
    for ratio, optimum, theorem_2 in zip((1, 10, 100, 1000), optima, (1, 3, 10, 32), strict=True):
        assert solve(ratio, m=m).integer == optimum
        plain = tau_star(gap=ratio * ETA / 2, delay_s=1, eta=ETA, L=1, sigma2=NOISE, time_s=1)
        assert plain.integer == theorem_2


@pytest.mark.parametrize(
    ("m", "delay_s", "low", "high"), [(16, 1.0, 0.055, 0.11), (64, 1.0, 0.12, 0.185), (16, 0.1, 0.28, 0.46)]
)
def test_ignoring_stragglers_costs_what_is_tabulated(m, delay_s, low, high):
    for ratio in (10, 100, 1000):
        plain = tau_star(gap=ratio * ETA / 2, delay_s=delay_s, eta=ETA, L=1, sigma2=NOISE, time_s=1).integer
        best = solve(ratio, m=m, delay_s=delay_s).integer
        costs = [ratio * (Exponential(1.0).expected_max(m=m, tau=n) + delay_s / n) + n for n in (plain, best)]
        assert low < costs[0] / costs[1] - 1 < high


def test_predictor_has_its_tabulated_values():
    for ratio, value in zip((1, 10, 100, 1000), (1.4, 5.5, 22.8, 98.9), strict=True):
        assert solve(ratio, m=16).predictor == pytest.approx(value, abs=0.06)


@pytest.mark.every(3)
@pytest.mark.parametrize("step", [Exponential(1.0), Uniform(0.2, 1.8)])
@pytest.mark.parametrize("ratio", [0.3, 7, 40])
def test_branch_and_bound_finds_what_a_full_scan_finds(step, ratio):
    n = np.arange(1, 60)
    seconds = np.array([step.expected_max(m=8, tau=int(k)) for k in n]) + 0.5 / n
    values = ratio * seconds + n
    found = solve(ratio, m=8, delay_s=0.5, step=step)
    assert values[found.integer - 1] <= values.min() * (1 + 1e-9)
    assert found.cap == 10
    assert values[found.capped - 1] <= values[:10].min() * (1 + 1e-9)


def test_constant_steps_give_theorem_2():
    for ratio in (1, 10, 100, 1000, 3e7, 1e9):
        plain = tau_star(gap=ratio * ETA / 2, delay_s=1, eta=ETA, L=1, sigma2=NOISE, time_s=1)
        found = solve(ratio, m=16, step=Constant(1.0))
        assert (found.integer, found.cap, found.capped) == (plain.integer, plain.cap, plain.capped)
        assert found.predictor == pytest.approx(plain.real)


def test_without_noise_only_the_cap_limits():
    runtime = RuntimeModel(Exponential(1.0), 1.0, m=4)
    found = tau_straggler(runtime=runtime, gap=1, eta=0.1, L=1, sigma2=0, time_s=100)
    assert (found.integer, found.capped) == (None, 10)


def test_no_tau_is_covered_beyond_one_over_L():
    runtime = RuntimeModel(Exponential(1.0), 1.0, m=4)
    found = tau_straggler(runtime=runtime, gap=1, eta=2, L=1, sigma2=1, time_s=100)
    assert (found.cap, found.capped) == (None, None)


def test_infinite_means_are_refused():
    with pytest.raises(ValueError, match="finite mean step time"):
        solve(10, m=4, step=Pareto(1.0, 0.9))


def test_predictor_equation_is_derived():
    found = solve(10, m=4)
    assert found.derivation().minimiser is None
    assert "e_m" in found.latex()
    assert solve(10, m=4, step=Pareto(1.0, 1.8)).predictor is None


def test_slow_averagings_need_few_expected_maxima(monkeypatch):
    asked = []
    seconds = RuntimeModel.seconds_per_iteration
    monkeypatch.setattr(
        RuntimeModel, "seconds_per_iteration", lambda self, **at: asked.append(at["tau"]) or seconds(self, **at)
    )
    found = solve(1e3, m=16, delay_s=1e4)
    assert len(set(asked)) < 80
    values = {n: 1e3 * (Exponential(1.0).expected_max(m=16, tau=n) + 1e4 / n) + n for n in range(3155, 3186)}
    assert min(values, key=values.get) == found.integer


def test_what_the_learning_rate_allows_is_found_without_looking_far_beyond(monkeypatch):
    asked = []
    seconds = RuntimeModel.seconds_per_iteration
    monkeypatch.setattr(
        RuntimeModel, "seconds_per_iteration", lambda model, **at: asked.append(at) or seconds(model, **at)
    )
    runtime = RuntimeModel(Exponential(0.08), 0.1551, m=16)
    found = tau_straggler(runtime=runtime, gap=1, eta=1e-5, L=1, sigma2=1, time_s=600)
    assert (found.cap, found.capped) == (100_000, 100_000)
    assert len(asked) < 100, "the best over all integers, 3.8e7, takes tens of thousands"


@pytest.mark.parametrize("step", [Constant(1.0), Exponential(1.0), Uniform(0.9, 1.1)], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("eta", [0.1, 0.3])
@pytest.mark.parametrize("rho", [None, 0.0, 0.5])
def test_the_outermost_periods_within_a_factor_are_those_of_a_full_scan(step, eta, rho):
    runtime = RuntimeModel(step, 2.0, m=8)
    best = tau_straggler(runtime=runtime, gap=1, eta=eta, L=1, sigma2=1, time_s=1000, rho=rho)
    steps = best.capped if rho is None else best.integer

    low, high = best.near(steps, 1.05)

    within = [n for n in range(1, min(2 * high + 2, 200)) if best.bound(n) <= 1.05 * best.bound(steps)]
    if best.cap is not None:
        within = [n for n in within if n <= best.cap]
    assert within[0] == low
    assert within == list(range(low, within[-1] + 1))
    assert high == within[-1] or high >= 200


def test_the_bound_is_that_of_the_theorem_in_seconds():
    runtime = RuntimeModel(Constant(0.5), 2.0, m=8)
    best = tau_straggler(runtime=runtime, gap=1, eta=0.1, L=2, sigma2=3, time_s=100)
    for n in (1, 2, 5):
        theorem = pasgd_runtime(gap=1, eta=0.1, L=2, sigma2=3, m=8, tau=n, time_s=100, step_s=0.5, delay_s=2)
        assert best.bound(n) == pytest.approx(theorem, rel=1e-14)


def test_without_noise_every_longer_period_up_to_the_cap_is_near():
    best = tau_straggler(runtime=RuntimeModel(Constant(1.0), 1e-9, m=2), gap=1, eta=1e-3, L=1, sigma2=0, time_s=9)
    assert best.near(best.capped, 1.05) == (1, best.cap)
