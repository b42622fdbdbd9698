"""Moments on the sphere against numerical integration, closed forms and the normal limit."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from bounds.special.lloyd_max import lloyd_max_distortion, lloyd_max_levels, lloyd_max_thresholds
from operators.sphere import cell_moments, level_moments

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
