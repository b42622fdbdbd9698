"""Moments on the sphere against numerical integration, closed forms and the normal limit."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from scipy.integrate import quad

from bounds import limits
from bounds.special.lloyd_max import lloyd_max_distortion, lloyd_max_levels, lloyd_max_thresholds
from bounds.special.sphere_quantiser import (
    SphereLevelProduct,
    SphereLevelSquare,
    cell_moments,
    level_moments,
    lloyd_max_moments,
    lloyd_max_sphere_distortion,
    mean_magnitude,
)

EDGES = np.array([0.0, 0.3, 1.1, 2.0, np.inf])


@pytest.mark.parametrize("d", [2, 3, 4, 17, 64])
def test_cells_equal_integrals_over_the_angle(d):
    """v = sqrt(d) cos(t), where t has density sin(t)^(d-2)."""

    def integral(power, low, high):
        def f(t):
            return (math.sqrt(d) * math.cos(t)) ** power * math.sin(t) ** (d - 2)

        angles = [math.acos(min(1.0, edge / math.sqrt(d))) for edge in (high, low)]
        return quad(f, *angles, epsabs=1e-13)[0]

    total = integral(0, 0, math.sqrt(d))
    for power, found in enumerate(cell_moments(d, EDGES)):
        want = [integral(power, low, high) / total for low, high in itertools.pairwise(EDGES)]
        assert found == pytest.approx(want, abs=1e-10)


@pytest.mark.parametrize("d", [1, 2, 5, 64, 1000])
def test_all_cells_together_have_mass_one_and_unit_energy(d):
    mass, first, second = cell_moments(d, EDGES)
    assert mass.sum() == pytest.approx(1)
    assert second.sum() == pytest.approx(1)
    assert first.sum() == pytest.approx(
        math.sqrt(d / math.pi) * math.gamma(d / 2) / math.gamma((d + 1) / 2) if d < 300 else math.sqrt(2 / math.pi),
        rel=1e-12 if d < 300 else 1e-3,
    )


def test_one_coordinate_is_plus_or_minus_one():
    for moments in cell_moments(1, EDGES):
        assert moments.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_large_d_gives_the_normal_law(bits):
    half, kept = 2 ** (bits - 1), 1 - lloyd_max_distortion(bits)
    found = level_moments(10**8, lloyd_max_levels(bits)[half:], lloyd_max_thresholds(bits)[half:])
    assert found == pytest.approx((kept, kept), rel=1e-6)


@pytest.mark.parametrize("d", [1, 2, 39, 40, 1000, 10**12])
def test_mean_magnitude_keeps_its_digits(d):
    """The difference of two logarithms of gamma functions is off by 1e-3 at d = 10^12."""
    with mpmath.workdps(40):
        want = mpmath.sqrt(d / mpmath.pi) * mpmath.gammaprod([mpmath.mpf(d) / 2], [mpmath.mpf(d + 1) / 2])
    assert mean_magnitude(d) == pytest.approx(float(want), rel=1e-14)


@pytest.mark.parametrize("bits", [0, 1, 3, 8])
@pytest.mark.parametrize("d", [2, 3, 100, 10**9])
def test_float_moments_lie_next_to_the_balls(bits, d):
    with ctx.workprec(200):
        balls = [float(cls.ball(arb(bits), arb(d)).mid()) for cls in (SphereLevelProduct, SphereLevelSquare)]
    assert lloyd_max_moments(bits, d) == pytest.approx(balls, rel=1e-13)
    assert lloyd_max_sphere_distortion(bits, d) == pytest.approx(1 - 2 * balls[0] + balls[1], rel=1e-8)


def test_worst_query_of_the_constant_scale_is_the_vector_itself_from_two_bits_on():
    """d times the variance of sum v Q(v)/(d E v Q(v)), n = 20 000 uniform directions at d = 64."""
    d, rng = 64, np.random.default_rng(0)
    g = rng.standard_normal((20_000, d))
    v = g * (math.sqrt(d) / np.linalg.norm(g, axis=1))[:, None]
    for bits, stated in [(1, 0.0708), (2, 0.192), (3, 0.0842)]:
        q = lloyd_max_levels(bits)[np.searchsorted(lloyd_max_thresholds(bits), v)]
        along = (v * q).mean(axis=1) / lloyd_max_moments(bits, d)[0]
        assert d * along.var() == pytest.approx(stated, rel=0.1)  # the limit; 1/d off
        omega = limits.eden_inner_product(bits_per_coordinate=bits, d=d)
        assert (d * along.var() > omega) == (bits > 1)
