"""DIANA in two shots: one step contracts its Lyapunov function as stated, enumerated over all coins."""

import math
from itertools import product

import numpy as np
import pytest

from bounds.theorems import diana, diana_distance, two_shot_diana, two_shot_diana_distance

M, L, MU = 2, 1.0, 0.1
STATES = 2000


def one_step(x, h, slopes, minima, omega1, omega2, longer=1.0):
    """(Psi, E Psi after a step) for F_i = slopes_i (x - minima_i)^2/2, coordinate-wise coins, arrays of states."""
    a, eta = 1 / (1 + omega1), 1 / (L * (1 + omega2) * (1 + 6 * omega1 / M))
    weight = 4 * omega1 * (1 + omega2) * eta**2 / (M * a)
    best = (slopes * minima).sum(axis=0) / slopes.sum(axis=0)
    at_best = slopes * (best - minima)

    def psi(x, h):
        return (x - best) ** 2 + weight * ((h - at_best) ** 2).mean(axis=0)

    after = sum(chance * psi(*state) for chance, *state in steps(x, h, slopes, minima, omega1, omega2, longer=longer))
    return psi(x, h), after


def steps(x, h, slopes, minima, omega1, omega2, longer=1.0):
    """(chance, x, h) after a step, for every outcome of the coins."""
    a, eta = 1 / (1 + omega1), 1 / (L * (1 + omega2) * (1 + 6 * omega1 / M))
    gradient = slopes * (x - minima)
    for *kept, owner in product([0, 1], repeat=M + 1):
        chance = 1 / (1 + omega2) if owner else omega2 / (1 + omega2)
        for keep in kept:
            chance = chance * (1 / (1 + omega1) if keep else omega1 / (1 + omega1))
        message = (1 + omega1) * np.array(kept)[:, None] * (gradient - h)
        mean = (h + message).mean(axis=0)
        yield chance, x - longer * eta * owner * (1 + omega2) * mean, h + a * message


@pytest.mark.parametrize(("omega1", "omega2"), [(0.5, 0.1), (3, 0.5), (9, 4), (0.1, 9)])
def test_two_shot_diana_lies_above_one_exact_step(omega1, omega2):
    rng = np.random.default_rng(24)
    slopes = rng.uniform(MU, L, (M, STATES))
    minima, x, h = (
        10 ** rng.uniform(-3, 1, shape) * rng.choice([-1, 1], shape) for shape in ((M, STATES), (STATES,), (M, STATES))
    )
    before, after = one_step(x, h, slopes, minima, omega1, omega2)
    steps = two_shot_diana(kappa=L / MU, omega1=omega1, omega2=omega2, m=M, epsilon=np.exp(-1))
    assert (after <= (1 - 1 / steps) * before * (1 + 1e-12)).all()


@pytest.mark.parametrize("epsilon", [0.7, 0.5, 0.3])
@pytest.mark.parametrize(("omega1", "omega2"), [(0.1, 0.1), (0.5, 0.1)])
def test_two_shot_diana_distance_lies_above_the_exact_one_from_exact_shifts(omega1, omega2, epsilon):
    rng = np.random.default_rng(25)
    slopes, minima = np.ones((M, 5)), rng.normal(size=(M, 5))
    x = rng.normal(size=5)
    count = math.ceil(two_shot_diana_distance(kappa=1.0, omega1=omega1, omega2=omega2, m=M, epsilon=epsilon))
    states = [(1.0, x, slopes * (x - minima))]
    for _ in range(count):
        states = [
            (p * chance, *after)
            for p, x_now, h in states
            for chance, *after in steps(x_now, h, slopes, minima, omega1, omega2)
        ]
    best = minima.mean(axis=0)
    left = sum(p * (x_now - best) ** 2 for p, x_now, _ in states)
    assert count <= 5
    assert sum(p for p, _, _ in states) == pytest.approx(1)
    assert (left <= epsilon * (x - best) ** 2 * (1 + 1e-12)).all()


def test_more_than_twice_the_step_diverges():
    """From exact shifts at zero and one curvature, E|x|^2 changes by 1 - 2 eta L + (1 + omega2)(eta L)^2."""
    state = (np.ones(1), np.zeros((M, 1)), np.full((M, 1), L), np.zeros((M, 1)))
    before, after = one_step(*state, 0.0, 9.0)
    assert after == pytest.approx(0.9 * before, rel=1e-14)
    before, after = one_step(*state, 0.0, 9.0, longer=2.1)
    assert after > before


def test_without_a_second_stage_it_is_diana():
    at = {"kappa": 30.0, "m": 4, "epsilon": 0.01}
    for omega in (0.1, 4.0, 100.0):
        assert two_shot_diana(omega1=omega, omega2=0, **at) == pytest.approx(diana(omega=omega, **at), rel=1e-14)
        distance = diana_distance(omega=omega, **at)
        assert two_shot_diana_distance(omega1=omega, omega2=0, **at) == pytest.approx(distance, rel=1e-14)
