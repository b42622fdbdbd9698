"""Limits by Lagrange multipliers against the best vectors that a search finds."""

import numpy as np
import pytest

from operators.coding.size_bounds import least, mean_cost, worst_cost

COSTS = [
    np.array([0.0, 3, 5, 5, 8]),
    np.array([1.0, 4, 4, 7, 7, 7, 8]),
    np.array([2.0, 2.0, 9.0]),
    np.arange(20.0),
]


def brute(values, budget, d):
    """Most total value of d coordinates on a grid of squared levels, by dynamic programming over whole budgets."""
    best = np.full(budget + 1, -np.inf)
    best[0] = 0
    for _ in range(d):
        new = np.full(budget + 1, -np.inf)
        for energy, value in values:
            new[energy:] = np.maximum(new[energy:], best[: budget + 1 - energy] + value)
        best = new
    return best.max()


@pytest.mark.parametrize("costs", COSTS, ids=len)
@pytest.mark.parametrize(("budget", "d"), [(4, 3), (9, 12), (16, 5)])
def test_mean_limit_covers_every_vector_and_is_nearly_reached(costs, budget, d):
    """Levels in steps of 1/8, so energies in steps of 1/64."""
    levels = np.arange(0, 8 * (costs.size - 1) + 1)
    grid = [(int(a * a), float(np.interp(a / 8, np.arange(costs.size), costs))) for a in levels if a * a <= 64 * budget]
    found = brute(grid, 64 * budget, d)
    assert found <= mean_cost(costs, budget, d) + 1e-9
    assert found >= 0.85 * mean_cost(costs, budget, d)


@pytest.mark.parametrize("costs", COSTS, ids=len)
@pytest.mark.parametrize(("budget", "d"), [(4, 3), (9, 12), (16, 5)])
def test_worst_limit_covers_every_vector_and_is_nearly_reached(costs, budget, d):
    grid = [(max(n - 1, 0) ** 2, float(c)) for n, c in enumerate(costs) if max(n - 1, 0) ** 2 <= budget]
    found = brute(grid, budget, d)
    assert found <= worst_cost(costs, budget, d) + 1e-9
    assert found >= 0.75 * worst_cost(costs, budget, d)


def test_golden_section_finds_the_minimum():
    assert least(lambda v: (v - 1.234) ** 2, -5, 5, 80) == pytest.approx(0, abs=1e-14)
    assert least(lambda v: v, 2, 5) == 2
