"""vqSGD with the cross-polytope: send the index of one of the 2d points ``+-sqrt(d) |x| e_i``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from bounds.claims import Unbiased

from ..bits.bitstream import changed
from ..coding.fixed_width import pack_fixed, unpack_fixed
from ..compilation import jit
from ..key import Key
from ..message import CorruptMessage
from ..pieces import InRuns, Runs
from ..quantisers.scale import TINY, energy, nearest, negligible, round_up_to_float32, tops_and_sums, total
from ..random import bits32
from ..streamed import FixedLength

RUN = 256  # coordinates whose running sum of magnitudes is not kept
_LARGEST = float(np.finfo(np.float32).max)


@jit
def _ends_of_runs(x, ends):
    """Compute the sums of ``|x_i|`` in float64, from ``ends[0]``, at the end of each block of ``RUN`` coordinates."""
    total = ends[0]
    for run in range(ends.size - 1):
        for i in range(run * RUN, min((run + 1) * RUN, x.size)):
            total += np.float64(abs(x[i]))
        ends[run + 1] = total


@jit
def _within_runs(x, ends, runs, targets, out):
    """Count the running sums that do not exceed each target."""
    for j in range(targets.size):
        i, total = runs[j] * RUN, ends[runs[j]]
        while i < x.size:
            total += np.float64(abs(x[i]))
            if total > targets[j]:
                break
            i += 1
        out[j] = i


def _ends(x: np.ndarray, before: float) -> np.ndarray:
    """Return ``before`` and the running sums at the ends of the blocks of ``RUN`` coordinates."""
    ends = np.empty(-(-x.size // RUN) + 1)
    ends[0] = before
    _ends_of_runs(x, ends)
    return ends


def _coordinates(x: np.ndarray, ends: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the number of running sums of ``|x_i|`` that do not exceed each target: int64."""
    out = np.empty(targets.size, np.int64)
    _within_runs(x, ends, np.searchsorted(ends[1:], targets, side="right"), targets, out)
    return out


Answers = tuple[np.ndarray, np.ndarray, np.ndarray]  # coordinates, whether they are negative, whether the others are


def _look_up(x: np.ndarray, ends: np.ndarray, targets: np.ndarray, others: np.ndarray) -> Answers:
    """Return where the running sum first exceeds each target, the sign there, and the signs at ``others``."""
    coordinates = _coordinates(x, ends, targets)
    return coordinates, x[np.minimum(coordinates, x.size - 1)] < 0, x[others] < 0


def _look_up_in_runs(runs: Runs, d: int, targets: np.ndarray, others: np.ndarray) -> Answers:
    """Do ``_look_up`` for a vector that is read once, run by run."""
    coordinates, negative = np.full(targets.size, d), np.zeros(targets.size, np.bool_)
    of_others, before = np.zeros(others.size, np.bool_), 0.0
    for part, x in runs():
        ends = _ends(x, before)
        now = np.flatnonzero((coordinates == d) & (targets < ends[-1]))
        coordinates[now], negative[now], _ = _look_up(x, ends, targets[now], others[:0])
        coordinates[now] += part.start
        inside = np.flatnonzero((others >= part.start) & (others < part.stop))
        of_others[inside] = x[others[inside] - part.start] < 0
        before = float(ends[-1])
    return coordinates, negative, of_others


