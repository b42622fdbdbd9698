"""A sum of a few numbers that is quick to load."""

from __future__ import annotations

from ..compilation import jit


@jit
def added(numbers):
    """Return the sum of a vector, one number after the other, as numba's own ``sum`` makes it.

    That one asks SciPy for a BLAS when it is loaded, which takes a fresh process a quarter of a second.
    """
    total = 0.0
    for value in numbers:
        total += value
    return total
