"""Every proved bound on local-update SGD lies above the exact values wherever its assumptions hold."""

import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bounds import AssumptionViolated, theorems
from bounds.dynamics import (
    Quadratic,
    additive,
    arguments,
    compressed,
    linear,
    multiplicative,
    reference_quadratic,
    two_shot,
)
from bounds.dynamics.geometric import excess, geometric_sum, mean_geometric_sum
from bounds.runtime import Constant, RuntimeModel, rounds_by
from bounds.symbols import tau as tau_symbol
from bounds.theorems.compressed_local_sgd import compressed_schedule_sums
from bounds.theorems.local_sgd import power_schedule_converges, schedule_sums

ROUNDING = 1 + 1e-12
drawn = settings(max_examples=60, deadline=None)

workers = st.integers(1, 40)
periods = st.integers(1, 40)
round_counts = st.integers(1, 200)
shares = st.floats(1e-3, 1)  # of the largest admissible learning rate
positive = st.floats(1e-3, 30)


@st.composite
def quadratics(draw):
    d = draw(st.integers(1, 4))
    eigenvalues = draw(st.lists(positive, min_size=d, max_size=d))
    start = draw(st.lists(st.floats(-5, 5), min_size=d, max_size=d))
    noise = draw(st.lists(st.floats(0, 5), min_size=d, max_size=d))
    return Quadratic(eigenvalues, start, noise)


def admissible_eta(bound, problem, share, **at):
    """``share`` of the largest learning rate (to 2^-50) that the assumptions of the bound allow.

    ``holds_at`` forgives a relative 1e-12 at the edge, where some bounds are attained; step inside the true edge.
    """
    low, high = 0.0, 2 / problem.L
    for _ in range(50):
        middle = (low + high) / 2
        if bound.holds_at(**arguments(bound, problem, eta=middle, **at)):
            low = middle
        else:
            high = middle
    return share * low * (1 - 1e-11)


def assert_above(bound, exact, problem, **at):
    value = bound(**arguments(bound, problem, **at))
    assert value * ROUNDING >= exact, f"{bound.name} = {value} is below the exact {exact}"


@given(quadratics(), workers, periods, round_counts, shares)
@drawn
def test_pasgd_iterations_lies_above_model_a(problem, m, tau, rounds, share):
    bound = theorems.pasgd_iterations
    at = {"m": m, "tau": tau, "K": tau * rounds}
    at["eta"] = admissible_eta(bound, problem, share, **at)
    assert_above(bound, additive.mean_squared_gradient(problem, eta=at["eta"], m=m, K=at["K"]), problem, **at)


@given(quadratics(), workers, periods, round_counts, shares, positive, st.floats(0, 30), st.floats(0, 0.99))
@drawn
def test_pasgd_runtime_lies_above_model_a(problem, m, tau, rounds, share, step_s, delay_s, left):
    bound = theorems.pasgd_runtime  # the time lies ``left`` of a round before the averaging that ends the run
    at = {"m": m, "tau": tau, "step_s": step_s, "delay_s": delay_s}
    at["time_s"] = (rounds - left) * (tau * step_s + delay_s)
    at["eta"] = admissible_eta(bound, problem, share, **at)
    exact = additive.mean_squared_gradient(problem, eta=at["eta"], m=m, K=tau * rounds)
    assert_above(bound, exact, problem, **at)


def random_rounds(draw):
    """Numbers of rounds with their probabilities, and the mean of their inverses."""
    counts = draw(st.lists(st.integers(1, 40), min_size=1, max_size=4))
    weights = np.array([draw(st.floats(0.05, 1)) for _ in counts])
    chances = weights / weights.sum()
    return counts, chances, float(chances @ (1 / np.array(counts)))


