"""Levels of stochastic rounding: stationarity, published values, exact variances, the compiled search."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

from operators.quantisers.stochastic_grid import (
    largest_variance,
    mean_variance,
    positive_levels,
    round_stochastically,
    stochastic_grid,
)


def variance(v, levels):
    """Of one number, by search."""
    for low, high in pairwise(levels):
        if low <= v <= high:
            return (v - low) * (high - v)
    return 0.0


def both_signs(positive):
    return [-c for c in reversed(positive)] + list(positive)


@pytest.mark.parametrize(
    ("bits", "levels", "error"),
    [
        (1, [3.0973], 8.597),
        (2, [0.7447, 3.0973], 0.5733),
        (3, [0.2959, 0.9248, 1.7056, 3.0973], 0.0926),
        (4, [0.1352, 0.4088, 0.6931, 0.9974, 1.3361, 1.7349, 2.2531, 3.0973], 0.0195),
    ],
)
def test_levels_and_error_are_the_published_ones(bits, levels, error):
    assert positive_levels(bits) == pytest.approx(levels, abs=1e-4)
    assert mean_variance(bits, 10**9) == pytest.approx(error, abs=5e-4)


@pytest.mark.parametrize("bits", [2, 3])
def test_no_other_levels_have_a_smaller_mean_variance(bits):
    *inner, top = positive_levels(bits)

    def cost(c):
        edges = both_signs([*c, top])
        return sum(
            quad(lambda v, a=a, b=b: (v - a) * (b - v) * norm.pdf(v), a, b, epsabs=1e-12)[0] for a, b in pairwise(edges)
        )

    found = minimize(cost, np.array(inner) * 1.05, method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-10})
    assert found.x == pytest.approx(inner, abs=1e-4)
    assert cost(inner) <= found.fun + 1e-9


@pytest.mark.parametrize("bits", range(1, 9))
def test_levels_increase_and_end_where_one_number_in_512_is_beyond(bits):
    c = positive_levels(bits)
    assert len(c) == 2 ** (bits - 1)
    assert c[0] > 0
    assert all(a < b for a, b in pairwise(c))
    assert 2 * norm.sf(c[-1]) == pytest.approx(1 / 512, rel=1e-9)


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("d", [2, 3, 12, 64])
def test_mean_variance_on_the_sphere_is_the_integral_over_the_angle(bits, d):
    levels, size = both_signs(positive_levels(bits)), math.sqrt(d)
    breaks = [math.acos(c / size) for c in levels if -size < c < size]
    edges = sorted([0.0, math.pi, *breaks])
    parts = [
        quad(lambda t: variance(size * math.cos(t), levels) * math.sin(t) ** (d - 2), a, b, epsabs=1e-12)[0]
        for a, b in pairwise(edges)
    ]
    total = quad(lambda t: math.sin(t) ** (d - 2), 0, math.pi)[0]
    assert mean_variance(bits, d) == pytest.approx(sum(parts) / total, rel=1e-8)


@pytest.mark.parametrize("bits", [1, 2, 3, 5])
def test_largest_variance_bounds_every_two_valued_vector_and_is_nearly_reached(bits):
    """Shares p and 1 - p of squares e and f with p e + (1 - p) f = 1: the extremal case of a concave majorant."""
    levels = both_signs(positive_levels(bits))
    squares = np.concatenate([np.linspace(0, 1, 400), np.linspace(1.001, 25, 800), [1000.0]])
    values = np.array([variance(math.sqrt(e), levels) for e in squares])
    low, high = squares <= 1, squares > 1
    e, f = squares[low][:, None], squares[high][None]
    share = (f - 1) / (f - e)
    mixed = share * values[low][:, None] + (1 - share) * values[high][None]
    assert 0.98 * largest_variance(bits) < mixed.max() <= largest_variance(bits) * (1 + 1e-9)


@pytest.mark.parametrize("bits", [1, 2, 8])
def test_search_finds_the_neighbours_and_rounds_up_by_the_word(bits):
    grid, top = stochastic_grid(bits), np.float32(positive_levels(bits)[-1])
    near = [np.nextafter(grid.levels, np.float32(side)) for side in (-9, 9)]
    random = 2 * np.random.default_rng(bits).standard_normal(800)
    v = np.concatenate([random, [0.0, -0.0, 1e9, -1e9], grid.levels, *near]).astype(np.float32)
    words = np.random.default_rng(1).integers(0, 2**32, v.size, dtype=np.uint32)
    codes = np.empty(v.size, np.uint32)
    search = grid.levels, grid.start, grid.per_unit, grid.below, grid.inside
    round_stochastically(v, np.float32(1), top, *search, words, codes)
    levels = [float(c) for c in grid.levels]
    for x, word, code in zip(v.tolist(), words.tolist(), codes.tolist(), strict=True):
        if abs(x) > levels[-1]:
            assert code == 2**bits
            continue
        under = next(j for j in range(2**bits - 1) if x <= levels[j + 1])
        up = word / 2**32 < (x - levels[under]) / (levels[under + 1] - levels[under])
        assert code == under + up
