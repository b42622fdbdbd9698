"""A vector's largest entries written and read run by run: the message of ``kernels.rice`` in bounded memory.

Gaps and values are two parts of it, each filled from its own beginning: how long they are is counted beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ..bits.bitstream import BitWriter, in_windows, read_field
from ..kernels.rice import MOST, PARAMETER_BITS, VALUE_BITS
from ..kernels.rice.cpu import gap_string, read_run, read_values
from ..message import CorruptMessage
from ..pieces import Runs

_MAGNITUDE = np.uint32(0x7FFFFFFF)


class Kept(NamedTuple):
    """Entries above a magnitude, and the first of those that equal it.

    Attributes
    ----------
    pattern : int
        The magnitude, as a binary32 pattern.
    ties : int
        How many of those that equal it.
    """

    pattern: int
    ties: int

    def of(self, runs: Iterable[tuple[slice, np.ndarray]]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (increasing positions, values) of the kept entries of each run.

        Parameters
        ----------
        runs : iterable
            Every run's place and its coordinates.
        """
        ties = self.ties
        for part, x in runs:
            magnitudes = x.view(np.uint32) & _MAGNITUDE
            index = np.flatnonzero(magnitudes >= self.pattern)
            equal = magnitudes[index] == self.pattern
            if ties < equal.size:
                index = index[~equal | (np.cumsum(equal) <= ties)]
            ties -= int(np.count_nonzero(equal))
            yield index + part.start, x[index]


def largest(runs: Runs, k: int) -> Kept:
    """Return what keeps the k largest magnitudes, the lower index first among equals: two readings, for 16 bits each.

    Parameters
    ----------
    runs : callable
        Reads the runs.
    k : int
        At most the number of coordinates.
    """
    above, left = 0, k
    for shift, bins in ((16, 1 << 15), (0, 1 << 16)):
        counts = np.zeros(bins, np.int64)
        for _, x in runs():
            patterns = (x.view(np.uint32) & _MAGNITUDE) >> shift
            patterns = patterns if shift else patterns[patterns >> 16 == above] & np.uint32(0xFFFF)
            counts += np.bincount(patterns, minlength=bins)
        reached = np.cumsum(counts[::-1])  # from the largest pattern down
        place = int(np.searchsorted(reached, left))
        left -= int(reached[place] - counts[bins - 1 - place])
        above = (above << 16) | (bins - 1 - place)
    return Kept(above, left)


class _Gaps:
    """Gaps of positions that come run by run, and what they cost at every parameter.

    Attributes
    ----------
    costs : ndarray
        int64, shape (32,), bits.
    count : int
        How many there were.
    """

    def __init__(self) -> None:
        self.costs, self.count = np.zeros(MOST + 1, np.int64), 0
        self._last = -1

    def of(self, index: np.ndarray) -> np.ndarray:
        """Return the gaps of the next positions: int64."""
        gaps = np.diff(index, prepend=self._last) - 1
        self._last = int(index[-1]) if index.size else self._last
        return gaps

    def count_in(self, gaps: np.ndarray) -> None:
        """Add gaps to the costs."""
        self.count += gaps.size
        self.costs += gaps.size * np.arange(1, MOST + 2)
        for r in range(MOST + 1):
            quotients = int((gaps >> r).sum())
            self.costs[r] += quotients
            if not quotients:
                break

    @property
    def parameter(self) -> int:
        """The least of those that cost least."""
        return int(self.costs.argmin())


