"""Signs and the mean magnitude: the operator of EF-signSGD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import StrictlyContractive

from ..codes.signs import pack_signs, unpack_signs
from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Size
from ..scale import absolute_sum, nearest, negligible

MEAN_BYTES = 4


@dataclass(frozen=True)
class ScaledSign(Operator):
    """Send the sign of each coordinate and the mean magnitude m = |x|_1 / d; decode m sign(x).

    x : float tensor, shape (d,); sign(0) = sign(-0) = +1.
    Strictly contractive with alpha = 1 - 1/d, reached by a one-hot vector; at x exactly
    alpha = 1 - |x|_1^2 / (d |x|_2^2) (Karimireddy et al. 2019).
    d + 32 bits.  Raises ValueError if m exceeds binary32.
    """

    name = "scaled_sign"
    randomness = "none"
    equivariant = frozenset({"permutation", "scale", "sign"})

    def claim(self, d: int) -> StrictlyContractive:
        """alpha = 1 - 1/d."""
        return StrictlyContractive(1 - 1 / d)

    def claim_at(self, x: np.ndarray) -> StrictlyContractive:
        """The exact alpha of one non-zero vector."""
        wide = np.asarray(x, np.float64)
        alpha = 1 - np.abs(wide).sum() ** 2 / (wide.size * np.dot(wide, wide))
        return StrictlyContractive(max(0.0, float(alpha)), tight=True)

    def bits(self, d: int) -> Size:
        """The mean in binary32 and one bit a coordinate."""
        return Size.fixed(8 * MEAN_BYTES + d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """There is only one."""
        return (cls(),)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        mean = 0.0 if negligible(x) else nearest(absolute_sum(x) / x.size)
        signs = pack_signs(x) if mean > 0 else np.zeros((x.size + 7) // 8, np.uint8)
        head = np.array([mean], ">f4").view(np.uint8)
        return np.concatenate([head, signs]), 8 * MEAN_BYTES + x.size

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        if bits != 8 * MEAN_BYTES + d:
            raise CorruptMessage(f"scaled_sign sends d + 32 = {d + 32} bits; got {bits}")
        mean = float(payload[:MEAN_BYTES].view(">f4")[0])
        if not np.isfinite(mean) or np.signbit(mean):
            raise CorruptMessage(f"the mean magnitude must be finite and not negative; got {mean}")
        signs = payload[MEAN_BYTES:]
        if mean == 0 and signs.any():
            raise CorruptMessage("a zero mean comes with no negative sign")
        return unpack_signs(signs, d, mean, -mean)
