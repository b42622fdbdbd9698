"""Constants of inner products: three digits, their order, and the way from finite d to the limit."""

import math

import pytest

from bounds import limits


def at(b, d=None):
    return {"bits_per_coordinate": b} | ({} if d is None else {"d": d})


@pytest.mark.parametrize(
    ("bits", "limit", "eden", "turboquant"),
    [(1, 0.333, 0.571, 1.57), (2, 0.0667, 0.133, 0.571), (3, 0.0159, 0.0358, 0.185), (4, 0.00392, 0.00959, 0.0543)],
)
def test_constants_to_three_digits(bits, limit, eden, turboquant):
    found = (
        limits.inner_product_limit(bits=bits, d=1),
        limits.eden_inner_product_limit(**at(bits)),
        limits.turboquant_inner_product_limit(**at(bits)),
    )
    for value, digits in zip(found, (limit, eden, turboquant), strict=True):
        assert float(f"{value:.3g}") == digits


def test_one_bit_more_than_eden_is_never_enough_for_turboquant():
    """Equal at one bit of EDEN: (pi/2)(1 - 2/pi) = pi/2 - 1."""
    for b in range(1, 8):
        eden, turboquant = limits.eden_inner_product_limit(**at(b)), limits.turboquant_inner_product_limit(**at(b + 1))
        if b == 1:
            assert turboquant == pytest.approx(eden, rel=1e-14)
        else:
            assert turboquant > 1.3 * eden


@pytest.mark.parametrize("b", range(1, 9))
@pytest.mark.parametrize("d", [2, 3, 16, 128, 10**4])
def test_no_construction_is_below_the_limit_and_the_worst_query_is_not_below_the_average(b, d):
    least = limits.inner_product_limit(bits=b * d + 64, d=d)
    average = limits.turboquant_inner_product(**at(b, d))
    assert least <= min(limits.eden_inner_product(**at(b, d)), average)
    assert average <= limits.turboquant_inner_product_worst(**at(b, d))


@pytest.mark.parametrize("b", [1, 2, 4])
def test_constants_at_large_d_tend_to_the_limits(b):
    """With an error of order 1/d."""
    pairs = (
        (limits.eden_inner_product, limits.eden_inner_product_limit),
        (limits.turboquant_inner_product, limits.turboquant_inner_product_limit),
    )
    for finite, limit in pairs:
        gaps = [abs(finite(**at(b, d)) / limit(**at(b)) - 1) for d in (10**3, 10**6)]
        assert gaps[1] < 3e-6
        assert gaps[1] == pytest.approx(gaps[0] / 1000, rel=0.05)


def test_limit_is_that_of_unbiased_operators_solved_for_the_error():
    for omega, d in ((0.5, 10), (1e-6, 3), (40.0, 1000)):
        bits = limits.unbiased_bits(omega=omega, d=d)
        assert limits.inner_product_limit(bits=bits, d=d) == pytest.approx(omega, rel=1e-12)


def test_two_coordinates_at_one_bit_by_hand():
    """v = sqrt(2) cos(t), t uniform: E|v| = 2 sqrt(2)/pi, and the level is sqrt(2/pi)."""
    level, mean = math.sqrt(2 / math.pi), 2 * math.sqrt(2) / math.pi
    assert limits.turboquant_mse(**at(1, 2)) == pytest.approx(1 - 2 * level * mean + level**2, rel=1e-14)
    assert limits.eden_inner_product(**at(1, 2)) == pytest.approx(1 / mean**2 - 1, rel=1e-14)
