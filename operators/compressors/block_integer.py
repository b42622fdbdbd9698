"""Integers of 8 or 4 bits with one scale per block of coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from bounds.claims import StrictlyContractive, Unbiased

from ..operator import Randomness
from .qsgd import Bucketed


@dataclass(frozen=True)
class BlockInteger(Bucketed):
    """Send ``m = max|x|`` of each block and each L x_i / m as an integer from -L to L, L = 2^(width-1) - 1.

    Parameters
    ----------
    x
        Float tensor, shape (d,).  With n = min(block, d):
    width : {4, 8}, optional
        Bits of an integer, 8 (L = 127) or 4 (L = 7); the largest pattern is never sent.
    block : int, optional
        Coordinates that share a scale; the last block may be shorter.
    rounding : {"nearest", "stochastic"}, optional
        "nearest", halves away from zero, or "stochastic".

    Raises
    ------
    ValueError
        For a parameter out of range.

    Notes
    -----
    nearest is strictly contractive with alpha = (n-1)/(4 L^2 + n-1), reached at (1, 1/(2L), ..., 1/(2L)); stochastic is
    unbiased (each coordinate to 2^-32 m/L) with omega = (sqrt(1 + (n-1)/L^2) - 1)/2, reached at (1, t, ..., t), t =
    1/(L + sqrt(L^2 + n-1)).  The largest coordinate of a block is exact; another one at ``y = L|x_i|/m`` has a squared
    error of at most min(y, 1/2)^2, or on average rest (1 - rest). 32 bits per block, then ``width`` bits per
    coordinate, the integer plus L.  Full tiles of 4096 coordinates draw their words in the tile order of
    ``kernels.philox``.
    """

    width: Literal[4, 8] = 8
    block: int = 64
    rounding: Literal["nearest", "stochastic"] = "nearest"

    name = "block_integer"
    equivariant = frozenset({"scale", "sign"})

    def __post_init__(self) -> None:
        if self.width not in (4, 8):
            raise ValueError(f"width must be 4 or 8; got width = {self.width}")
        if self.block < 1:
            raise ValueError(f"block must be at least 1; got block = {self.block}")
        if self.rounding not in ("nearest", "stochastic"):
            raise ValueError(f'rounding must be "nearest" or "stochastic"; got {self.rounding!r}')

    @property
    def most(self) -> int:  # type: ignore[override]
        """Largest integer L."""
        return (1 << (self.width - 1)) - 1

    @property
    def randomness(self) -> Randomness:  # type: ignore[override]
        """Private for stochastic rounding, else none."""
        return "private" if self.rounding == "stochastic" else "none"

    def claim(self, d: int) -> Unbiased | StrictlyContractive:
        """Return the sharp constant of the longest block."""
        others, square = min(d, self.block) - 1, self.most**2
        if self.rounding == "nearest":
            return StrictlyContractive(others / (4 * square + others))
        return Unbiased((math.sqrt(1 + others / square) - 1) / 2)

    def witness(self, d: int) -> np.ndarray:
        """Return a vector that reaches the claimed constant; only its first block is non-zero.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        most, n = self.most, min(d, self.block)
        rest = 1 / (2 * most) if self.rounding == "nearest" else 1 / (most + math.sqrt(most**2 + n - 1))
        return np.where(np.arange(d) == 0, 1.0, np.where(np.arange(d) < n, rest, 0.0))

    def claim_at(self, x: np.ndarray) -> Unbiased | StrictlyContractive:
        """Return the exact constant at one non-zero vector.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        wide = np.abs(np.asarray(x, np.float64))
        starts = np.arange(0, wide.size, self.block)
        steps = np.repeat(np.maximum.reduceat(wide, starts) / self.most, np.diff(np.append(starts, wide.size)))
        rest = np.mod(np.divide(wide, steps, out=np.zeros_like(wide), where=steps > 0), 1)
        if self.rounding == "nearest":
            error = float(((np.minimum(rest, 1 - rest) * steps) ** 2).sum())
            return StrictlyContractive(error / float(wide @ wide), tight=True)
        return Unbiased(float((rest * (1 - rest) * steps**2).sum()) / float(wide @ wide), tight=True)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(width=4), cls(width=4, rounding="stochastic"), cls(block=100, rounding="stochastic")

    @property
    def size(self) -> int:  # type: ignore[override]
        """Coordinates of a block."""
        return self.block

    @property
    def nearest(self) -> bool:  # type: ignore[override]
        """Whether to round to nearest."""
        return self.rounding == "nearest"
