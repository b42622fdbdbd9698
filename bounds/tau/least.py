"""The integer with the least value, by branch and bound: exact without looking at every integer."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from functools import cache

ROUNDING = 1e-12  # relative; two integers this close in value count as equally good
FAR, NEARLY = 2**12, 1e-8  # from this integer on, this close in value counts as equally good


def least_integer(
    value: Callable[[int], float],
    *,
    bound: Callable[[int, int], float],
    floor: Callable[[int], float],
    cap: int | None = None,
    start: float = 1.0,
) -> int:
    """Return the integer n >= 1 (and <= cap) at which value(n) is least, up to rounding; the smallest one found at a
    tie.  Beyond 4096 its value exceeds the least by at most 1e-8 of it: there the values are too flat for more.

    bound(a, b) : at most value(n) for every n strictly between a and b.  floor(n) : at most value(k) for every k >= n,
    growing with n beyond every value unless there is a cap.  Infinite values mark what is not feasible.  The integers
    around start are looked at first: with a real minimiser of a convex value there, they end the search.
    """
    value = cache(value)
    grid = [1]
    while (cap is None or grid[-1] < cap) and floor(grid[-1] + 1) < min(map(value, grid)):
        grid.append(2 * grid[-1] if cap is None else min(2 * grid[-1], cap))
    around = (math.floor(start), math.ceil(start)) if 1 <= start < math.inf else ()
    best = min((n for n in (*grid, *around) if cap is None or n <= cap), key=value)
    queue = [(bound(a, b), a, b) for a, b in itertools.pairwise(grid) if b - a > 1]
    heapq.heapify(queue)
    while queue:
        lowest, a, b = heapq.heappop(queue)
        if lowest >= value(best) * (1 - ROUNDING) or math.isinf(lowest):
            break
        if a >= FAR and lowest >= value(best) * (1 - NEARLY):
            continue
        middle = (a + b) // 2
        if value(middle) < value(best):
            best = middle
        for left, right in ((a, middle), (middle, b)):
            if right - left > 1:
                heapq.heappush(queue, (bound(left, right), left, right))
    return best