@given(quadratics(), workers, periods, shares, st.data())
@drawn
def test_pasgd_wall_clock_lies_above_model_a_at_random_numbers_of_rounds(problem, m, tau, share, data):
    counts, chances, inverse = random_rounds(data.draw)
    bound = theorems.pasgd_wall_clock
    at = {"m": m, "tau": tau, "inverse_rounds": min(inverse * (1 + 1e-12), 1.0)}
    at["eta"] = admissible_eta(bound, problem, share, **at)
    exact = [additive.mean_squared_gradient(problem, eta=at["eta"], m=m, K=tau * n) for n in counts]
    assert_above(bound, float(chances @ np.array(exact)), problem, **at)


@given(quadratics(), workers, periods, round_counts, shares)
@drawn
def test_pasgd_convex_lies_above_model_a(problem, m, tau, rounds, share):
    bound = theorems.pasgd_convex
    at = {"m": m, "tau": tau, "K": tau * rounds}
    at["eta"] = admissible_eta(bound, problem, share, **at)
    assert_above(bound, additive.mean_squared_gradient(problem, eta=at["eta"], m=m, K=at["K"]), problem, **at)


@given(quadratics(), workers, periods, round_counts, shares, st.floats(0, 1))
@drawn
def test_pasgd_smooth_lies_above_model_a(problem, m, tau, rounds, share, roughness):
    bound = theorems.pasgd_smooth
    at = {"m": m, "tau": tau, "K": tau * rounds, "rho": roughness * problem.L}
    at["eta"] = admissible_eta(bound, problem, share, **at)
    assert_above(bound, additive.mean_squared_gradient(problem, eta=at["eta"], m=m, K=at["K"]), problem, **at)


@given(quadratics(), workers, periods, round_counts, shares, st.floats(0, 20))
@drawn
def test_pasgd_multiplicative_lies_above_model_b(problem, m, tau, rounds, share, growth):
    bound = theorems.pasgd_multiplicative
    at = {"m": m, "tau": tau, "K": tau * rounds, "noise_growth": growth}
    at["eta"] = admissible_eta(bound, problem, share, **at)
    exact = multiplicative.mean_squared_gradient(
        problem, eta=at["eta"], m=m, tau=tau, rounds=rounds, noise_growth=growth
    )
    assert_above(bound, exact, problem, **at)


@given(quadratics(), workers, periods, round_counts, shares)
@drawn
def test_pasgd_gap_lies_above_model_a(problem, m, tau, rounds, share):
    bound = theorems.pasgd_gap
    at = {"m": m, "tau": tau, "K": tau * rounds}
    at["eta"] = admissible_eta(bound, problem, share, **at)
    assert_above(bound, additive.mean_suboptimality(problem, eta=at["eta"], m=m, K=at["K"]), problem, **at)


@given(quadratics(), workers, periods, round_counts, shares, st.floats(1e-3, 30))
@drawn
def test_pasgd_compressed_lies_above_the_exact_value(problem, m, tau, rounds, share, omega):
    bound = theorems.pasgd_compressed
    at = {"m": m, "tau": tau, "K": tau * rounds, "omega": omega}
    at["eta"] = admissible_eta(bound, problem, share, **at)
    exact = compressed.mean_squared_gradient(problem, eta=at["eta"], m=m, tau=tau, omega=omega, rounds=rounds)
    assert_above(bound, exact, problem, **at)


@given(quadratics(), workers, periods, round_counts, shares, st.floats(1e-3, 30), positive, st.floats(0, 30))
@drawn
def test_pasgd_compressed_runtime_lies_above_the_exact_value(problem, m, tau, rounds, share, omega, step_s, delay_s):
    bound = theorems.pasgd_compressed_runtime
    at = {"m": m, "tau": tau, "omega": omega, "step_s": step_s, "delay_s": delay_s}
    at["time_s"] = rounds * (tau * step_s + delay_s)
    at["eta"] = admissible_eta(bound, problem, share, **at)
    exact = compressed.mean_squared_gradient(problem, eta=at["eta"], m=m, tau=tau, omega=omega, rounds=rounds)
    assert_above(bound, exact, problem, **at)


