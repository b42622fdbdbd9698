"""Norms, means and their rounding against exact sums."""

import math
from fractions import Fraction

import numpy as np
import pytest

from operators.quantisers.scale import (
    energy,
    largest,
    largest_pattern,
    nearest,
    negligible,
    round_up_to_float32,
    tops_and_sums,
    total,
)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 1001])
def test_sums_equal_exact_sums(n):
    x = (np.random.default_rng(n).standard_cauchy(n) * 1e20).astype(np.float32)
    assert largest(x) == max(abs(float(v)) for v in x)
    assert energy(x) == pytest.approx(math.fsum(float(v) ** 2 for v in x), rel=1e-14)
    assert total(tops_and_sums(x, squares=False)[:, 1]) == pytest.approx(math.fsum(map(abs, map(float, x))), rel=1e-14)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1 + 2.0**-30, 1e-40, 2.0**-149, 1e-60, 3.4e38])
def test_rounding_goes_to_the_neighbour_promised(value):
    up = round_up_to_float32(value)
    assert up >= value
    assert float(np.float32(up)) == up
    assert up == 0 or float(np.nextafter(np.float32(up), np.float32(0))) < value
    assert abs(Fraction(nearest(value)) - Fraction(value)) <= abs(Fraction(up) - Fraction(value))


@pytest.mark.parametrize("rounding", [round_up_to_float32, nearest])
def test_scale_beyond_binary32_is_an_error(rounding):
    with pytest.raises(ValueError, match="rescale x"):
        rounding(3.5e38)


def test_negligible_means_below_the_smallest_normal_number():
    assert negligible(np.array([2.0**-127, -(2.0**-130)], np.float32))
    assert not negligible(np.array([0, -(2.0**-126)], np.float32))


def test_largest_pattern_tells_finite_from_not():
    for bad in (np.nan, np.inf, -np.inf, -np.nan):
        assert largest_pattern(np.array([1, bad, 2], np.float32).view(np.uint32)) > 0x7F7FFFFF
    assert largest_pattern(np.array([-3.4028235e38], np.float32).view(np.uint32)) == 0x7F7FFFFF
