"""Products and quotients of 64-bit numbers against Python's."""

import numba
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from operators.coding.e8 import high_product, quotient, reciprocal

WORDS = st.integers(0, 2**64 - 1)


@numba.njit
def upper(a, b):
    return high_product(a, b)


@given(WORDS, WORDS)
@example(2**64 - 1, 2**64 - 1)
@example(2**32, 2**32)
def test_upper_half_of_a_product(a, b):
    assert upper(np.uint64(a), np.uint64(b)) == a * b >> 64


@given(WORDS, st.integers(1, 2**19))
@example(2**64 - 1, 1)
@example(2**64 - 1, 2**18)
@example(3 * 2**57 - 1, 3)
@example(3 * 2**57, 3)
def test_quotient_by_a_reciprocal_is_the_quotient(dividend, divisor):
    inverse = np.uint64(reciprocal(divisor))
    assert quotient(np.uint64(dividend), np.uint64(divisor), inverse) == dividend // divisor


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 2**11, 2**18 + 31])
def test_quotient_at_multiples_and_next_to_them(divisor):
    inverse = np.uint64(reciprocal(divisor))
    for factor in (1, 2, 5, (2**64 - 1) // divisor - 1, (2**64 - 1) // divisor):
        for dividend in (factor * divisor - 1, factor * divisor, min(factor * divisor + 1, 2**64 - 1)):
            assert quotient(np.uint64(dividend), np.uint64(divisor), inverse) == dividend // divisor