@given(quadratics(), workers, periods, shares, st.floats(1e-3, 30), st.data())
@drawn
def test_pasgd_compressed_wall_clock_lies_above_the_exact_value(problem, m, tau, share, omega, data):
    counts, chances, inverse = random_rounds(data.draw)
    bound = theorems.pasgd_compressed_wall_clock
    at = {"m": m, "tau": tau, "omega": omega, "inverse_rounds": min(inverse * (1 + 1e-12), 1.0)}
    at["eta"] = admissible_eta(bound, problem, share, **at)
    exact = [
        compressed.mean_squared_gradient(problem, eta=at["eta"], m=m, tau=tau, omega=omega, rounds=n) for n in counts
    ]
    assert_above(bound, float(chances @ np.array(exact)), problem, **at)


@given(quadratics(), workers, periods, round_counts, shares, st.floats(1e-3, 30), st.floats(1e-3, 30))
@drawn
def test_pasgd_two_shot_lies_above_the_exact_value(problem, m, tau, rounds, share, omega1, omega2):
    bound = theorems.pasgd_two_shot
    stages = {"m": m, "tau": tau, "omega1": omega1, "omega2": omega2}
    eta = admissible_eta(bound, problem, share, K=tau * rounds, **stages)
    exact = two_shot.mean_squared_gradient(problem, eta=eta, rounds=rounds, **stages)
    assert_above(bound, exact, problem, eta=eta, K=tau * rounds, **stages)


@given(quadratics(), workers, periods, round_counts, shares, st.floats(1e-3, 30), positive, st.floats(0, 30))
@drawn
def test_pasgd_two_shot_runtime_lies_above_the_exact_value(problem, m, tau, rounds, share, omega, step_s, delay_s):
    bound = theorems.pasgd_two_shot_runtime
    stages = {"m": m, "tau": tau, "omega1": omega, "omega2": omega / 4}
    seconds = {"step_s": step_s, "delay_s": delay_s, "time_s": rounds * (tau * step_s + delay_s)}
    eta = admissible_eta(bound, problem, share, **stages, **seconds)
    exact = two_shot.mean_squared_gradient(problem, eta=eta, rounds=rounds, **stages)
    assert_above(bound, exact, problem, eta=eta, **stages, **seconds)


@given(quadratics(), workers, periods, shares, st.floats(1e-3, 30), st.data())
@drawn
def test_pasgd_two_shot_wall_clock_lies_above_the_exact_value(problem, m, tau, share, omega, data):
    counts, chances, inverse = random_rounds(data.draw)
    bound = theorems.pasgd_two_shot_wall_clock
    stages = {"m": m, "tau": tau, "omega1": omega, "omega2": omega / 4}
    inverse_rounds = min(inverse * (1 + 1e-12), 1.0)
    eta = admissible_eta(bound, problem, share, inverse_rounds=inverse_rounds, **stages)
    exact = [two_shot.mean_squared_gradient(problem, eta=eta, rounds=n, **stages) for n in counts]
    assert_above(bound, float(chances @ np.array(exact)), problem, eta=eta, inverse_rounds=inverse_rounds, **stages)


@given(quadratics(), workers, st.lists(st.tuples(st.integers(1, 12), shares), min_size=1, max_size=12))
@drawn
def test_pasgd_variable_lies_above_model_a(problem, m, schedule):
    taus = [tau for tau, _ in schedule]
    etas = [admissible_eta(theorems.pasgd_iterations, problem, share, m=m, tau=tau, K=tau) for tau, share in schedule]
    per_step = np.repeat(etas, taus)
    gradients = additive.trajectory(problem, eta=per_step, m=m)[:-1] @ problem.eigenvalues**2
    sums = schedule_sums(etas, taus, L=problem.L)
    assert_above(theorems.pasgd_variable, per_step @ gradients / per_step.sum(), problem, m=m, **sums)


