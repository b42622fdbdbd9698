"""No compression: the baseline of every comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bounds.claims import StrictlyContractive

from ..key import Key
from ..message import CorruptMessage
from ..streamed import Streamed


@dataclass(frozen=True)
class Identity(Streamed):
    """Send every coordinate as binary32, big-endian.

    Parameters
    ----------
    x
        Float tensor, shape (d,).  Exact: alpha = 0.  32 d bits.
    """

    name = "identity"
    width = 32
    randomness = "none"
    equivariant = frozenset({"permutation", "scale", "sign"})

    def claim(self, d: int) -> StrictlyContractive:
        """Return alpha = 0: the message is exact."""
        return StrictlyContractive(0.0, tight=True)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(),)

    def _fields(self, x: np.ndarray, start: int, numbers: Any, keys: Sequence[Key]) -> np.ndarray:
        return x.astype(">f4").view(np.uint8)

    def _values(self, fields: np.ndarray, start: int, numbers: Any, out: np.ndarray) -> None:
        out[:] = fields.view(">f4")
        if not np.isfinite(out).all():
            raise CorruptMessage("identity never sends NaN or infinity")
