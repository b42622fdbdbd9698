"""Induced operator: a biased message and an unbiased one of its error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from bounds.claims import Claim, Contractive, NoClaim, Unbiased

from ..bits.bitstream import join_messages, split_messages
from ..compressors.natural_compression import NaturalCompression
from ..compressors.qsgd import QSGD
from ..compressors.random_k import RandomK
from ..compressors.scaled_sign import ScaledSign
from ..compressors.top_k import TopK
from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Randomness, Size
from .joint import (
    FLAG_BITS,
    exact_bits,
    flag_field,
    joined_size,
    joint_randomness,
    prescale,
    shared_symmetries,
    unscale,
)


@dataclass(frozen=True)
class Induced(Operator):
    """Send B(x) and U(x - B(x)); decode their sum.

    Parameters
    ----------
    biased : Operator, optional
        B, any operator.
    unbiased : Operator, optional
        U.  B uses the key folded by 0 and U the key folded by 1: with one stream for both, the second rounding would
        depend on the first one's error.

    Notes
    -----
    Unbiased with omega = alpha omega_U where B is contractive with alpha (or unbiased with omega_B, in place of alpha),
    since ``E|U(r) - r|^2 <= omega_U |r|^2`` at r = x - B(x); equality for every x if both are tight (Horvath and
    Richtarik 2021).  Both messages, each after its length in Elias omega code where that varies; one bit for a scale,
    see ``joint.prescale``.  Raises the errors of both operators.
    """

    biased: Operator = field(default_factory=lambda: TopK(fraction=0.1))
    unbiased: Operator = field(default_factory=QSGD)

    name = "induced"
    sources = ("horvath2021",)

    @property
    def randomness(self) -> Randomness:  # type: ignore[override]
        """Shared if either operator's is."""
        return joint_randomness(self.biased, self.unbiased)

    @property
    def equivariant(self) -> frozenset[str]:  # type: ignore[override]
        """Symmetries of both operators."""
        return shared_symmetries(self.biased, self.unbiased)

    def claim(self, d: int) -> Claim:
        """Return the product of the two constants."""
        first, second = self.biased.claim(d), self.unbiased.claim(d)
        if not isinstance(second, Unbiased):
            return NoClaim(f"{self.unbiased.name} is not unbiased, so neither is the sum")
        if isinstance(first, NoClaim):
            return NoClaim(f"{self.biased.name} makes no claim about its error")
        left = first.alpha if isinstance(first, Contractive) else first.omega
        return Unbiased(left * second.omega, tight=first.tight and second.tight)

    def bits(self, d: int) -> Size:
        """Return the size of both messages and one bit for the scale."""
        return joined_size([self.biased.bits(d), self.unbiased.bits(d)])

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(TopK(fraction=0.1), NaturalCompression()),
            cls(ScaledSign(), QSGD(levels=4, norm="max")),
            cls(TopK(fraction=0.1), RandomK(fraction=0.1)),
        )

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        x, flag = prescale(x)
        first = self.biased._encode(x, key.fold_in(0))
        rest = self.biased._decode(*first, x.size, key.fold_in(0))
        np.subtract(x, rest, out=rest)
        if not np.isfinite(rest).all():
            raise ValueError("x minus its biased part must fit binary32: rescale x")
        second = self.unbiased._encode(rest, key.fold_in(1))
        return join_messages([first, second, flag_field(flag)], self._exact(x.size))

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        first, second, (flag, _) = split_messages(payload, bits, self._exact(d))
        out = self.biased._decode(*first, d, key and key.fold_in(0))
        with np.errstate(over="ignore"):
            np.add(out, self.unbiased._decode(*second, d, key and key.fold_in(1)), out=out)
        if not np.isfinite(out).all():
            raise CorruptMessage("the sum of both parts exceeds binary32")
        return unscale(out, int(flag[0]))

    def _exact(self, d: int) -> list[int | None]:
        return [exact_bits(self.biased, d), exact_bits(self.unbiased, d), FLAG_BITS]