@given(quadratics(), workers, periods, st.integers(1, 40), shares, st.floats(0, 0.95))
@drawn
def test_block_momentum_lies_above_the_exact_value(problem, m, tau, rounds, share, beta):
    bound = theorems.block_momentum
    at = {"m": m, "tau": tau, "K": tau * rounds, "block_momentum_factor": beta}
    at["eta"] = eta = admissible_eta(bound, problem, share, **at)
    y = excess(eta * problem.eigenvalues)
    shrink = (1 - eta * problem.eigenvalues) ** tau
    noise = eta**2 * problem.noise / m
    transition = np.zeros((len(y), 2, 2))  # of (error, momentum) over a round
    transition[:, 0, 0], transition[:, 0, 1] = shrink, -eta * beta
    transition[:, 1, 0], transition[:, 1, 1] = (1 - shrink) / eta, beta
    direction = np.array([1, -1 / eta])
    added = (noise * geometric_sum(y, tau))[:, None, None] * np.outer(direction, direction)
    moments = np.zeros((len(y), 2, 2))
    moments[:, 0, 0] = problem.start**2
    total = 0.0
    for _ in range(rounds):
        inner = moments[:, 0, 0] * geometric_sum(y, tau) + noise * tau * mean_geometric_sum(y, tau)
        total += problem.eigenvalues**2 @ inner
        moments = linear.step(moments, [transition], [1.0], added)
    assert_above(bound, total / (tau * rounds), problem, **at)


@given(quadratics(), workers, periods, round_counts, shares, st.floats(0, 0.99))
@drawn
def test_cooperative_lies_above_model_a_for_every_mixing_matrix(problem, m, tau, rounds, share, zeta):
    bound = theorems.cooperative  # the mean iterate does not notice a doubly stochastic matrix
    at = {"m": m, "tau": tau, "K": tau * rounds, "zeta": zeta}
    at["eta"] = admissible_eta(bound, problem, share, **at)
    assert_above(bound, additive.mean_squared_gradient(problem, eta=at["eta"], m=m, K=at["K"]), problem, **at)


@given(quadratics(), workers, periods, round_counts, shares)
@drawn
def test_khaled_iid_lies_above_model_a(problem, m, tau, rounds, share):
    bound = theorems.khaled_iid
    at = {"m": m, "tau": tau, "K": tau * rounds}
    at["eta"] = admissible_eta(bound, problem, share, **at)
    assert_above(bound, additive.mean_suboptimality(problem, eta=at["eta"], m=m, K=at["K"]), problem, **at)


@given(quadratics(), workers, periods, round_counts, shares)
@drawn
def test_khaled_iid_strongly_convex_lies_above_model_a(problem, m, tau, rounds, share):
    bound = theorems.khaled_iid_strongly_convex
    at = {"m": m, "tau": tau, "K": tau * rounds}
    at["eta"] = admissible_eta(bound, problem, share, **at)
    assert_above(bound, additive.squared_distance(problem, eta=at["eta"], m=m, k=at["K"]), problem, **at)


@given(quadratics(), workers, periods, round_counts, shares)
@drawn
def test_khaled_heterogeneous_lies_above_model_a(problem, m, tau, rounds, share):
    bound = theorems.khaled_heterogeneous
    at = {"m": m, "tau": tau, "K": tau * rounds}
    at["eta"] = admissible_eta(bound, problem, share, **at)
    assert_above(bound, additive.mean_suboptimality(problem, eta=at["eta"], m=m, K=at["K"]), problem, **at)


@given(quadratics(), workers, periods, st.integers(1, 200), st.floats(1.001, 10))
@drawn
def test_stich_lies_above_model_a(problem, m, tau, K, stretch):
    shift = stretch * max(16 * problem.L / problem.mu, tau)
    t = np.arange(K)
    eta, weights = 4 / (problem.mu * (shift + t)), (shift + t) ** 2
    moments = additive.trajectory(problem, eta=eta, m=m)[:-1]
    alone = additive.trajectory(problem, eta=eta, m=1)[:-1]  # a single worker moves at least as much as any local one
    largest = np.sqrt(max(alone @ problem.eigenvalues**2) + problem.sigma2)
    exact = weights @ moments @ problem.eigenvalues / (2 * weights.sum())
    assert_above(theorems.stich, exact, problem, m=m, tau=tau, K=K, shift=shift, G=largest)


