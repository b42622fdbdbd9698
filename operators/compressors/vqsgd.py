"""vqSGD with the cross-polytope: send the index of one of the 2d points ``+-sqrt(d) |x| e_i``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import Unbiased

from ..coding.fixed_width import pack_fixed, unpack_fixed
from ..compilation import jit
from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Size
from ..quantisers.scale import energy, nearest, negligible, round_up_to_float32
from ..random import bits32

NORM_BYTES = 4
RUN = 256  # coordinates whose running sum of magnitudes is not kept
_LARGEST = float(np.finfo(np.float32).max)


@jit
def _ends_of_runs(x, ends):
    """Running sums of ``|x_i|`` in float64 after each ``RUN`` coordinates and after the last."""
    total = 0.0
    for run in range(ends.size):
        for i in range(run * RUN, min((run + 1) * RUN, x.size)):
            total += np.float64(abs(x[i]))
        ends[run] = total


@jit
def _within_runs(x, ends, runs, targets, out):
    """How many running sums do not exceed a target, which is reached in a run."""
    for j in range(targets.size):
        i, total = runs[j] * RUN, ends[runs[j] - 1] if runs[j] > 0 else 0.0
        while i < x.size:
            total += np.float64(abs(x[i]))
            if total > targets[j]:
                break
            i += 1
        out[j] = i


def _coordinates(x: np.ndarray, ends: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return how many of the running sums of ``|x_i|`` do not exceed each target: int64."""
    out = np.empty(targets.size, np.int64)
    _within_runs(x, ends, np.searchsorted(ends, targets, side="right"), targets, out)
    return out


@dataclass(frozen=True)
class VQSGD(Operator):
    """Draw sign(x_i) e_i with probability ``|x_i|/(sqrt(d) |x|)``, else any of 2d evenly; decode ``sqrt(d) |x|`` times
    it.

    Parameters
    ----------
    x
        Float tensor, shape (d,), d < 2^31.  The even draws, a share ``1 - |x|_1/(sqrt(d) |x|) >= 0``, average to zero.
    repeats : int, optional
        r >= 1 independent draws, whose mean is decoded.

    Raises
    ------
    ValueError
        If r < 1, or if ``sqrt(d) |x|`` exceeds binary32.

    Notes
    -----
    Unbiased (probabilities to 2^-52) with omega = (d - 1)/r, an equality for every x, because a drawn point always has
    the square ``d |x|^2`` (Gandikota et al. 2019). 32 bits for ``|x|``, rounded up, and ceil(log2(2d)) a draw.
    """

    repeats: int = 1

    name = "vqsgd"
    randomness = "private"
    equivariant = frozenset({"scale", "sign"})

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ValueError(f"repeats must be at least 1; got repeats = {self.repeats}")

    def claim(self, d: int) -> Unbiased:
        """Return omega = (d - 1)/r."""
        return Unbiased((d - 1) / self.repeats, tight=True)

    def bits(self, d: int) -> Size:
        """Return the norm in binary32 and the indices."""
        return Size.fixed(8 * NORM_BYTES + self.repeats * index_width(d))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return one draw, and twenty."""
        return cls(), cls(20)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        width, norm = index_width(x.size), 0.0 if negligible(x) else round_up_to_float32(math.sqrt(energy(x)))
        nearest(math.sqrt(x.size) * norm)  # the decoded entry fits binary32
        points = self._draw(x, norm, key) if norm > 0 else np.zeros(self.repeats, np.int64)
        head = np.array([norm], ">f4").view(np.uint8)
        return np.concatenate(
            [head, pack_fixed(points.astype(np.uint32), width)]
        ), 8 * NORM_BYTES + width * self.repeats

    def _draw(self, x: np.ndarray, norm: float, key: Key) -> np.ndarray:
        """Return 2i for +e_i and 2i + 1 for -e_i, shape (r,)."""
        words = bits32(key, 2 * self.repeats).astype(np.float64).reshape(-1, 2)
        place = (words[:, 0] + (words[:, 1] // 2**12 + 0.5) * 2.0**-20) * 2.0**-32  # uniform to 2^-52
        ends = np.empty(-(-x.size // RUN))
        _ends_of_runs(x, ends)
        total, whole = float(ends[-1]), math.sqrt(x.size) * norm
        rest = max(0.0, whole - total)  # never negative but for rounding
        target = place * max(whole, total) - rest
        last = _coordinates(x, ends, np.array([math.nextafter(total, -math.inf)]))
        coordinate = np.minimum(_coordinates(x, ends, target), last)
        chosen = 2 * coordinate + (x[coordinate] < 0)
        if rest == 0:
            return chosen
        even = np.minimum(((target + rest) / rest * 2 * x.size).astype(np.int64), 2 * x.size - 1)
        first = even // 2  # its sign is relative to x, so that -x gives the mirrored point
        return np.where(target < 0, 2 * first + (even % 2 ^ (x[first] < 0)), chosen)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        if bits != self.bits(d).exact:
            raise CorruptMessage(f"vqsgd sends {self.bits(d).exact} bits at d = {d}; got {bits}")
        norm = float(payload[:NORM_BYTES].view(">f4")[0])
        length = math.sqrt(d) * norm
        if not length <= _LARGEST or np.signbit(norm):
            raise CorruptMessage(f"the norm must not be negative and sqrt(d) times it fit binary32; got {norm}")
        points = unpack_fixed(payload[NORM_BYTES:], index_width(d), self.repeats).astype(np.int64)
        if points.max() >= 2 * d:
            raise CorruptMessage(f"there are 2d = {2 * d} points; got index {points.max()}")
        if norm == 0 and points.any():
            raise CorruptMessage("a zero vector comes with the first point only")
        out = np.zeros(d, np.float32)
        drawn, place = np.unique(points // 2, return_inverse=True)
        total = np.bincount(place, weights=1.0 - 2 * (points % 2))
        out[drawn] = total * (length / self.repeats)
        return out


def index_width(d: int) -> int:
    """Return bits of one of 2d indices."""
    return (2 * d - 1).bit_length()
