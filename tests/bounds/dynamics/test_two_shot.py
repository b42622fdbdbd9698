"""Exact local-update SGD through two shots against enumeration, simulation, published values and its theorem."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from bounds import theorems
from bounds.dynamics import Quadratic, arguments, compressed, looseness, two_shot

PROBLEM = Quadratic([0.25, 1.0], [1.0, -2.0], [0.5, 0.25])
PUBLISHED = Quadratic([0.05, 0.3, 1.0], [1.0] * 3, [1 / 3] * 3)
RUN = {"eta": 0.1, "m": 4, "tau": 5, "rounds": 30}


def exact_gradients(eta, m, tau, omega1, omega2, rounds):
    """E|grad F(xbar)|^2 at every gradient and at the end, enumerating what workers and owner keep of a coordinate."""
    keep1, keep2 = 1 / (1 + omega1), 1 / (1 + omega2)
    inner = [Fraction(0)] * (tau * rounds)
    final = Fraction(0)
    for lam, e, s in zip(PROBLEM.eigenvalues, PROBLEM.start, PROBLEM.noise, strict=True):
        lam, moment, s = Fraction(lam), Fraction(e) ** 2, Fraction(s)
        for r in range(rounds):
            shrink, variance = Fraction(1), Fraction(0)  # a worker's e_i = shrink * e + noise of this variance
            for k in range(tau):
                inner[r * tau + k] += lam**2 * (shrink**2 * moment + variance / m)
                shrink, variance = shrink * (1 - eta * lam), variance * (1 - eta * lam) ** 2 + eta**2 * s
            after = Fraction(0)
            for *kept, owner in product([0, 1], repeat=m + 1):
                n = sum(kept)
                weight = keep1**n * (1 - keep1) ** (m - n) * (keep2 if owner else 1 - keep2)
                scale = owner * (1 + omega2) * (1 + omega1) / m
                after += weight * ((1 + scale * n * (shrink - 1)) ** 2 * moment + scale**2 * n * variance)
            moment = after
        final += lam**2 * moment
    return inner, final


@pytest.mark.parametrize(("omega1", "omega2"), [(0, 0), (1, 3), (3, Fraction(1, 2)), (0, 2)])
@pytest.mark.parametrize(("tau", "rounds"), [(1, 3), (4, 2)])
def test_closed_forms_equal_the_enumeration(omega1, omega2, tau, rounds):
    eta, m = Fraction(1, 4), 3
    inner, final = exact_gradients(eta, m, tau, Fraction(omega1), Fraction(omega2), rounds)
    at = {"eta": float(eta), "m": m, "tau": tau, "omega1": float(omega1), "omega2": float(omega2), "rounds": rounds}
    assert two_shot.squared_gradient(PROBLEM, **at) == pytest.approx(float(final), rel=1e-13)
    assert two_shot.mean_squared_gradient(PROBLEM, **at) == pytest.approx(float(sum(inner) / len(inner)), rel=1e-13)


def test_published_check_values():
    values = two_shot.squared_gradient(PUBLISHED, omega1=[0, 3, 1, 0.25], omega2=[0, 0, 0.25, 1], **RUN)
    assert values == pytest.approx([0.00638, 0.02836, 0.01712, 0.01991], abs=5e-6)


def test_without_a_second_stage_it_is_compressed_local_sgd():
    at = {"eta": 0.05, "m": 4, "tau": [1, 8], "rounds": [200, 25]}
    for name in ("squared_gradient", "mean_squared_gradient"):
        one_stage = getattr(compressed, name)(PUBLISHED, omega=3, **at)
        assert getattr(two_shot, name)(PUBLISHED, omega1=3, omega2=0, **at) == pytest.approx(one_stage, rel=1e-14)


def simulated(omega1, omega2, runs, seed):
    """(mean, standard error) of |grad F|^2 at the end of simulated runs, gradient step by gradient step."""
    rng = np.random.default_rng(seed)
    lam, noise = PUBLISHED.eigenvalues, np.sqrt(PUBLISHED.noise)
    x = np.broadcast_to(PUBLISHED.start, (runs, 3)).copy()
    for _ in range(RUN["rounds"]):
        local = np.repeat(x[:, None], RUN["m"], axis=1)
        for _ in range(RUN["tau"]):
            local -= RUN["eta"] * (lam * local + noise * rng.standard_normal(local.shape))
        change = local - x[:, None]
        sent = change * (1 + omega1) * (rng.random(change.shape) < 1 / (1 + omega1))
        mean = sent.mean(axis=1)
        x += mean * (1 + omega2) * (rng.random(mean.shape) < 1 / (1 + omega2))
    squares = (lam**2 * x**2).sum(axis=1)
    return squares.mean(), squares.std(ddof=1) / np.sqrt(runs)


@pytest.mark.parametrize(("omega1", "omega2"), [(0, 0), (3, 0), (1, 0.25), (0.25, 1)])
def test_simulated_runs_agree_within_two_standard_errors(omega1, omega2):
    mean, standard_error = simulated(omega1, omega2, runs=3000, seed=24)
    exact = two_shot.squared_gradient(PUBLISHED, omega1=omega1, omega2=omega2, **RUN)
    assert abs(mean - exact) <= 2 * standard_error
    assert abs(mean - 0.8 * exact) > 2 * standard_error


def grid():
    """Values of eta, m, tau, omega1, omega2 and rounds, all combinations along axes of their own."""
    axes = (
        [0.003, 0.01, 0.03, 0.1, 0.3, 1.0],
        [1, 4, 64],
        [1, 3, 10, 40],
        [0, 0.01, 0.3, 3, 100],
        [0, 0.01, 0.3, 3],
        [1, 5, 200],
    )
    names = ("eta", "m", "tau", "omega1", "omega2", "rounds")
    return dict(zip(names, (np.ravel(a) for a in np.meshgrid(*axes, indexing="ij")), strict=True))


@pytest.mark.parametrize(
    ("problem", "least"),
    [(PUBLISHED, 1.1846), (Quadratic([1.0], [1e-3], [1.0]), 1.0050), (Quadratic([1.0], [1.0], [0.0]), 1.0)],
    ids=["both", "noise", "slope"],
)
def test_the_theorem_is_above_the_exact_error_in_all_cells_where_it_holds(problem, least):
    """2019 cells of each problem; a step of 1 on one slope reaches the theorem."""
    at = grid()
    known = {name: value for name, value in at.items() if name != "rounds"} | {"K": at["tau"] * at["rounds"]}
    bound = theorems.pasgd_two_shot
    inside = bound.holds_at(**arguments(bound, problem, **known))
    assert inside.sum() >= 2000
    at, known = ({k: v[inside] for k, v in values.items()} for values in (at, known))
    ratio = looseness(bound, two_shot.mean_squared_gradient(problem, **at), problem, **known)
    assert ratio.min() >= 1
    assert ratio.min() == pytest.approx(least, abs=5e-5)


def test_without_a_second_stage_the_theorem_is_that_of_compressed_local_sgd():
    at = {"gap": 1, "eta": 0.1, "L": 1, "sigma2": 1, "tau": 4, "m": 4, "K": 100}
    one_stage = theorems.pasgd_compressed(omega=3, **at)
    assert theorems.pasgd_two_shot(omega1=3, omega2=0, **at) == pytest.approx(one_stage, rel=1e-14)


def test_the_second_stage_weighs_on_the_step_as_one_worker_would():
    """The condition of omega2 alone is that of one worker with omega = omega2."""
    at = {"gap": 1, "L": 1, "sigma2": 1, "tau": 4, "K": 100}
    eta = np.linspace(0.001, 0.3, 500)
    one_worker = theorems.pasgd_compressed.holds_at(omega=0.5, m=1, eta=eta, **at)
    assert (theorems.pasgd_two_shot.holds_at(omega1=0, omega2=0.5, m=64, eta=eta, **at) == one_worker).all()
