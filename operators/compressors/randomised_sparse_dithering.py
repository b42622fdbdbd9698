"""Randomised Sparse Dithering: stochastic rounding of the direction, unbiased."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
import torch

from bounds.claims import Unbiased

from ..coding import sparse_levels
from ..coding.size_bounds import SLACK, least
from ..kernels import kernels_for
from ..key import Key
from ..operator import Size
from ..pieces import InRuns, Runs
from ..quantisers.scale import energy, nearest, negligible, norm_of, round_up_to_float32
from ..random import stream
from ..rate import Rate

FINEST = 2.0**-30  # keeps levels far below 2^31 at every d that fits memory
COARSEST = 2.0**30


@dataclass(frozen=True)
class RandomisedSparseDithering(InRuns):
    """Round ``x/|x|`` stochastically to multiples of h, where h sqrt(d) = 2 sqrt(omega), or 1 + omega if omega >= 1.

    Parameters
    ----------
    x
        Float tensor, shape (d,).  The norm is rounded up to binary32 first and the levels use the rounded one, so that
        rounding it causes no bias; each coordinate is unbiased to ``2^-32 h |x|``.
    omega : float, optional
        2^-30 <= omega <= 2^30.

    Raises
    ------
    ValueError
        For omega out of range or a norm beyond binary32.

    Notes
    -----
    Full tiles of 4096 coordinates draw their words in the tile order of ``kernels.philox``.

    Unbiased with variance omega: d h^2/4 for omega <= 1 (Albasyoni et al. 2020); for omega >= 1 the concave majorant of
    the rounding variance is h sqrt(t) - t, so equal magnitudes are worst: h sqrt(d) - 1.  Bits: scale 31, count, signs,
    unary levels, support within 2 bits of log2 C(d, k).  Zero sends the scale only.
    """

    omega: float = 1.0

    name = "randomised_sparse_dithering"
    sources = ("albasyoni2020",)
    randomness = "private"
    rate = Rate("omega", few=COARSEST, many=FINEST)
    equivariant = frozenset({"scale", "sign"})

    def __post_init__(self) -> None:
        if not FINEST <= self.omega <= COARSEST:
            raise ValueError(f"omega must satisfy 2^-30 <= omega <= 2^30; got omega = {self.omega}")

    def claim(self, d: int) -> Unbiased:
        """Return the parameter omega."""
        return Unbiased(self.omega)

    def bits(self, d: int) -> Size:
        """Return upper bounds on the mean and the worst length under the energy budget 1/h^2 of the levels."""
        mean, worst = _limits(self.omega)
        ends = sparse_levels.ends_bits(d, 0)
        return Size(None, ends + d * mean, ends + d * worst)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(omega=0.1), cls(omega=1.0), cls(omega=4.0)

    def spacing(self, d: int) -> float:
        """Return the distance h of neighbouring levels on the unit sphere.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return (2 * math.sqrt(self.omega) if self.omega < 1 else 1 + self.omega) / math.sqrt(d)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        if negligible(x):
            return np.zeros(4, np.uint8), sparse_levels.SCALE_BITS
        norm = self._checked(round_up_to_float32(math.sqrt(energy(x))), x.size)
        return sparse_levels.write(norm, self._levels(x, 0, norm, x.size, key), 0)

    def _checked(self, norm: float, d: int) -> float:
        """Return the norm; raise ValueError if a decoded coordinate could exceed binary32."""
        h = self.spacing(d)
        nearest(norm * h * math.ceil(1 / h))
        return norm

    def _levels(self, x: np.ndarray, start: int, norm: float, d: int, key: Key) -> np.ndarray:
        """Return the signed levels of the run that begins at ``start``."""
        h, vector = self.spacing(d), torch.from_numpy(x)
        scale, words = torch.tensor([norm * h], dtype=torch.float64), stream(key, x.size, start=start)
        levels = kernels_for(vector).levels.signed(vector, x.size, scale, 1, words).numpy()
        most = math.ceil(1 / h)
        return np.clip(levels, -most, most, out=levels)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        h = self.spacing(d)
        return sparse_levels.read(payload, bits, d, 0, h, math.ceil(1 / h))

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        norm = self._checked(norm_of(runs, round_up_to_float32), d)
        if norm == 0:
            return np.zeros(4, np.uint8), sparse_levels.SCALE_BITS

        def levels() -> Iterator[np.ndarray]:
            return (self._levels(x, part.start, norm, d, key) for part, x in runs())

        return sparse_levels.write_runs(norm, levels, d, 0)

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        h = self.spacing(d)
        return sparse_levels.read_runs(payload, bits, d, 0, h, math.ceil(1 / h), list(self._runs(d)))


@lru_cache(maxsize=256)
def _limits(omega: float) -> tuple[float, float]:
    """Return the (mean, worst) bits per coordinate for levels a with mean square at most B = 1/(d h^2).

    Mean: log2 C(d, k) <= -k log2 p - (d - k) log2(1 - p); a coordinate is non-zero with probability min(a, 1)
    and its mean level is a.  Worst: a level n needs a > n - 1.
    """
    budget = 1 / (4 * omega) if omega < 1 else 1 / (1 + omega) ** 2

    def mean(p: float, t: float) -> float:
        empty, sign = -math.log2(1 - p), 1 - math.log2(p)
        slope = sign + 1 - empty
        below = min(max(slope / (2 * t), 0.0), 1.0)
        above = max(1 / (2 * t), 1.0)
        return t * budget + max(
            empty + slope * below - t * below**2,
            sign + above - t * above**2,
        )

    def best_mean(logit: float) -> float:
        p = 1 / (1 + math.exp(-logit))
        return least(lambda log: mean(p, math.exp(log)), -30.0, 30.0, 60)

    def cost(t: float) -> float:
        n = math.floor(1 + 1 / (2 * t))
        return max(m - t * (m - 1) ** 2 for m in (n, n + 1))

    return SLACK * least(best_mean, -30.0, 30.0, 60), sparse_levels.per_coordinate(cost, budget)
