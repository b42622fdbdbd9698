"""Composition of two operators."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from bounds.claims import Claim, Contractive, NoClaim, StrictlyContractive, Unbiased

from ..bits.bitstream import join_messages, split_messages
from ..compressors.float_cast import FloatCast
from ..compressors.natural_compression import NaturalCompression
from ..compressors.qsgd import QSGD
from ..compressors.random_k import RandomK
from ..compressors.terngrad import TernGrad
from ..compressors.top_k import TopK
from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Randomness, Size
from .joint import FLAG_BITS, flag_field, prescale, shared_symmetries, unscale


@dataclass(frozen=True)
class Composition(Operator):
    """Send the outer operator's message of the inner operator's output; decode with the outer operator alone.

    Parameters
    ----------
    outer : Operator, optional
        Any operator; it uses the key folded by 1.
    inner : Operator, optional
        Any operator; it uses the key folded by 0.

    Notes
    -----
    Constants, with a of the inner and b of the outer operator (each proved by y = inner(x) and one line): both
    unbiased: unbiased with (1 + a)(1 + b) - 1, equality for every x if both are tight, since ``E|outer(y) - y|^2 <= b
    E|y|^2`` and ``E|y|^2 <= (1 + a)|x|^2``, and the two errors are uncorrelated; inner contractive, outer unbiased:
    contractive with a + b (1 + sqrt(a))^2, since ``|y| <= (1 + sqrt(a))|x|`` in mean square; inner unbiased, outer
    contractive: (sqrt(b (1 + a)) + sqrt(a))^2; both contractive: (sqrt(b) (1 + sqrt(a)) + sqrt(a))^2, surely if both
    are; all by Minkowski's inequality, and only while below 1.  The outer message and one bit for a scale, see
    ``joint.prescale``.  Raises the errors of both operators.
    """

    outer: Operator = field(default_factory=QSGD)
    inner: Operator = field(default_factory=lambda: RandomK(fraction=0.1))

    name = "composition"

    @property
    def randomness(self) -> Randomness:  # type: ignore[override]
        """Shared if the outer operator's is, because the inner one is never decoded."""
        if self.outer.randomness == "shared":
            return "shared"
        return "none" if self.outer.randomness == self.inner.randomness == "none" else "private"

    @property
    def equivariant(self) -> frozenset[str]:  # type: ignore[override]
        """Symmetries of both operators."""
        return shared_symmetries(self.outer, self.inner)

    def claim(self, d: int) -> Claim:
        """Return the composed constant, or ``NoClaim`` if it is not below 1."""
        inner, outer = self.inner.claim(d), self.outer.claim(d)
        if isinstance(inner, NoClaim) or isinstance(outer, NoClaim):
            return NoClaim("one of the two operators makes no claim")
        if isinstance(inner, Unbiased) and isinstance(outer, Unbiased):
            return Unbiased((1 + inner.omega) * (1 + outer.omega) - 1, tight=inner.tight and outer.tight)
        if isinstance(inner, Unbiased):
            alpha = (math.sqrt(outer.alpha * (1 + inner.omega)) + math.sqrt(inner.omega)) ** 2  # type: ignore[union-attr]
        elif isinstance(outer, Unbiased):
            alpha = inner.alpha + outer.omega * (1 + math.sqrt(inner.alpha)) ** 2
        else:
            alpha = (math.sqrt(outer.alpha) * (1 + math.sqrt(inner.alpha)) + math.sqrt(inner.alpha)) ** 2
        if alpha >= 1:
            return NoClaim(f"the composed bound {alpha:.4g} of the error is not below 1")
        sure = isinstance(inner, StrictlyContractive) and isinstance(outer, StrictlyContractive)
        return StrictlyContractive(alpha) if sure else Contractive(alpha)

    def bits(self, d: int) -> Size:
        """Return the size of the outer message and one bit for the scale."""
        size = self.outer.bits(d)
        if size.exact is not None:
            return Size.fixed(size.exact + FLAG_BITS)
        mean, worst = (None if n is None else n + FLAG_BITS for n in (size.expected_upper, size.worst_case))
        return Size(None, mean, worst)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(QSGD(levels=4), RandomK(fraction=0.25)),
            cls(NaturalCompression(), TernGrad()),
            cls(FloatCast("bf16"), TopK(fraction=0.5)),
        )

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        x, flag = prescale(x)
        y = self.inner._decode(*self.inner._encode(x, key.fold_in(0)), x.size, key.fold_in(0))
        message = self.outer._encode(y, key.fold_in(1))
        return join_messages([message, flag_field(flag)], [message[1], FLAG_BITS])

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        if bits < FLAG_BITS:
            raise CorruptMessage("the message must have at least 1 bit; got none")
        message, (flag, _) = split_messages(payload, bits, [bits - FLAG_BITS, FLAG_BITS])
        return unscale(self.outer._decode(*message, d, key and key.fold_in(1)), int(flag[0]))
