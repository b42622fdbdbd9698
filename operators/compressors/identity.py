"""No compression: the baseline of every comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import StrictlyContractive

from .. import rows
from ..key import Key
from ..message import CorruptMessage, Messages
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

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages:
        return rows.joined(32 * x.shape[1], rows.floats(x))

    def _decode_rows(self, messages: Messages, d: int, keys: Sequence[Key]) -> np.ndarray:
        values = rows.read_floats(messages.rows(32 * d))
        if not np.isfinite(values).all():
            raise CorruptMessage("identity never sends NaN or infinity")
        return values

    def _head_bytes(self, d: int) -> int:
        return 0

    def _survey(self, x: np.ndarray) -> np.ndarray:
        return np.empty(0)

    def _head(self, survey: np.ndarray, d: int) -> tuple[np.ndarray, None]:
        return np.empty(0, np.uint8), None

    def _fields(self, x: np.ndarray, start: int, head: None, key: Key) -> np.ndarray:
        return x.astype(">f4").view(np.uint8)

    def _read_head(self, head: np.ndarray) -> None:
        """Do nothing: there is no head."""

    def _values(self, fields: np.ndarray, start: int, head: None, out: np.ndarray) -> None:
        out[:] = fields.view(">f4")
        if not np.isfinite(out).all():
            raise CorruptMessage("identity never sends NaN or infinity")
