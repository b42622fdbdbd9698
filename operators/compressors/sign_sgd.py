"""Signs alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import NoClaim

from ..codes.signs import pack_signs, unpack_signs
from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Size


@dataclass(frozen=True)
class SignSGD(Operator):
    """Send the sign of each coordinate; decode +1 or -1, sign(0) = sign(-0) = +1.

    x : float tensor, shape (d,).  Without a scale there is no constant (Bernstein et al. 2018).
    d bits.
    """

    name = "signsgd"
    randomness = "none"
    equivariant = frozenset({"permutation", "sign"})

    def claim(self, d: int) -> NoClaim:
        """None."""
        return NoClaim("signs carry no scale: the error is not a share of |x|^2")

    def bits(self, d: int) -> Size:
        """One bit a coordinate."""
        return Size.fixed(d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """There is only one."""
        return (cls(),)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        return pack_signs(x), x.size

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        if bits != d:
            raise CorruptMessage(f"signsgd sends d = {d} bits; got {bits}")
        return unpack_signs(payload, d)
