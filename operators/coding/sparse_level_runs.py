"""The wire of Sparse Dithering in bounded memory: ``sparse_levels`` written and read run by run.

Signs, unary levels and support are three parts, each filled from its own beginning, after their lengths were counted.
A decoder finds the support behind the levels, which it therefore reads twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..bits.bitstream import pack, words
from ..bits.writer import BitWriter, in_windows, shift_down
from ..message import CorruptMessage
from ..pieces import RUN
from .sparse_levels import (
    LEADING_ONES,
    SCALE_BITS,
    check_top,
    count,
    place,
    read_head,
    read_levels,
    strings,
)
from .sparse_levels import read as read_whole
from .sparse_levels import write as write_whole
from .support_set import RANKED, SupportReader, SupportWriter, support_bits

SPARE_BYTES = 32  # behind a support's bits: its coder's state and what its length exceeds the information by


def write(scale: float, levels: Callable[[], Iterator[np.ndarray]], d: int, base: int) -> tuple[np.ndarray, int]:
    """Return ``sparse_levels.write`` of levels that come run by run.

    Parameters
    ----------
    scale : float
        A positive binary32 number.
    levels : callable
        Returns a new iterator at each of two calls: int32 arrays, all but the last of an even length.
    d : int
        Number of coordinates.
    base : int
        The count field holds k - base.
    """
    if d <= RANKED:
        return write_whole(scale, next(levels()), base)
    counts = [count(run) for run in levels()]
    k, total = sum(number for number, _ in counts), sum(bits for _, bits in counts)
    head_bits = SCALE_BITS + (d - base).bit_length()
    middle = head_bits + k
    end = middle + total
    tail = (end + 7) // 8
    out = np.zeros(tail + int(support_bits(d, k)) // 8 + SPARE_BYTES, np.uint8)
    widths = np.array([SCALE_BITS, (d - base).bit_length()])
    BitWriter(out, 0, head_bits).append(
        *pack(np.array([np.float32(scale).view(np.uint32), k - base], np.uint64), widths)
    )
    signs, unary, tail_bits = BitWriter(out, head_bits, middle), BitWriter(out, middle, end), 0
    support = SupportWriter(d, k, out, tail)
    for run in levels():
        of_signs, of_unary = strings(run)
        signs.append(*of_signs)
        unary.append(*of_unary)
        if 0 < k < d:
            tail_bits = support.append(run)
    signs.close()
    unary.close()
    shift_down(out, tail, tail + (tail_bits + 7) // 8, 8 * tail - end)
    bits = end + tail_bits
    out.resize((bits + 7) // 8, refcheck=False)
    return out, bits


def read(
    payload: np.ndarray, bits: int, d: int, base: int, spacing: float, most: int, runs: list[slice]
) -> Iterator[np.ndarray]:
    """Yield the runs of ``sparse_levels.read``: float32 arrays.

    Parameters
    ----------
    payload : ndarray
        uint8, a message.
    bits : int
        Its length.
    d : int
        Number of coordinates.
    base : int
        The count field holds k - base.
    spacing : float
        Distance of neighbouring levels, in units of the scale.
    most : int
        The largest level.
    runs : list of slice
        Places of the runs.

    Raises
    ------
    CorruptMessage
        For anything that ``write`` does not write.
    """
    if d <= RANKED:
        yield read_whole(payload, bits, d, base, spacing, most)
        return
    scale, k, signs = read_head(payload, bits, d, base)
    if scale == 0:
        yield from (np.zeros(run.stop - run.start, np.float32) for run in runs)
        return
    levels = _Levels(payload, bits, signs, k, most)
    top = max((max(float(part.max()), -float(part.min())) for part in levels.all()), default=0.0)
    support = _Support(payload, bits, levels.position, d, k)
    check_top(scale * spacing * top)
    levels = _Levels(payload, bits, signs, k, most)
    for run in runs:
        mask, out = support.next(run.stop - run.start), np.empty(run.stop - run.start, np.float32)
        number = int(np.count_nonzero(mask))
        place(mask, np.append(levels.next(number), np.int32(0)), scale * spacing, out)
        yield out


class _Levels:
    """Where the signs and the unary levels are read."""

    def __init__(self, payload: np.ndarray, bits: int, signs: int, k: int, most: int) -> None:
        self.payload, self.bits, self.k, self.most = payload, bits, k, most
        self.signs, self.position = signs, signs + k

    def next(self, number: int) -> np.ndarray:
        """Return the next levels: int32."""
        levels, first = np.empty(number, np.int32), 4 * (self.signs >> 5)
        sign_words = words(self.payload[first : first + number // 8 + 9])

        def read(window: np.ndarray, position: int, there: int) -> int:
            signs = self.signs - 8 * first
            return int(read_levels(sign_words, signs, words(window), position, there, self.most, LEADING_ONES, levels))

        self.position = in_windows(self.payload, self.bits, self.position, number / max(self.k, 1), read)
        if self.position < 0:
            raise CorruptMessage(f"the message does not hold {self.k} signs and levels of 1 .. {self.most}")
        self.signs += number
        return levels

    def all(self) -> Iterator[np.ndarray]:
        """Yield all levels, some at a time."""
        return (self.next(min(RUN, self.k - start)) for start in range(0, self.k, RUN))


class _Support:
    """Where the support is read."""

    def __init__(self, payload: np.ndarray, bits: int, position: int, d: int, k: int) -> None:
        self.payload, self.bits, self.position, self.d, self.k = payload, bits, position, d, k
        self.reader = SupportReader(d, k)
        if k in (0, d) and position != bits:
            raise CorruptMessage(f"{bits - position} bits are left over after the last field")
        if position > bits:
            raise CorruptMessage(f"the support of {k} among {d} is cut off")

    def next(self, n: int) -> np.ndarray:
        """Return the mask of the next n coordinates: uint8."""
        mask, good = np.full(n, self.k == self.d, np.uint8), True
        if self.k in (0, self.d):
            return mask

        def read(window: np.ndarray, position: int, there: int) -> int:
            nonlocal good
            mask[:] = 0
            good = self.reader.read(words(window), position, there, mask)
            return self.reader.position if good else -1

        self.position = in_windows(self.payload, self.bits, self.position, n / self.d, read)
        if not good:
            raise CorruptMessage(f"the last bits are no support of {self.k} among {self.d}")
        self.reader.go_on(n)
        return mask
