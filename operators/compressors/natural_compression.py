"""Natural compression: round every coordinate to a power of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
import torch

from bounds.claims import StrictlyContractive, Unbiased

from .. import rows
from ..coding.minifloat import NEAREST, cells, round_floats, values
from ..key import Key
from ..message import CorruptMessage
from ..operator import Randomness
from ..quantisers.scale import largest
from ..random import bits32_of_rows
from ..streamed import Streamed

WIDTH = 9
NEGATIVE = 1 << 8
LOWEST, HIGHEST = -149, 105  # exponents of codes 1 and 255


@dataclass(frozen=True)
class NaturalCompression(Streamed):
    """Round each magnitude to a neighbouring power of two; send its sign and exponent.

    Parameters
    ----------
    x
        Float tensor, shape (d,), ``max|x| <= 2^105``.
    rounding : {"stochastic", "nearest"}, optional
        "stochastic", up from 2^e m (1 <= m < 2) with probability m - 1; or "nearest", ties up.

    Raises
    ------
    ValueError
        For another rounding, or for a larger magnitude.

    Notes
    -----
    Stochastic: unbiased, exactly, with omega = 1/8, reached at m = 4/3 (Horvath et al. 2019).  Nearest: strictly
    contractive with alpha = 1/9, reached at m = 3/2.  The probability is linear in m, not in log m. 9 bits a
    coordinate: the sign, and 0 for zero or 150 + exponent, so that subnormal numbers keep theirs.
    """

    rounding: Literal["stochastic", "nearest"] = "stochastic"

    name = "natural"
    sources = ("horvath2019natural",)
    width = WIDTH
    equivariant = frozenset({"permutation", "scale", "sign"})

    def __post_init__(self) -> None:
        if self.rounding not in ("stochastic", "nearest"):
            raise ValueError(f'rounding must be "stochastic" or "nearest"; got {self.rounding!r}')

    @property
    def randomness(self) -> Randomness:  # type: ignore[override]
        """Private for stochastic rounding, else none."""
        return "private" if self.rounding == "stochastic" else "none"

    def claim(self, d: int) -> Unbiased | StrictlyContractive:
        """Return omega = 1/8 or alpha = 1/9."""
        return Unbiased(1 / 8) if self.rounding == "stochastic" else StrictlyContractive(1 / 9)

    def witness(self, d: int) -> np.ndarray:
        """Return a constant vector that reaches the claimed constant.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return np.full(d, 4 / 3 if self.rounding == "stochastic" else 1.5)

    def claim_at(self, x: np.ndarray) -> Unbiased | StrictlyContractive:
        """Return the exact constant at one non-zero vector.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        wide = np.asarray(x, np.float64)
        rest, spacing = cells(wide, 1, LOWEST)
        energy = float(wide @ wide)
        if self.rounding == "stochastic":
            return Unbiased(float(rest @ (spacing - rest)) / energy, tight=True)
        return StrictlyContractive(float((np.minimum(rest, spacing - rest) ** 2).sum()) / energy, tight=True)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls("nearest")

    def _statistics(self, x: torch.Tensor, step: int) -> np.ndarray:
        if (top := largest(x.view(-1).numpy())) > 2.0**HIGHEST:
            raise ValueError(f"max|x| must not exceed 2^{HIGHEST}; got {top:.4g}: rescale x")
        return super()._statistics(x, step)

    def _fields(self, x: np.ndarray, start: int, numbers: Any, keys: Sequence[Key]) -> np.ndarray:
        stochastic, codes = self.rounding == "stochastic", np.empty(x.shape, np.uint32)
        random = bits32_of_rows(keys, x.shape[1], start=start).reshape(-1) if stochastic else NEAREST
        round_floats(x.reshape(-1).view(np.uint32), 0, 1, LOWEST, NEGATIVE, random, codes.reshape(-1))
        return rows.packed(codes, WIDTH)

    def _values(self, fields: np.ndarray, start: int, numbers: Any, out: np.ndarray) -> None:
        codes = rows.unpacked(fields, out.shape[1], WIDTH)
        if (codes == NEGATIVE).any():
            raise CorruptMessage("a zero must have no sign")
        _table().take(codes, out=out, mode="clip")


@lru_cache(maxsize=1)
def _table() -> np.ndarray:
    """Return the float32 number of each code."""
    magnitudes = values(1, LOWEST, NEGATIVE).astype(np.float32)
    return np.concatenate([magnitudes, -magnitudes])
