"""The sharper price of local steps: above every exact value and every kink, attained step by step, and not smaller."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from bounds import theorems
from bounds.dynamics import Quadratic, additive, arguments, compressed, reference_quadratic

SPECTRA = ([1.0], [1.0, 0.3, 0.05], list(np.geomspace(1e-2, 1, 10)))
STARTS, NOISES = (0.01, 1.0, 10.0), ("even", "top")
RATES, WORKERS, PERIODS, ROUNDS = (0.01, 0.1, 0.5, 1.0), (1, 2, 4, 16), (1, 2, 8, 32), (1, 10, 1000)
SIGMAS = 6  # of a mean of 400 seeded runs


def cells():
    """Exact gradient and gap of Model A on 3456 cells, with what the bounds are called with."""
    for eigenvalues, start, noise in itertools.product(SPECTRA, STARTS, NOISES):
        d = len(eigenvalues)
        variances = [1.0 / d] * d if noise == "even" else [1.0 if value == 1.0 else 0.0 for value in eigenvalues]
        problem = Quadratic(eigenvalues, [start] * d, variances)
        for eta, m, tau, rounds in itertools.product(RATES, WORKERS, PERIODS, ROUNDS):
            yield problem, {"eta": eta, "m": m, "tau": tau, "K": tau * rounds}


def least_ratio(bound, exact):
    ratios = [
        bound(**arguments(bound, problem, **at)) / exact(problem, eta=at["eta"], m=at["m"], K=at["K"])
        for problem, at in cells()
    ]
    assert len(ratios) >= 2500
    return min(ratios)


@pytest.mark.every(2)
@pytest.mark.parametrize("name", ["pasgd_convex_sharp", "pasgd_smooth_sharp"])
def test_pasgd_convex_sharp_lies_above_3456_exact_cells(name):
    """pasgd_smooth_sharp at rho = 0 too."""
    ratio = least_ratio(getattr(theorems, name), additive.mean_squared_gradient)
    assert 1 <= ratio * (1 + 1e-12) < 1.001


def test_pasgd_gap_sharp_lies_above_3456_exact_cells():
    ratio = least_ratio(theorems.pasgd_gap_sharp, additive.mean_suboptimality)
    assert 1 <= ratio * (1 + 1e-12) < 1.001


@dataclass(frozen=True)
class Kinked:
    """F with a piecewise linear derivative, zero at 0: slopes between the breakpoints, the last ones 1."""

    breaks: np.ndarray
    slopes: np.ndarray

    def derivative(self, x):
        return np.interp(x, self.breaks, self._values)

    def value(self, x):
        i = np.clip(np.searchsorted(self.breaks, x) - 1, 0, len(self.slopes) - 1)
        past = x - self.breaks[i]
        return self._integrals[i] + self._values[i] * past + self.slopes[i] * past**2 / 2 - self._least

    def __post_init__(self):
        widths = np.diff(self.breaks)
        values = np.concatenate(([0.0], np.cumsum(self.slopes * widths)))
        values -= np.interp(0.0, self.breaks, values)
        integrals = np.concatenate(([0.0], np.cumsum(values[:-1] * widths + self.slopes * widths**2 / 2)))
        crossings = [
            self._at(i, values, integrals, -values[i] / self.slopes[i])
            for i in range(len(self.slopes))
            if self.slopes[i] > 0 and 0 <= -values[i] / self.slopes[i] <= widths[i]
        ]
        for name, part in (("_values", values), ("_integrals", integrals), ("_least", min(crossings))):
            object.__setattr__(self, name, part)

    def _at(self, i, values, integrals, past):
        return integrals[i] + values[i] * past + self.slopes[i] * past**2 / 2


def random_problem(rng, rho):
    """Kinks at a few steps' reach; every slope is -rho, 0, 1 or between, the outermost 1."""
    inner = np.sort(rng.normal(0, 0.3, rng.integers(1, 6)))
    inner = np.sort(np.append(inner, 0.0))
    slopes = rng.choice([-rho, 0.0, 1.0, rng.uniform(-rho, 1)], len(inner) - 1)
    outer = np.array([1.0, 1.0]) if rho else rng.choice([0.05, 1.0], 2)
    return Kinked(np.concatenate(([-64.0], inner, [64.0])), np.concatenate((outer[:1], slopes, outer[1:])))


