"""The mean length of the best Golomb code for a geometric law, as a function of -log2 of its success probability.

N is geometric with success probability P = 2^-c, q = 1 - P.  M is the least integer with q^M + q^(M+1) <= 1; N - 1 is
sent as its quotient by M in unary and its remainder in truncated binary (k bits below the threshold 2^(k+1) - M, else
k + 1, k = floor(log2 M)).  The mean is 1 + k + (q^M + q^threshold - q^M)/(1 - q^M).  This is the Huffman code of the
law (Gallager and van Voorhis 1975), so the mean is below entropy + 1 <= c + log2(e) + 1.
For P -> 0 it depends on the fractional part f of c + log2 ln 2 alone: 1 + k + 2^(2 - 2^(1-f)).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction

CONTINUOUS_FROM = 45.0  # from this c on the limit P -> 0 is exact to 1e-13 and M itself is not needed
LOG2_LN2 = math.log2(math.log(2))


def golomb_parameter(neg_log2_p: float) -> int:
    """Return the best M for success probability 2^-neg_log2_p; 0 < neg_log2_p <= 1000.

    Raises
    ------
    ValueError
        For arguments outside that range (M would not be a useful integer).
    """
    if not 0 < neg_log2_p <= 1000:
        raise ValueError(f"the Golomb parameter needs 0 < -log2 P <= 1000; got {neg_log2_p}")
    p = 2.0**-neg_log2_p
    return max(1, math.ceil((math.log(2) + math.log1p(-p / 2)) / -math.log1p(-p)))


def golomb_mean_bits(neg_log2_p: Any) -> Any:
    """Return mean bits of the best Golomb code; neg_log2_p > 0, float or array.

    Raises
    ------
    ValueError
        For other arguments.
    """
    value = np.asarray(neg_log2_p, float)
    if not np.all((value > 0) & (value < np.inf)):
        raise ValueError(f"the Golomb mean needs finite -log2 P > 0; got {value[~((value > 0) & (value < np.inf))]}")
    result = GolombMean.kernel(value)
    return float(result) if result.ndim == 0 else result


class GolombMean(SpecialFunction):
    """Mean bits of the best Golomb code of a geometric law with success probability 2^-c."""

    latex_template = r"\operatorname{{Golomb}}\left({0}\right)"

    @staticmethod
    def kernel(c: Any) -> Any:
        """Return mean bits in float64."""
        c = np.asarray(c, float)
        p = 2.0 ** -np.minimum(c, CONTINUOUS_FROM)
        rate = -np.log1p(-p)
        m = np.maximum(1.0, np.ceil((math.log(2) + np.log1p(-p / 2)) / rate))
        k = np.frexp(m)[1] - 1.0
        threshold = np.ldexp(2.0, k.astype(int)) - m
        exact = 1 + k + np.exp(-threshold * rate) / -np.expm1(-m * rate)
        whole = np.floor(c + LOG2_LN2)
        limit = 1 + whole + 2.0 ** (2 - 2.0 ** (1 - (c + LOG2_LN2 - whole)))
        return np.where(c < CONTINUOUS_FROM, exact, limit)

    @staticmethod
    def ball(c: Any) -> Any:
        """Return mean bits as a ball; wide where the code parameter cannot be decided."""
        from flint import arb

        two = arb(2)
        p = (-c * two.log()).exp()
        rate = -(-p).log1p()
        m = ((two - p).log() / rate).ceil().max(arb(1))
        exact = m.unique_fmpz()
        k = arb(int(exact).bit_length() - 1) if exact is not None else (m.log() / two.log()).floor()
        threshold = two ** (k + 1) - m
        return 1 + k + (-threshold * rate).exp() / -(-m * rate).expm1()