def write(runs: Runs, kept: Kept, d: int, count_bits: int = 0) -> tuple[np.ndarray, int]:
    """Return (payload, bits) of the kept entries, after their number in ``count_bits`` bits.

    Parameters
    ----------
    runs : callable
        Reads the runs; called twice.
    kept : Kept
        Which entries.
    d : int
        Number of coordinates.
    count_bits : int, optional
        Bits of the number; 0 if both ends know it.
    """
    survey, gaps = _Gaps(), _Gaps()
    for index, _ in kept.of(runs()):
        survey.count_in(survey.of(index))
    k, r = survey.count, survey.parameter
    begin = count_bits + (PARAMETER_BITS if 0 < k < d else 0)
    middle = begin + (int(survey.costs[r]) if 0 < k < d else 0)
    bits = middle + VALUE_BITS * k
    out = np.zeros((bits + 7) // 8, np.uint8)
    head = BitWriter(out, 0, begin)
    if count_bits:
        head.append(*_field(k, count_bits))
    if 0 < k < d:
        head.append(*_field(r, PARAMETER_BITS))
    places, numbers = BitWriter(out, begin, middle), BitWriter(out, middle, bits)
    for index, values in kept.of(runs()):
        if k < d:
            places.append(*gap_string(gaps.of(index), r))
        numbers.append(values.astype(">f4").view(np.uint8), VALUE_BITS * values.size)
    places.close()
    numbers.close()
    return out, bits


def _field(value: int, bits: int) -> tuple[np.ndarray, int]:
    """Return a field of up to 64 bits as a string."""
    return np.frombuffer((value << (-bits % 8)).to_bytes((bits + 7) // 8, "big"), np.uint8), bits


def read(
    payload: np.ndarray, bits: int, position: int, k: int, d: int, runs: Iterator[slice], least: float = 0.0
) -> Iterator[np.ndarray]:
    """Yield the runs of a message of k >= 1 entries, zeros elsewhere: float32 arrays.

    Parameters
    ----------
    payload : ndarray
        uint8, what ``write`` gave.
    bits : int
        Its length.
    position : int
        Where the head of the message ends.
    k : int
        How many entries.
    d : int
        Number of coordinates.
    runs : iterator of slice
        Places of the runs.
    least : float, optional
        No entry is smaller.

    Raises
    ------
    CorruptMessage
        For anything that ``write`` does not write.
    """
    middle = bits - VALUE_BITS * k
    begin = position + (PARAMETER_BITS if k < d else 0)
    if middle < begin:
        raise CorruptMessage(f"{k} values need {VALUE_BITS * k} bits; got {bits}")
    r = int(read_field(payload, position, PARAMETER_BITS)) if k < d else 0
    places, used = _Places(payload, middle, begin, r, k if k < d else 0, d), 0
    for run in runs:
        index = places.of(run) if k < d else np.arange(run.start, run.stop)
        first, offset = divmod(middle + VALUE_BITS * used, 8)
        values = read_values(payload[first : first + VALUE_BITS // 8 * index.size + 1], offset, index.size)
        used += index.size
        if index.size and float(np.abs(values).min()) < least:
            raise CorruptMessage(f"a value is below {least}")
        out = np.zeros(run.stop - run.start, np.float32)
        out[index - run.start] = values
        yield out
    places.close()


class _Places:
    """Reads positions run by run."""

    def __init__(self, payload: np.ndarray, stop: int, begin: int, r: int, k: int, d: int) -> None:
        self.payload, self.stop, self.r, self.left, self.d = payload, stop, r, k, d
        self._state, self._held, self._gaps = np.array([begin, -1]), np.empty(0, np.int64), _Gaps()

    def of(self, run: slice) -> np.ndarray:
        """Return the positions of a run."""
        n = run.stop - run.start
        index, count = np.empty(min(n + 1, self.left), np.int64), 0

        def read(window: np.ndarray, position: int, there: int) -> int:
            nonlocal count
            self._state[0] = position
            count = read_run(window, there, self.r, self.d, run.stop, self._state, index)
            return -1 if count < 0 else int(self._state[0])

        self._state[0] = in_windows(self.payload, self.stop, int(self._state[0]), n / self.d, read)
        if count < 0:
            raise CorruptMessage(f"the support is not increasing positions below {self.d}")
        self.left -= count
        self._gaps.count_in(self._gaps.of(index[:count]))
        index = np.concatenate([self._held, index[:count]])
        self._held = index[index >= run.stop]
        return index[index < run.stop]

    def close(self) -> None:
        """Raise CorruptMessage unless all gaps were read, and have the parameter that an encoder chooses."""
        if self.left or self._state[0] != self.stop:
            raise CorruptMessage(f"{self.left} positions and {self.stop - self._state[0]} bits are left over")
        if self._gaps.count and self._gaps.parameter != self.r:
            raise CorruptMessage(f"Rice parameter {self.r} is not the one an encoder chooses for this support")