@given(quadratics(), workers, periods, round_counts)
@drawn
def test_woodworth_upper_lies_above_model_a_at_its_step_size(problem, m, tau, rounds):
    K, R0, L, sigma2 = tau * rounds, problem.R0, problem.L, problem.sigma2
    rates = [1 / L]
    if sigma2 > 0:
        rates += [R0 * math.sqrt(m / (sigma2 * K)), (R0**2 / (L * sigma2 * tau * K)) ** (1 / 3)]
    eta = max(min(rates), 1e-300)
    exact = additive.mean_suboptimality(problem, eta=eta, m=m, K=K)
    assert_above(theorems.woodworth_upper, exact, problem, m=m, tau=tau, rounds=rounds)


def price_of_local_steps(bound, problem, **at):
    """The part of a bound on the squared gradient that is due to tau > 1."""
    return bound(**arguments(bound, problem, **at)) - bound(**arguments(bound, problem, **{**at, "tau": 1}))


@given(quadratics(), workers, st.integers(2, 40), shares)
@drawn
def test_price_of_local_steps_covers_the_exact_discrepancy(problem, m, tau, share):
    for bound in (theorems.pasgd_iterations, theorems.pasgd_convex, theorems.pasgd_smooth, theorems.cooperative):
        at = {"m": m, "tau": tau, "K": tau, "zeta": 0.0}
        eta = admissible_eta(bound, problem, share, **at)
        exact = additive.mean_gradient_discrepancy(problem, eta=eta, m=m, tau=tau)
        price = price_of_local_steps(bound, problem, eta=eta, **at)
        rounding = 1e-13 * bound(**arguments(bound, problem, eta=eta, **at))
        assert price + rounding >= exact


def test_price_of_local_steps_is_attained_where_the_curvature_vanishes():
    problem, at = Quadratic([1.0], [0.0], [1.0]), {"eta": 1e-6, "m": 4, "tau": 9, "K": 9}
    price = (1 - 1 / 4) * 1e-12 * (9 - 1) / 2
    assert additive.mean_gradient_discrepancy(problem, eta=1e-6, m=4, tau=9) == pytest.approx(price, rel=1e-4)
    assert price_of_local_steps(theorems.pasgd_convex, problem, **at) == pytest.approx(price, rel=1e-6)


def test_price_of_local_steps_is_attained_at_a_saddle():
    eta, rho, m, tau = 0.05, 1.0, 4, 12
    at = {"gap": 0.0, "eta": eta, "L": rho, "sigma2": 2.0, "m": m, "K": tau, "rho": rho}
    spread = [0.0]
    for _ in range(tau - 1):  # two workers drift apart along a direction of curvature -rho
        spread.append((1 + eta * rho) ** 2 * spread[-1] + (1 - 1 / m) * eta**2 * 2.0)
    price = theorems.pasgd_smooth(tau=tau, **at) - theorems.pasgd_smooth(tau=1, **at)
    assert price == pytest.approx(rho**2 * np.mean(spread), rel=1e-12)


def test_pasgd_best_runtime_follows_symbolically_from_its_objective():
    objective = theorems.pasgd_runtime.value
    roots = sp.solve(sp.diff(objective, tau_symbol), tau_symbol)
    stationary = [root for root in roots if not root.could_extract_minus_sign()]
    assert len(stationary) == 1
    assert sp.simplify(objective.subs(tau_symbol, stationary[0]) - theorems.pasgd_best_runtime.value) == 0
    at_best = theorems.pasgd_runtime.assuming[0].lhs.subs(tau_symbol, stationary[0])
    assert sp.simplify(at_best - theorems.pasgd_best_runtime.assuming[1].lhs) == 0


@pytest.mark.parametrize(
    ("a", "b", "converges"),
    [(0.9, 0.5, True), (0.9, 0.0, True), (0.5, 0.0, False), (1.0, 1.0, False), (2.0, 0.5, False)],
)
def test_power_schedule_rule_agrees_with_the_sums(a, b, converges):
    assert power_schedule_converges(a, b) is converges
    r = np.arange(1, 10**6 + 1, dtype=float)
    sums = [np.cumsum(r ** (b - a)), np.cumsum(r ** (b - 2 * a)), np.cumsum(r ** (2 * b - 3 * a))]
    grows = [bool(total[-1] > total[10**5 - 1] * 1.05) for total in sums]
    assert (grows == [True, False, False]) is converges


