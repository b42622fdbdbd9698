import math
import random

import pytest

from bounds.tau.least import least_integer


def jagged(draw):
    """a/n + b n rounded up to whole rounds of n, its smooth lower bounds, and its price beyond n."""
    a, b = draw.uniform(1, 1e5), draw.uniform(0.1, 10)

    def value(n):
        return math.ceil(a / n) * (1 + 1 / n) + b * n

    def bound(left, right):
        return a / right * (1 + 1 / right) + b * left

    return value, bound, lambda n: b * n


def test_jagged_objectives_are_minimised_as_by_a_full_scan():
    draw = random.Random(4)
    for _ in range(100):
        value, bound, floor = jagged(draw)
        best = least_integer(value, bound=bound, floor=floor)
        assert value(best) == min(map(value, range(1, 1200)))


@pytest.mark.parametrize("cap", [1, 2, 7, 50])
def test_a_cap_is_kept(cap):
    value, bound, floor = jagged(random.Random(5))
    best = least_integer(value, bound=bound, floor=floor, cap=cap)
    assert best <= cap
    assert value(best) == min(map(value, range(1, cap + 1)))


def test_few_of_many_integers_are_looked_at():
    seen = []

    def value(n):
        seen.append(n)
        return 1e12 / n + n

    best = least_integer(value, bound=lambda a, b: 1e12 / b + a, floor=lambda n: float(n))
    assert best == 10**6
    assert len(seen) < 20_000


def test_infeasible_integers_are_avoided():
    best = least_integer(
        lambda n: 100 / n if n <= 5 else math.inf,
        bound=lambda a, b: 100 / b if a <= 5 else math.inf,
        floor=lambda n: 0.0 if n <= 5 else math.inf,
    )
    assert best == 5


def test_a_flat_minimum_far_away_is_found_with_few_values():
    def slope(n):  # what the search knows of it only as non-increasing
        return 1 / math.sqrt(n)

    def value(n):
        seen.append(n)
        return 1 + slope(n) + 1e-12 * n

    seen = []
    best = least_integer(value, bound=lambda a, b: 1 + slope(b) + 1e-12 * a, floor=lambda n: 1 + 1e-12 * n)
    real = (0.5e12) ** (2 / 3)
    assert value(best) <= (1 + 1e-8) * min(value(math.floor(real)), value(math.ceil(real)))
    assert len(seen) < 1000
