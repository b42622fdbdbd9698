"""The upper half of a product of 64-bit numbers, and division by a number whose reciprocal is known.

A division takes as long as four products.  Where one coder waits for the quotient and the divisor is known long before,
its reciprocal is taken beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from ..compilation import jit

_WIDE = ir.IntType(128)


@intrinsic
def high_product(typing: Any, a: Any, b: Any) -> tuple[Any, Callable[[Any, Any, Any, Any], Any]]:
    """Return the upper 64 bits of the product of two uint64."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right = (builder.zext(factor, _WIDE) for factor in arguments)
        return builder.trunc(builder.lshr(builder.mul(left, right), ir.Constant(_WIDE, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), code


@jit
def reciprocal(divisor):
    """Return floor((2^64 - 1) / divisor), uint64."""
    return np.uint64(0xFFFFFFFFFFFFFFFF) // np.uint64(divisor)


@jit
def quotient(dividend, divisor, inverse):
    """Return floor(dividend / divisor) of uint64 from ``reciprocal(divisor)``.

    With 2^64 / divisor = inverse + r, 0 < r <= 1, the upper half of dividend * inverse is the quotient or one less.
    """
    below = high_product(dividend, inverse)
    return below + np.uint64(dividend - below * divisor >= divisor)