def test_power_schedule_whose_load_grows_is_not_covered_however_small_its_rates():
    r = np.arange(1, 200_001, dtype=float)
    sums = schedule_sums(1e-3 * r**-2.0, r**2.4, L=1.0)  # all three sums behave, the load does not
    assert sums["worst_load"] > schedule_sums(1e-3 * r[:1000] ** -2.0, r[:1000] ** 2.4, L=1.0)["worst_load"] * 10
    assert power_schedule_converges(2.0, 2.4) is False


def test_schedule_sums_refuse_a_schedule_that_is_none():
    with pytest.raises(ValueError, match="one eta and one tau per round"):
        schedule_sums([0.1], [1, 2], L=1.0)
    with pytest.raises(ValueError, match="eta > 0 and tau >= 1"):
        schedule_sums([0.1], [0], L=1.0)


def test_the_two_bounds_in_time_tell_finished_rounds_from_the_one_under_way():
    problem, at = Quadratic([1.0], [1.0], [0.0]), {"m": 1, "tau": 1}
    one, two = (additive.mean_squared_gradient(problem, eta=1.0, m=1, K=k) for k in (1, 2))
    late = theorems.pasgd_runtime(**arguments(theorems.pasgd_runtime, problem, eta=1.0, time_s=1.9, **CLOCK, **at))
    assert two <= late < one  # the second step is under way at 1.9 s: it is finished and counts
    inverse = rounds_by(RuntimeModel(Constant(1.0), m=1), time_s=1.9, tau=1).inverse.hi
    done = theorems.pasgd_wall_clock(
        **arguments(theorems.pasgd_wall_clock, problem, eta=1.0, inverse_rounds=float(inverse), **at)
    )
    assert done == pytest.approx(one)
    assert "pasgd_wall_clock" in theorems.pasgd_runtime.note
    assert "pasgd_compressed_wall_clock" in theorems.pasgd_compressed_runtime.note


@pytest.mark.parametrize("time_s", [3.0, 10.0, 30.0])
def test_random_times_obey_the_quotient_of_means_but_not_the_mean_of_quotients(time_s):
    # eta = 1, F = x^2/2: the first step ends at 0, so that the sum over any run is |x_1|^2 = 1; Poisson rounds
    problem, at = Quadratic([1.0], [1.0], [0.0]), {"m": 1, "tau": 1, "time_s": time_s}
    bound = theorems.pasgd_runtime(**arguments(theorems.pasgd_runtime, problem, eta=1.0, **CLOCK, **at))
    assert bound >= 1 / (time_s + 1)  # E sum/E steps: the run has N + 1 steps, N of mean T
    n = np.arange(1, 300)
    mean = float(np.exp(-time_s) + stats.poisson.pmf(n, time_s) @ (1 / n))
    assert bound < mean


CLOCK = {"step_s": 1.0, "delay_s": 0.0}


def test_pasgd_best_runtime_is_the_minimum_over_the_period():
    at = {"gap": 1.3, "eta": 0.02, "L": 0.9, "sigma2": 2.0, "m": 8, "time_s": 900.0, "step_s": 1.0, "delay_s": 3.0}
    tau = np.linspace(1, 50, 200_001)
    values = theorems.pasgd_runtime(**at, tau=tau)
    assert theorems.pasgd_best_runtime(**at) == pytest.approx(values.min(), rel=1e-9)
    assert 1 < tau[values.argmin()] < 50


def test_check_values_on_the_reference_quadratic():
    problem = reference_quadratic()
    at = {"eta": 0.05, "m": 16, "tau": 16, "K": 4000}
    values = [
        bound(**arguments(bound, problem, **at))
        for bound in (theorems.pasgd_iterations, theorems.pasgd_convex, theorems.pasgd_gap, theorems.khaled_iid)
    ]
    assert values == pytest.approx([0.17491, 0.09522, 0.0664, 0.7250], abs=5e-5)


