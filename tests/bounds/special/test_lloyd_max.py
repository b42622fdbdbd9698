"""Lloyd-Max quantisers: the fixed-point conditions by quadrature, published distortions, certified twins."""

import math

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad

from bounds.enclosure import enclose
from bounds.special.lloyd_max import (
    LloydMaxDistortion,
    lloyd_max_distortion,
    lloyd_max_level_balls,
    lloyd_max_levels,
    lloyd_max_thresholds,
)

PUBLISHED = [
    0.3633802276,
    0.1174818478,
    0.0345477608,
    0.0095010080,
    0.0025046684,
    0.0006442397,
    0.0001634782,
    0.0000411851,
]


@pytest.mark.parametrize("bits", range(1, 9))
def test_distortion_has_the_published_digits(bits):
    assert abs(lloyd_max_distortion(bits) - PUBLISHED[bits - 1]) <= 0.5e-10


@pytest.mark.parametrize("bits", range(1, 7))
def test_kernel_lies_on_the_certified_distortion(bits):
    interval = enclose(LloydMaxDistortion(sp.Integer(bits)) + 0, {})
    assert interval.relative_width <= 1e-15
    assert lloyd_max_distortion(bits) == pytest.approx(interval.midpoint, rel=1e-12)


def test_certified_levels_contain_the_float_levels():
    from flint import arb, ctx

    with ctx.workprec(128):
        balls = lloyd_max_level_balls(3)
    for ball, level in zip(balls, lloyd_max_levels(3)[4:], strict=True):
        assert abs(ball - arb(float(level))) < arb(1e-14)
        assert ball.rad() < arb(1e-15)


@pytest.mark.parametrize("bits", [1, 2, 3, 5])
def test_levels_are_the_centroids_of_their_cells(bits):
    levels = lloyd_max_levels(bits)
    edges = np.concatenate(([-12], lloyd_max_thresholds(bits), [12]))
    for level, low, high in zip(levels, edges, edges[1:], strict=False):
        mass = quad(lambda x: math.exp(-x * x / 2), low, high, epsabs=1e-14)[0]
        first = quad(lambda x: x * math.exp(-x * x / 2), low, high, epsabs=1e-14)[0]
        assert level == pytest.approx(first / mass, abs=1e-10)


def test_one_bit_is_known_in_closed_form():
    np.testing.assert_allclose(lloyd_max_levels(1), [-math.sqrt(2 / math.pi), math.sqrt(2 / math.pi)], rtol=1e-15)
    assert lloyd_max_distortion(1) == pytest.approx(1 - 2 / math.pi, rel=1e-14)


def test_distortion_approaches_its_high_resolution_limit():
    scaled = [lloyd_max_distortion(bits) * 4**bits for bits in range(1, 9)]
    assert np.all(np.diff(scaled) > 0)
    assert scaled[-1] < math.pi * math.sqrt(3) / 2


@pytest.mark.parametrize("bits", [0, 9, 2.5])
def test_other_sizes_are_refused(bits):
    with pytest.raises(ValueError, match="1 <= bits <= 8"):
        lloyd_max_levels(bits)
