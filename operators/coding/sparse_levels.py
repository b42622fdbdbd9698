"""The wire of Sparse Dithering: scale, number of non-zeros, signs, unary levels, support."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from ..bits.bitstream import BitReader, BitWriter, flush, in_windows, pack, shift_down, words, write_bits, write_string
from ..compilation import jit
from ..message import CorruptMessage
from ..pieces import RUN
from .size_bounds import SLACK, least
from .support_set import RANKED, SupportReader, SupportWriter, decode_support, encode_support, support_bits

SCALE_BITS = 31  # binary32 without its sign
LEADING_ONES = np.array([8 - (255 - byte).bit_length() for byte in range(256)], np.uint8)  # of each byte
_LARGEST = float(np.finfo(np.float32).max)


@jit
def count(levels):
    """Return (how many levels are not 0, the sum of all magnitudes)."""
    k, total = 0, 0
    for n in levels:
        k += n != 0
        total += abs(n)
    return k, total


@jit(inline="always")
def _emit(out, next_byte, word):
    """Write 32 bits."""
    out[next_byte] = np.uint8(word >> np.uint64(24))
    out[next_byte + 1] = np.uint8(word >> np.uint64(16))
    out[next_byte + 2] = np.uint8(word >> np.uint64(8))
    out[next_byte + 3] = np.uint8(word)


@jit
def _write_signs(out, state, levels):
    """Append a bit for each non-zero, without a branch for the others, which would be guessed wrong too often."""
    acc, filled, next_byte = state
    for n in levels:
        width = np.int64(n != 0)
        acc = (acc << np.uint64(width)) | np.uint64(n < 0)
        filled += width
        if filled == 32:
            _emit(out, next_byte, acc)
            filled, next_byte = 0, next_byte + 4
    return acc & ((np.uint64(1) << np.uint64(filled)) - np.uint64(1)), filled, next_byte


@jit
def _write_unary(out, state, levels):
    """Append n - 1 ones and a zero for each non-zero, n its magnitude; nothing for the others."""
    acc, filled, next_byte = state
    for level in levels:
        n = np.int64(abs(level))
        while n > 32:
            acc = (acc << np.uint64(31)) | np.uint64(0x7FFFFFFF)
            n, filled = n - 31, filled + 31
            if filled >= 32:
                filled -= 32
                _emit(out, next_byte, acc >> np.uint64(filled))
                next_byte += 4
        ones = (np.uint64(1) << np.uint64(n)) - np.uint64(1)
        acc = (acc << np.uint64(n)) | (ones - np.uint64(n > 0))
        filled += n
        if filled >= 32:
            filled -= 32
            _emit(out, next_byte, acc >> np.uint64(filled))
            next_byte += 4
    return acc & ((np.uint64(1) << np.uint64(filled)) - np.uint64(1)), filled, next_byte


@jit
def _write(pattern, count, count_bits, levels, tail, tail_bits, out):
    state = write_bits(out, (np.uint64(0), 0, 0), pattern, SCALE_BITS)
    if count_bits > 32:
        state = write_bits(out, state, count >> 32, count_bits - 32)
        count, count_bits = count & 0xFFFFFFFF, 32
    state = write_bits(out, state, count, count_bits)
    state = _write_unary(out, _write_signs(out, state, levels), levels)
    state = write_string(out, state, tail, tail_bits)
    flush(out, state)


@jit
def _strings(levels, signs, unary):
    """Write the signs and the unary codes of a run, each from the start of a string of its own."""
    flush(signs, _write_signs(signs, (np.uint64(0), 0, 0), levels))
    flush(unary, _write_unary(unary, (np.uint64(0), 0, 0), levels))


def strings(levels: np.ndarray) -> tuple[tuple[np.ndarray, int], tuple[np.ndarray, int]]:
    """Return (bytes, bits) of the signs, and of the unary codes, of a run of levels."""
    k, total = count(levels)
    signs, unary = np.zeros((k + 7) // 8, np.uint8), np.zeros((total + 7) // 8, np.uint8)
    _strings(levels, signs, unary)
    return (signs, k), (unary, total)


def write(scale: float, levels: np.ndarray, base: int) -> tuple[np.ndarray, int]:
    """Return (payload, bits) of a binary32 scale and signed levels; the count field holds k - base.

    A scale of 0 is sent alone.
    """
    if scale == 0:
        return np.zeros((SCALE_BITS + 7) // 8, np.uint8), SCALE_BITS
    k, total = count(levels)
    tail, tail_bits = encode_support(levels, k)
    count_bits = (levels.size - base).bit_length()
    bits = SCALE_BITS + count_bits + k + total + tail_bits
    out = np.zeros((bits + 7) // 8, np.uint8)
    _write(int(np.float32(scale).view(np.uint32)), k - base, count_bits, levels, tail, tail_bits, out)
    return out, bits


@jit
def read_levels(sign_words, signs, words, position, end, most, leading_ones, levels):
    """Read the unary levels from a position on, with signs from another; returns the next position, or -1 if corrupt.

    ``window`` holds ``ahead`` bits of the stream from the position on, at its top.
    """
    k = levels.size
    window, ahead = np.uint64(0), np.int64(0)
    for j in range(k):
        n, ones = np.int64(1), np.int64(8)
        while ones == 8:
            if ahead < 9:
                first, ahead = position >> 5, np.int64(64 - (position & 31))
                window = (np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])
                window <<= np.uint64(position & 31)
            ones = np.int64(leading_ones[window >> np.uint64(56)])
            taken = ones + np.int64(ones < 8)
            window <<= np.uint64(taken)
            ahead -= taken
            position += taken
            n += ones
            if n > most or position > end:
                return -1
        sign = np.int64((sign_words[(signs + j) >> 5] >> np.uint32(31 - ((signs + j) & 31))) & np.uint32(1))
        levels[j] = (n ^ -sign) + sign
    return position


@jit
def place(mask, levels, step, out):
    """Fill ``out``; one level more than the mask has ones is looked at, so that no branch is guessed wrong."""
    j = np.int64(0)
    for i in range(mask.size):
        inside = np.int64(mask[i])
        out[i] = np.float32(step * (np.int64(levels[j]) & -inside))
        j += inside


def read(payload: np.ndarray, bits: int, d: int, base: int, spacing: float, most: int) -> np.ndarray:
    """Return the float32 vector scale * spacing * levels.

    Raises
    ------
    CorruptMessage
        For anything ``write`` cannot write.
    """
    scale, k, position = read_head(payload, bits, d, base)
    if scale == 0:
        return np.zeros(d, np.float32)
    levels, stream = np.zeros(k + 1, np.int32), words(payload)
    position = read_levels(stream, position, stream, position + k, bits, most, LEADING_ONES, levels[:k])
    if position < 0:
        raise CorruptMessage(f"the message does not hold {k} signs and levels of 1 .. {most}")
    mask = decode_support(payload, position, bits, d, k)
    check_top(scale * spacing * max(float(levels.max()), -float(levels.min())))
    out = np.empty(d, np.float32)
    place(mask, levels, scale * spacing, out)
    return out


def read_head(payload: np.ndarray, bits: int, d: int, base: int) -> tuple[float, int, int]:
    """Return (scale, k, position of the signs); k = 0 if the scale is 0.

    Raises
    ------
    CorruptMessage
        If they cannot be so.
    """
    reader = BitReader(payload, bits)
    scale = float(np.uint32(reader.read(SCALE_BITS)).view(np.float32))
    if not math.isfinite(scale):
        raise CorruptMessage(f"the scale must be finite; got {scale}")
    if scale == 0:
        reader.finish()
        return 0.0, 0, reader.position
    k = reader.read((d - base).bit_length()) + base
    if k > d:
        raise CorruptMessage(f"{k} coordinates of {d} are said to be non-zero")
    if reader.remaining < 2 * k:
        raise CorruptMessage(f"{k} signs and levels take at least {2 * k} bits; {reader.remaining} remain")
    return scale, k, reader.position


def check_top(value: float) -> None:
    """Raise CorruptMessage if the largest decoded magnitude is no binary32 number."""
    if value > _LARGEST:
        raise CorruptMessage("a decoded value exceeds binary32")


def ends_bits(d: int, base: int) -> int:
    """Scale, count, and the most that a support's code exceeds log2 C(d, k)."""
    return SCALE_BITS + (d - base).bit_length() + (1 if d <= RANKED else 2)