def measured(problem, rng, *, eta, m, tau, rounds, start, copies=400):
    """Upper end (SIGMAS standard errors) of the averages over the steps of F'(xbar)^2 and of the gap."""
    x = np.full((copies, m), start)
    gradient, gap = np.zeros(copies), np.zeros(copies)
    for _ in range(rounds):
        for _ in range(tau):
            mean = x.mean(1)
            gradient += problem.derivative(mean) ** 2
            gap += problem.value(mean)
            x = x - eta * (problem.derivative(x) + rng.standard_normal(x.shape))
        x = np.repeat(x.mean(1, keepdims=True), m, axis=1)
    return [(s.mean() + SIGMAS * s.std() / math.sqrt(copies)) / (tau * rounds) for s in (gradient, gap)]


def drawn(seed, rho, count):
    """Random problems with their setting, measured."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        problem = random_problem(rng, rho)
        at = {
            "eta": rng.choice([0.05, 0.2, 0.5, 1.0]),
            "m": int(rng.choice([2, 8])),
            "tau": int(rng.choice([2, 8, 16])),
        }
        start, rounds = rng.choice([0.0, 0.5, 2.0]), 4
        gradient, gap = measured(problem, rng, **at, rounds=rounds, start=start)
        at |= {
            "L": 1.0,
            "sigma2": 1.0,
            "K": at["tau"] * rounds,
            "gap": max(float(problem.value(start)), 0.0),
            "rho": rho,
        }
        yield gradient, gap, at | {"R0": abs(start)}


def value(bound, at):
    return bound(**{symbol.name: at[symbol.name] for symbol in bound.parameters})


def test_no_sharper_bound_is_violated_on_60_random_convex_problems_with_kinks():
    runs = list(drawn(7, 0.0, 60))
    ratios = [value(theorems.pasgd_convex_sharp, at) / gradient for gradient, _, at in runs]
    gaps = [value(theorems.pasgd_gap_sharp, at) / gap for _, gap, at in runs]
    assert 1 < min(ratios) < 2.5
    assert 1 < min(gaps) < 1.5


@pytest.mark.parametrize("rho", [0.1, 0.5, 1.0])
def test_pasgd_smooth_sharp_lies_above_60_random_problems_with_saddles(rho):
    ratios = [value(theorems.pasgd_smooth_sharp, at) / gradient for gradient, _, at in drawn(8, rho, 60)]
    assert 1 < min(ratios) < 3


@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
def test_the_distance_of_the_two_gradients_is_attained_at_a_kink(rho):
    """Two workers at +-a of F' = L x (x > 0), -rho x (x < 0): |b - gbar|^2 = ((L + rho)/2)^2 V, none is smaller."""
    L, a = 1.7, 0.4
    b, gbar, V = 0.0, (L * a + rho * a) / 2, a**2
    assert (b - gbar) ** 2 == pytest.approx(((L + rho) / 2) ** 2 * V, rel=1e-14)
    at = {"gap": 0.0, "eta": 0.1, "L": L, "sigma2": 1.0, "m": 4, "K": 9, "rho": rho}
    price = [t(tau=2, **at) - t(tau=1, **at) for t in (theorems.pasgd_smooth_sharp, theorems.pasgd_smooth)]
    assert price[0] / price[1] == pytest.approx((b - gbar) ** 2 / (L**2 * V), rel=1e-9)


def test_pasgd_smooth_sharp_joins_its_two_ends():
    at = {"gap": 0.3, "eta": 0.1, "L": 2.0, "sigma2": 1.5, "m": 4, "K": 90, "tau": 9}
    assert theorems.pasgd_smooth_sharp(**at, rho=0.0) == pytest.approx(theorems.pasgd_convex_sharp(**at), rel=1e-14)
    assert theorems.pasgd_smooth_sharp(**at, rho=2.0) == pytest.approx(theorems.pasgd_smooth(**at, rho=2.0), rel=1e-14)


def test_woodworth_uppers_third_constant_is_the_minimum_over_the_rate():
    """Many workers, many steps, a start so far that eta L <= 1 does not bind: the third term alone is left."""
    at = {"L": 1.0, "R0": 1.0, "sigma2": 1.0, "m": 10**12, "tau": 10**5}
    rates = np.geomspace(1e-6, 1, 400_001)
    best = theorems.pasgd_gap_sharp(**at, eta=rates, K=at["tau"] * 10**3).min()
    assert theorems.woodworth_upper(**at, rounds=10**3) == pytest.approx(best, rel=2e-3)


@pytest.mark.parametrize("m", [1, 4, 1000])
@pytest.mark.parametrize("tau", [1, 5, 300])
def test_woodworth_upper_exceeds_the_gap_bound_at_its_best_rate(m, tau):
    at = {"L": 1.3, "R0": 2.0, "sigma2": 0.7, "m": m, "tau": tau}
    rates = np.geomspace(1e-8, 1 / 1.3, 100_001)
    best = theorems.pasgd_gap_sharp(**at, eta=rates, K=tau * 20).min()
    assert theorems.woodworth_upper(**at, rounds=20) >= best


