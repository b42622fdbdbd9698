"""Golomb code of N >= 1 with P(N) = P (1 - P)^(N-1): the optimal prefix code of a geometric law."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Golomb:
    """Parameter M: quotient (N-1) div M in unary (ones, then a zero), remainder in truncated binary.

    Attributes
    ----------
    k : int
        A remainder below t = 2^(k+1) - M takes k = floor(log2 M) bits, any other k + 1.
    t : int
        A remainder below t = 2^(k+1) - M takes k = floor(log2 M) bits, any other k + 1.
    """

    M: int

    @classmethod
    def optimal(cls, p: float) -> Golomb:
        """Return the least M with q^M + q^(M+1) <= 1, q = 1 - p (Gallager and Van Voorhis 1975)."""
        return cls(1 if p >= 1 else max(1, math.ceil(math.log(2 - p) / -math.log1p(-p))))

    @property
    def k(self) -> int:
        """Bits of a short remainder."""
        return self.M.bit_length() - 1

    @property
    def t(self) -> int:
        """Number of short remainders."""
        return (1 << (self.k + 1)) - self.M

    def code(self, n: int) -> tuple[int, int, int]:
        """Return (ones before the zero, remainder field, its width) of N = n >= 1."""
        quotient, rest = divmod(n - 1, self.M)
        return (quotient, rest, self.k) if rest < self.t else (quotient, rest + self.t, self.k + 1)

    def mean_bits(self, p: float) -> float:
        """Return mean length under the geometric law: 1 + k + q^M/(1 - q^M) + (q^t - q^M)/(1 - q^M)."""
        if p >= 1:
            return 1.0 + self.k
        power = math.exp(self.M * math.log1p(-p))
        longer = math.exp(self.t * math.log1p(-p)) - power
        return 1 + self.k + (power + longer) / (1 - power)