def per_coordinate(cost: Callable[[float], float], budget: float) -> float:
    """Return min over t of log2(1 + 2^(1 + M(t))) + t * budget, the worst of H(q) + q + unary bits per coordinate.

    cost(t) = M(t) = max_n (n - t e(n)) where e(n) is the energy, in squared steps, that level n >= 1 needs at least;

    Parameters
    ----------
    budget : float
        Energy a coordinate.  From log2 C(d, k) <= -k log2 p - (d - k) log2(1 - p) for every p, with the p that
        equalises the two cases, and one Lagrange multiplier.
    """
    return SLACK * least(lambda log: _softplus(1 + cost(math.exp(log))) + math.exp(log) * budget, -30.0, 10.0, 80)


def _softplus(bits: float) -> float:
    return float(np.logaddexp2(0.0, bits))


# The wire of Sparse Dithering in bounded memory: ``sparse_levels`` written and read run by run.
#
# Signs, unary levels and support are three parts, each filled from its own beginning, after their lengths were counted.
# A decoder finds the support behind the levels, which it therefore reads twice.

SPARE_BYTES = 32  # behind a support's bits: its coder's state and what its length exceeds the information by


def write_runs(scale: float, levels: Callable[[], Iterator[np.ndarray]], d: int, base: int) -> tuple[np.ndarray, int]:
    """Return ``write`` of levels that come run by run.

    Parameters
    ----------
    scale : float
        A binary32 number; 0 is sent alone.
    levels : callable
        Returns a new iterator at each of two calls: int32 arrays, all but the last of an even length.
    d : int
        Number of coordinates.
    base : int
        The count field holds k - base.
    """
    if d <= RANKED or scale == 0:
        return write(scale, next(levels()) if scale else np.empty(0, np.int32), base)
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


def read_runs(
    payload: np.ndarray, bits: int, d: int, base: int, spacing: float, most: int, runs: list[slice]
) -> Iterator[np.ndarray]:
    """Yield the runs of ``read``: float32 arrays.

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
        For anything that ``write_runs`` does not write.
    """
    if d <= RANKED:
        yield read(payload, bits, d, base, spacing, most)
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