def test_a_violated_assumption_names_the_rule_and_the_numbers():
    with pytest.raises(AssumptionViolated, match=r"pasgd_iterations needs .*tau.* <= 1; got .*eta = 0.5.*tau = 9"):
        theorems.pasgd_iterations(gap=1, eta=0.5, L=1, sigma2=1, tau=9, m=4, K=90)


def test_compressed_schedules_join_theorem_3_and_the_joint_bound():
    at = {"gap": 2.0, "sigma2": 3.0, "m": 4, "L": 1.5}
    eta, tau = [0.05, 0.05, 0.02], [4, 2, 6]
    sums = compressed_schedule_sums(eta, tau, L=1.5, omega=0.0, m=4)
    assert sums == schedule_sums(eta, tau, L=1.5)
    nearly = theorems.pasgd_compressed_variable(**at, omega=1e-9, **sums)
    assert nearly == pytest.approx(theorems.pasgd_variable(**at, **sums), rel=1e-8)

    constant = compressed_schedule_sums([0.05] * 10, [4] * 10, L=1.5, omega=1.0, m=4)
    fixed = theorems.pasgd_compressed(**at, eta=0.05, tau=4, K=40, omega=1.0)
    assert theorems.pasgd_compressed_variable(**at, omega=1.0, **constant) == pytest.approx(fixed, rel=1e-13)
    heavy = compressed_schedule_sums([0.05], [4], L=1.5, omega=6.0, m=4)
    with pytest.raises(AssumptionViolated):  # the load counts the compression
        theorems.pasgd_compressed_variable(**at, omega=6.0, **heavy)


def test_pasgd_compressed_variable_lies_above_the_exact_moments():
    """Coordinates kept with chance 1/(1 + omega): second moments round by round, with another tau each time."""
    problem, eta, m, omega = reference_quadratic(), 0.05, 4, 1.0
    taus = [8, 8, 4, 3, 2, 1, 1] * 10
    moment, total = problem.start**2, 0.0
    a = (1 - eta * problem.eigenvalues) ** 2
    for tau in taus:
        inner = moment
        for _ in range(tau):
            total += eta * float(problem.eigenvalues**2 @ inner)
            inner = a * inner + eta**2 * problem.noise / m
        moved = (1 - (1 - eta * problem.eigenvalues) ** tau) ** 2 * moment
        spread = eta**2 * problem.noise * sum(a**s for s in range(tau))
        moment = inner + omega / m * (moved + spread)
    sums = compressed_schedule_sums([eta] * len(taus), taus, L=problem.L, omega=omega, m=m)
    at = {"gap": problem.gap, "sigma2": problem.sigma2, "m": m, "L": problem.L, "omega": omega}
    assert total / sums["sum_eta"] <= theorems.pasgd_compressed_variable(**at, **sums)


@pytest.mark.parametrize(("tau", "m"), [(1, 1), (1, 4), (4, 4), (8, 4), (8, 16)])
def test_theorem_1_also_bounds_what_it_leaves_over_of_the_gradients_at_the_workers(tau, m):
    """Equal eigenvalues: an equality at tau = 1, less than twice too large at tau = 8 with four workers."""
    problem = Quadratic(np.ones(3), np.ones(3), np.full(3, 40.0))
    eta, K = 0.05, 800_000
    mean = additive.mean_squared_gradient(problem, eta=eta, m=m, K=K)
    local = mean + additive.mean_gradient_discrepancy(problem, eta=eta, m=m, tau=tau)
    left = 1 - eta - eta**2 * tau * (tau - 1)
    at = {"L": 1.0, "eta": eta, "sigma2": problem.sigma2, "gap": problem.gap, "tau": tau, "m": m, "K": K}
    ratio = theorems.pasgd_iterations(**at) / (mean + left * local)

    assert ratio >= 1 - 1e-9
    assert ratio == pytest.approx(1, abs=1e-4) if tau == 1 else ratio < (2 if m == 4 else 3.5)
