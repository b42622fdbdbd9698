"""Signs and the mean magnitude: the operator of EF-signSGD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from bounds.claims import StrictlyContractive

from .. import rows
from ..kernels import kernels_for
from ..key import Key
from ..message import CorruptMessage
from ..quantisers.scale import TINY, nearest
from ..streamed import Format


@dataclass(frozen=True)
class ScaledSign(Format):
    """Send the sign of each coordinate and the mean magnitude ``m = |x|_1 / d``; decode m sign(x).

    Parameters
    ----------
    x
        Float tensor, shape (d,); sign(0) = sign(-0) = +1.

    Raises
    ------
    ValueError
        If m exceeds binary32.

    Notes
    -----
    Strictly contractive with alpha = 1 - 1/d, reached by a one-hot vector; at x exactly ``alpha = 1 - |x|_1^2 / (d
    |x|_2^2)`` (Karimireddy et al. 2019). d + 32 bits.
    """

    name = "scaled_sign"
    sources = ("karimireddy2019",)
    width = 1
    head_name = "mean magnitude"
    randomness = "none"
    projects = True
    equivariant = frozenset({"permutation", "scale", "sign"})

    def claim(self, d: int) -> StrictlyContractive:
        """Return alpha = 1 - 1/d."""
        return StrictlyContractive(1 - 1 / d)

    def claim_at(self, x: np.ndarray) -> StrictlyContractive:
        """Return the exact alpha at one non-zero vector.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        wide = np.asarray(x, np.float64)
        alpha = 1 - np.abs(wide).sum() ** 2 / (wide.size * np.dot(wide, wide))
        return StrictlyContractive(max(0.0, float(alpha)), tight=True)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(),)

    def _statistics(self, x: torch.Tensor, step: int) -> np.ndarray:
        vector, norms = x.view(-1), kernels_for(x).norms
        sums = norms.absolute_sum(vector, step)
        tops = norms.largest(vector, step).double() if (sums < TINY * step).any() else sums  # large: no maximum needed
        return torch.stack([tops, sums], dim=1).cpu().numpy()

    def _number(self, top: float, total: float, d: int) -> float:
        return 0.0 if total < TINY * d and top < TINY else nearest(total / d)

    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        d, (packed, total) = x.numel(), kernels_for(x).signs.pack_with_sum(x)  # one pass over memory
        mean = self._number(0.0 if total >= TINY * d else float(x.abs().max()), total, d)
        return self._sealed([mean], packed if mean else torch.zeros_like(packed), d)

    def _pack(self, x: torch.Tensor, start: int, numbers: Sequence[float], keys: Sequence[Key]) -> torch.Tensor:
        return rows.pack_signs(x, numbers)

    def _unpack(self, fields: torch.Tensor, n: int, start: int, numbers: Sequence[float]) -> tuple[torch.Tensor, None]:
        if not all(numbers) and fields.view(len(numbers), -1)[[mean == 0 for mean in numbers]].any():
            raise CorruptMessage("a zero mean must come without negative signs")
        return rows.unpack_signs(fields, n, numbers), None