def test_check_values_on_the_reference_quadratic():
    problem = reference_quadratic()
    at = {"eta": 0.05, "m": 16, "tau": 16, "K": 4000}
    values = [
        bound(**arguments(bound, problem, **at))
        for bound in (theorems.pasgd_gap, theorems.pasgd_gap_sharp, theorems.pasgd_convex_sharp)
    ]
    assert values == pytest.approx([0.0664, 0.04883, 0.04249], abs=5e-5)


@pytest.mark.thorough
def test_pasgd_compressed_convex_lies_above_the_exact_value():
    """Bernoulli sparsifiers of the round's change, on every cell that the condition covers."""
    bound, ratios = theorems.pasgd_compressed_convex, []
    for problem, at in cells():
        at["eta"] = min(at["eta"], 0.99)  # at 1 nothing may be compressed
        for omega in (1e-5, 1.0, 9.0):
            point = arguments(bound, problem, **at, omega=omega)
            if bound.holds_at(**point):
                rounds = {"tau": at["tau"], "rounds": at["K"] // at["tau"], "omega": omega}
                exact = compressed.mean_squared_gradient(problem, eta=at["eta"], m=at["m"], **rounds)
                ratios.append(bound(**point) / exact)
    assert len(ratios) > 2500
    assert 1 <= min(ratios) < 1.1


def test_pasgd_compressed_convex_exceeds_the_uncompressed_bound_by_a_quarter_against_an_eighth():
    at = {"gap": 0.0, "eta": 0.1, "L": 1.0, "sigma2": 1.0, "m": 10**6, "K": 100}
    prices = [theorems.pasgd_compressed_convex(**at, tau=n, omega=1e-9) for n in (1, 9)]
    plain = [theorems.pasgd_convex_sharp(**at, tau=n) for n in (1, 9)]
    published = [theorems.pasgd_iterations(**at, tau=n) for n in (1, 9)]
    assert (prices[1] - prices[0]) == pytest.approx(2 * (plain[1] - plain[0]), rel=1e-6)
    assert (prices[1] - prices[0]) == pytest.approx((published[1] - published[0]) / 4, rel=1e-5)


def at_random_rounds(bound, exact, seed=5, **more):
    """Least bound/exact over cells whose number of rounds is random, of known mean inverse."""
    random, ratios = np.random.default_rng(seed), []
    for problem, at in itertools.islice(cells(), 0, None, 7):
        counts, chances = random.integers(1, 40, 3), random.dirichlet(np.ones(3))
        inverse = float(chances @ (1 / counts)) * (1 + 1e-12)
        at = at | more | {"eta": min(at["eta"], 0.99), "inverse_rounds": min(inverse, 1.0)}
        point = arguments(bound, problem, **at)
        if bound.holds_at(**point):
            mean = float(chances @ np.array([exact(problem, at, int(rounds)) for rounds in counts]))
            ratios.append(bound(**point) / mean)
    assert len(ratios) > 100
    return min(ratios)


def test_pasgd_convex_sharp_wall_clock_lies_above_model_a_at_random_numbers_of_rounds():
    def exact(problem, at, rounds):
        return additive.mean_squared_gradient(problem, eta=at["eta"], m=at["m"], K=at["tau"] * rounds)

    assert 1 <= at_random_rounds(theorems.pasgd_convex_sharp_wall_clock, exact) < 1.05


@pytest.mark.parametrize("rho", [0.0, 0.01])
def test_pasgd_smooth_sharp_wall_clock_lies_above_model_a_at_random_numbers_of_rounds(rho):
    def exact(problem, at, rounds):
        return additive.mean_squared_gradient(problem, eta=at["eta"], m=at["m"], K=at["tau"] * rounds)

    assert 1 <= at_random_rounds(theorems.pasgd_smooth_sharp_wall_clock, exact, rho=rho) < 1.05


def test_pasgd_compressed_convex_wall_clock_lies_above_the_exact_value_at_random_numbers_of_rounds():
    def exact(problem, at, rounds):
        of_rounds = {name: at[name] for name in ("eta", "m", "tau", "omega")}
        return compressed.mean_squared_gradient(problem, **of_rounds, rounds=rounds)

    assert 1 <= at_random_rounds(theorems.pasgd_compressed_convex_wall_clock, exact, omega=1e-5) < 1.1
    assert at_random_rounds(theorems.pasgd_compressed_convex_wall_clock, exact, omega=1.0) >= 1
