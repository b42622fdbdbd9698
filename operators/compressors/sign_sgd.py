"""SignSGD: signs without a scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from bounds.claims import NoClaim

from .. import rows
from ..kernels import kernels_for
from ..key import Key
from ..message import Messages
from ..operator import DeviceOperator
from ..streamed import Streamed


@dataclass(frozen=True)
class SignSGD(DeviceOperator, Streamed):
    """Send the sign of each coordinate; decode +1 or -1, sign(0) = sign(-0) = +1.

    Parameters
    ----------
    x
        Float tensor, shape (d,).  Without a scale there is no constant (Bernstein et al. 2018).

    Notes
    -----
    d bits.
    """

    name = "signsgd"
    sources = ("bernstein2018",)
    width = 1
    randomness = "none"
    equivariant = frozenset({"permutation", "sign"})

    def claim(self, d: int) -> NoClaim:
        """Return ``NoClaim``: signs carry no scale."""
        return NoClaim("signs carry no scale: the error is not a share of |x|^2")

    def mean_at(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the decoded vector and variance 0: the operator is deterministic.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        return np.where(np.asarray(x) < 0, -1.0, 1.0), 0.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(),)

    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        return kernels_for(x).signs.pack(x), x.numel()

    def _decode_tensor(self, payload: torch.Tensor, bits: int, d: int, key: Key | None) -> torch.Tensor:
        self._check_bits(bits, d)
        return kernels_for(payload).signs.unpack(payload, d)

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages:
        return rows.joined(x.shape[1], rows.packed_signs(x))

    def _decode_rows(self, messages: Messages, d: int, keys: Sequence[Key]) -> np.ndarray:
        return np.where(rows.unpacked(messages.rows(d), d, 1) > 0, np.float32(-1), np.float32(1))

    def _head_bytes(self, d: int) -> int:
        return 0

    def _survey(self, x: np.ndarray) -> np.ndarray:
        return np.empty(0)

    def _head(self, survey: np.ndarray, d: int) -> tuple[np.ndarray, None]:
        return np.empty(0, np.uint8), None

    def _fields(self, x: np.ndarray, start: int, head: None, key: Key) -> np.ndarray:
        return self._encode(x, key)[0]

    def _read_head(self, head: np.ndarray) -> None:
        """Do nothing: there is no head."""

    def _values(self, fields: np.ndarray, start: int, head: None, out: np.ndarray) -> None:
        out[:] = self._decode(fields, out.size, out.size, None)
