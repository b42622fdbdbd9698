"""No compression: the baseline that every comparison needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import StrictlyContractive

from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Size


@dataclass(frozen=True)
class Identity(Operator):
    """Send every coordinate as binary32, big-endian.

    Parameters
    ----------
    x
        Float tensor, shape (d,).  Exact: alpha = 0.  32 d bits.
    """

    name = "identity"
    randomness = "none"
    equivariant = frozenset({"permutation", "scale", "sign"})

    def claim(self, d: int) -> StrictlyContractive:
        """Return alpha = 0: there is no error at all."""
        return StrictlyContractive(0.0, tight=True)

    def bits(self, d: int) -> Size:
        """Return 32 bits a coordinate."""
        return Size.fixed(32 * d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return there is only one."""
        return (cls(),)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        return x.astype(">f4").view(np.uint8), 32 * x.size

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        if bits != 32 * d:
            raise CorruptMessage(f"identity sends 32 d = {32 * d} bits; got {bits}")
        x = payload.view(">f4").astype(np.float32)
        if not np.isfinite(x).all():
            raise CorruptMessage("identity never sends NaN or infinity")
        return x
