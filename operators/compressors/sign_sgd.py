"""SignSGD: signs without a scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from bounds.claims import NoClaim

from .. import rows
from ..key import Key
from ..streamed import Format


@dataclass(frozen=True)
class SignSGD(Format):
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

    def _pack(self, x: torch.Tensor, start: int, numbers: Sequence[float], keys: Sequence[Key]) -> torch.Tensor:
        return rows.pack_signs(x, [1.0])

    def _unpack(self, fields: torch.Tensor, n: int, start: int, numbers: Sequence[float]) -> tuple[torch.Tensor, None]:
        return rows.unpack_signs(fields, n, [1.0]), None