@dataclass(frozen=True)
class VQSGD(FixedLength, InRuns):
    """Draw sign(x_i) e_i with probability ``|x_i|/(sqrt(d) |x|)``, else a uniform one of 2d points.

    Decode ``sqrt(d) |x|`` times the point.

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
    the square ``d |x|^2`` (Gandikota et al. 2019). 32 bits for ``|x|``, rounded up, and ceil(log2(2d)) per draw.
    """

    repeats: int = 1

    name = "vqsgd"
    head_name = "norm"
    sources = ("gandikota2019",)
    randomness = "private"
    equivariant = frozenset({"scale", "sign"})

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ValueError(f"repeats must be at least 1; got repeats = {self.repeats}")

    def claim(self, d: int) -> Unbiased:
        """Return omega = (d - 1)/r."""
        return Unbiased((d - 1) / self.repeats, tight=True)

    def _length(self, d: int) -> int:
        return 8 * self._head_bytes(d) + self.repeats * index_width(d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(20)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        norm, ends = 0.0 if negligible(x) else round_up_to_float32(math.sqrt(energy(x))), np.zeros(1)
        if norm > 0:
            ends = _ends(x, 0.0)
        return self._written(x.size, norm, float(ends[-1]), key, partial(_look_up, x, ends))

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        survey, magnitudes = [], 0.0
        for _, x in runs():
            survey.append(tops_and_sums(x, squares=True))
            magnitudes = float(_ends(x, magnitudes)[-1])
        tiles = np.concatenate(survey)
        norm = 0.0 if tiles[:, 0].max() < TINY else round_up_to_float32(math.sqrt(total(tiles[:, 1])))
        return self._written(d, norm, magnitudes, key, partial(_look_up_in_runs, runs, d))

    def _written(
        self, d: int, norm: float, magnitudes: float, key: Key, look_up: Callable[[np.ndarray, np.ndarray], Answers]
    ) -> tuple[np.ndarray, int]:
        width = index_width(d)
        nearest(math.sqrt(d) * norm)  # the decoded entry fits binary32
        zeros = np.zeros(self.repeats, np.int64)
        points = self._draw(d, norm, magnitudes, key, look_up) if norm > 0 else zeros
        return np.concatenate([self._head([norm]), pack_fixed(points.astype(np.uint32), width)]), self._length(d)

    def _draw(
        self, d: int, norm: float, magnitudes: float, key: Key, look_up: Callable[[np.ndarray, np.ndarray], Answers]
    ) -> np.ndarray:
        """Return the drawn points, 2i for +e_i and 2i + 1 for -e_i: shape (r,)."""
        words = bits32(key, 2 * self.repeats).astype(np.float64).reshape(-1, 2)
        place = (words[:, 0] + (words[:, 1] // 2**12 + 0.5) * 2.0**-20) * 2.0**-32  # uniform to 2^-52
        whole = math.sqrt(d) * norm
        rest = max(0.0, whole - magnitudes)  # never negative but for rounding
        target = place * max(whole, magnitudes) - rest
        share = (target + rest) / rest if rest else np.zeros(self.repeats)
        even = np.minimum(share * 2 * d, 2 * d - 1).astype(np.int64)
        first = even // 2  # its sign is relative to x, so that -x gives the mirrored point
        targets = np.append(target, math.nextafter(magnitudes, -math.inf))  # that of the last coordinate that is not 0
        coordinates, negative, mirrored = look_up(targets, first)
        if coordinates[-1] >= d:
            raise changed()
        beyond = coordinates > coordinates[-1]
        coordinates[beyond], negative[beyond] = coordinates[-1], negative[-1]
        return np.where(target < 0, 2 * first + (even % 2 ^ mirrored), (2 * coordinates + negative)[:-1])

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        out, (drawn, values) = np.zeros(d, np.float32), self._entries(payload, bits, d)
        out[drawn] = values
        return out

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        drawn, values = self._entries(payload, bits, d)
        for part in self._runs(d):
            out, inside = (
                np.zeros(part.stop - part.start, np.float32),
                slice(*np.searchsorted(drawn, part.indices(d)[:2])),
            )
            out[drawn[inside] - part.start] = values[inside]
            yield out

    def _entries(self, payload: np.ndarray, bits: int, d: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the increasing coordinates of the drawn points and their values."""
        self._check_bits(bits, d)
        size = self._head_bytes(d)
        norm = float(payload[:size].view(">f4")[0])
        length = math.sqrt(d) * norm
        if not length <= _LARGEST or np.signbit(norm):
            raise CorruptMessage(f"the norm must be non-negative and sqrt(d) times it fit binary32; got {norm}")
        points = unpack_fixed(payload[size:], index_width(d), self.repeats).astype(np.int64)
        if points.max() >= 2 * d:
            raise CorruptMessage(f"there are 2d = {2 * d} points; got index {points.max()}")
        if norm == 0 and points.any():
            raise CorruptMessage("every point of a zero vector must be the first")
        drawn, place = np.unique(points // 2, return_inverse=True)
        return drawn, np.bincount(place, weights=1.0 - 2 * (points % 2)) * (length / self.repeats)


def index_width(d: int) -> int:
    """Return the bits per index of 2d points."""
    return (2 * d - 1).bit_length()
