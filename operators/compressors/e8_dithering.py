"""The lattice E8 with subtractive dither and an adaptive arithmetic code."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import Unbiased

from ..bits.bitstream import grow, in_windows, words
from ..coding import e8, e8_model, range_coder
from ..key import Key
from ..message import CorruptMessage
from ..operator import Size
from ..pieces import InRuns, Runs
from ..quantisers.scale import energy, largest, nearest, negligible, norm_of
from ..random import bits32
from ..rate import Rate

NORM_BITS = 32
ENDING = 3  # bits of a stream beyond its symbols, at most
FINEST, COARSEST = 2.0**-20, 2.0**20
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class E8Dithering(InRuns):
    """Quantise x/step + u to the nearest point q of E8, block by block of eight, and decode step (q - u).

    Parameters
    ----------
    x
        Float tensor, shape (d,).  What remains after the last full block is quantised coordinate by coordinate, to
        multiples of sqrt(12 G) step: intervals of the same second moment.
    omega : float, optional
        2^-20 .. 2^20.  ``E|C(x) - x|^2 = omega |x|^2`` for every x.

    Raises
    ------
    ValueError
        For an omega out of range, or a result that could exceed binary32.

    Notes
    -----
    u is uniform on [0, 2)^8, a cell of the sublattice (2 Z)^8, shared by both ends.  So q(y) - y is a function of y
    modulo E8 at a uniform y: the error is uniform on the Voronoi cell whatever x is, symmetric about 0 and under
    exchange of coordinates.  Hence C is unbiased, and each coordinate has the error step^2 G, G = 929/12960 the second
    moment of E8 (Conway and Sloane 1982); step = ``|x| sqrt(omega/(d G))``.  The dither is an odd multiple of 2^-32, so
    this holds up to that and to binary32 rounding.  A Gaussian x of that energy costs log2(1 + 1/omega)/2 + log2(2 pi e
    G)/2 bits per coordinate, the second term 0.146.  A fixed-length code could not send every x.  The code adapts,
    so other laws cost less.  The norm takes 32 bits; its sign says whether the code adapts.  The arithmetic code
    follows.  Zero sends the norm only.
    """

    omega: float = 1 / 3

    name = "e8"
    sources = ("conway1982",)
    randomness = "shared"
    rate = Rate("omega", few=COARSEST, many=FINEST)
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        if not FINEST <= self.omega <= COARSEST:
            raise ValueError(f"omega must satisfy 2^-20 <= omega <= 2^20; got omega = {self.omega}")

    def claim(self, d: int) -> Unbiased:
        """Return omega, an equality for every x."""
        return Unbiased(self.omega, tight=True)

    def bits(self, d: int) -> Size:
        """Return upper bounds on the mean and the worst length, computed from the initial counts."""
        mean, worst = e8_model.sizes(d, self.omega)
        return Size(None, NORM_BITS + mean, NORM_BITS + worst)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(omega=0.004), cls(omega=4.0)

    def _step(self, norm: float, d: int) -> float:
        return norm * math.sqrt(self.omega / (d * e8_model.G))

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        norm = 0.0 if negligible(x) else nearest(math.sqrt(energy(x)))
        return self._written(norm, lambda: ((part, x[part]) for part in self._runs(x.size)), x.size, key)

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        return self._written(norm_of(runs, nearest), runs, d, key)

    def _written(self, norm: float, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        if norm == 0:
            return np.zeros(NORM_BITS // 8, np.uint8), NORM_BITS
        step = self._step(norm, d)
        if norm + step > LARGEST:  # no error exceeds the covering radius, 1
            raise ValueError(f"a coordinate could become {norm + step:.3g}, beyond binary32: rescale x")
        payload, bits, still = self._stream(norm, runs, 1 / step, d, key, e8_model.GAIN)
        if bits > NORM_BITS + still + ENDING:
            del payload
            payload, bits, _ = self._stream(-norm, runs, 1 / step, d, key, 0)
        return payload, bits

    def _stream(
        self, head: float, runs: Runs, per_step: float, d: int, key: Key, gain: int
    ) -> tuple[np.ndarray, int, float]:
        """Return (payload, bits, bits with fixed counts and without the ending)."""
        counts, raw = e8_model.model(self.omega)
        changed, counted = counts.flatten(), np.zeros_like(counts)
        inverses, state = e8.reciprocals(changed), np.array([*range_coder.START[:2], NORM_BITS // 8], np.uint64)
        out = np.zeros(0, np.uint8)
        for part, x in runs():
            grow(out, int(state[2]) + e8_model.room(x.size, self.omega))  # for all runs: twice the size of x
            dither, sent = bits32(key, x.size, start=part.start), counted.reshape(-1)
            e8.encode(x, per_step, dither, changed, inverses, gain, raw, sent, out, state, part.stop == d)
        bits = int(state[0])
        still = float(
            (counted[:, : e8_model.SYMBOLS] * e8_model.costs(self.omega)).sum() + counted[:, e8_model.TOTAL].sum()
        )
        out.resize((bits + 7) // 8, refcheck=False)
        out[: NORM_BITS // 8] = np.array([head], ">f4").view(np.uint8)
        return out, bits, still

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        return self._joined(payload, bits, d, key)

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        if bits < NORM_BITS:
            raise CorruptMessage(f"the norm takes {NORM_BITS} bits; got {bits}")
        head = payload[: NORM_BITS // 8].view(">f4")[0]
        norm, gain = abs(float(head)), 0 if np.signbit(head) else e8_model.GAIN
        if not math.isfinite(norm):
            raise CorruptMessage(f"the norm must be finite; got {norm}")
        if norm == 0:
            if bits > NORM_BITS or gain == 0:
                raise CorruptMessage("a norm of 0 must be unsigned and end the message")
            yield from (np.zeros(part.stop - part.start, np.float32) for part in self._runs(d))
            return
        assert key is not None  # Operator.decode demands it for shared randomness
        counts, raw = e8_model.model(self.omega)
        coder, step = _Coder(payload, bits, counts.flatten()), self._step(norm, d)
        for part in self._runs(d):
            out = np.empty(part.stop - part.start, np.float32)
            dither = bits32(key, out.size, start=part.start)
            good = coder.decode(out.size / d, step, dither, gain, raw, out, part.stop == d)
            if not (good and math.isfinite(largest(out))):
                raise CorruptMessage(f"the stream does not hold {d} coordinates of points within binary32")
            yield out


class _Coder:
    """Decoder state between runs: position, counts and their reciprocals."""

    def __init__(self, payload: np.ndarray, bits: int, counts: np.ndarray) -> None:
        self.payload, self.bits = payload, bits
        self.state = e8.opened(words(payload[: NORM_BITS // 8 + 16]), NORM_BITS, min(bits, NORM_BITS + 128))
        self.counts, self.inverses = counts, e8.reciprocals(counts)

    def decode(
        self, share: float, step: float, dither: np.ndarray, gain: int, raw: int, out: np.ndarray, last: bool
    ) -> bool:
        """Decode one run with ``e8.decode`` on a window of the message."""
        before, good = (self.counts.copy(), self.inverses.copy(), self.state.copy()), False

        def read(window: np.ndarray, position: int, there: int) -> int:
            nonlocal good
            self.counts, self.inverses, self.state = (array.copy() for array in before)
            self.state[2] = position
            good = bool(
                e8.decode(
                    words(window), there, step, dither, self.counts, self.inverses, gain, raw, out, self.state, last
                )
            )
            return int(self.state[2]) if good else -1

        position = in_windows(self.payload, self.bits, int(self.state[2]), share, read)
        self.state[2] = max(position, 0)
        return good
