"""Which k of d coordinates are not zero, within 2 bits of log2 C(d, k); always the last field of a message.

Up to d = 64: the enumerative rank sum_j C(s_j, j) of the support s_1 < s_2 < ... in ceil(log2 C(d, k)) bits.
Beyond: the same enumeration carried by a range coder, with P(next is in) = (k left)/(coordinates left).
Nothing is sent if k = 0 or k = d.
"""

from __future__ import annotations

import math

import numpy as np

from ..bits.bitstream import pack, read_field, words
from ..compilation import jit
from ..message import CorruptMessage
from . import range_coder

RANKED = 64  # binomial coefficients up to here fit 64 bits
_BINOMIAL = np.array([[math.comb(n, k) for k in range(RANKED + 1)] for n in range(RANKED + 1)], np.uint64)


def rank_bits(d: int, k: int) -> int:
    """Return ceil(log2 C(d, k)) for d <= 64."""
    return int(math.comb(d, k) - 1).bit_length()


def support_bits(d: int, k: int) -> float:
    """Return the most bits that a support of k among d takes: the rank's field, or log2 C(d, k) + 2."""
    if k in (0, d):
        return 0
    if d <= RANKED:
        return rank_bits(d, k)
    ln = math.lgamma(d + 1) - math.lgamma(k + 1) - math.lgamma(d - k + 1)
    return ln / math.log(2) + 2


@jit
def _rank(levels, binomial):
    rank, j = np.uint64(0), 0
    for i in range(levels.size):
        if levels[i] != 0:
            j += 1
            rank += binomial[i, j]
    return rank


@jit
def _unrank(rank, k, binomial, mask):
    for i in range(mask.size - 1, -1, -1):
        if k > 0 and binomial[i, k] <= rank:
            rank -= binomial[i, k]
            mask[i] = 1
            k -= 1


@jit
def _code(levels, rest, state, out):
    """Code a run, with ``rest`` coordinates of the vector from its start on; the length in bits after the last one.

    ``state`` is (low, range, bytes written, how many are left).  The loop repeats ``range_coder.encode`` in place; a
    call would count references at every coordinate.
    """
    low, width, next_byte, left = state[0], state[1], np.int64(state[2]), np.int64(state[3])
    for i in range(levels.size):
        n = rest - i
        if left == 0 or left >= n:  # above n in a run after that in which only non-zeros were left
            break
        share = width // np.uint64(n)
        before = share * np.uint64(left)
        if levels[i] != 0:
            width = before
            left -= 1
        else:
            low += before
            width -= before
            if low < before:
                range_coder.carry(out, next_byte)
        while width < range_coder.NARROW:
            out[next_byte] = np.uint8(low >> np.uint64(56))
            next_byte += 1
            low <<= np.uint64(8)
            width <<= np.uint64(8)
    state[0], state[1], state[2], state[3] = low, width, np.uint64(next_byte), np.uint64(left)
    return range_coder.close(out, (low, width, next_byte)) if rest == levels.size else 0


@jit
def _decode(words, position, end, rest, state, mask):
    """Fill the mask of a run; False unless the stream holds it, and ends with the last one.

    ``state`` is (value - low, range, low, how many are left), with range 0 before the first run, and the position
    afterwards.
    """
    code, width, low, left = state[0], state[1], state[2], np.int64(state[3])
    if width == 0:
        code, width, low, position = range_coder.open_stream(words, position, end)
    for i in range(mask.size):
        n = rest - i
        if left == 0:
            break
        if left >= n:
            mask[i:] = 1
            break
        before = (width // np.uint64(n)) * np.uint64(left)
        inside = np.uint64(code < before)  # arithmetic in place of a branch that would be guessed wrong too often
        skipped = before & (inside - np.uint64(1))
        mask[i] = inside
        left -= np.int64(inside)
        code -= skipped
        low += skipped
        width = before if inside else width - before
        while width < range_coder.NARROW:
            code <<= np.uint64(8)
            if position < end:
                first = position >> 5
                w = ((np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])) << np.uint64(
                    position & 31
                )
                code |= w >> np.uint64(56)
            low <<= np.uint64(8)
            width <<= np.uint64(8)
            position += 8
    state[0], state[1], state[2], state[3], state[4] = code, width, low, np.uint64(left), np.uint64(position)
    return rest > mask.size or range_coder.finished((code, width, low, position), end)


class SupportWriter:
    """The range coder's string of a support of 0 < k < d, d > ``RANKED``, of levels that come run by run.

    Parameters
    ----------
    d : int
        Number of coordinates.
    k : int
        How many of them are not zero.
    out : ndarray
        uint8, with room for ``support_bits`` and 24 bytes more from ``start`` on.
    start : int, optional
        Byte at which the string begins.
    """

    def __init__(self, d: int, k: int, out: np.ndarray, start: int = 0) -> None:
        self._rest, self._start, self._out = d, start, out
        self._state = np.array([*range_coder.START[:2], start, k], np.uint64)

    def append(self, levels: np.ndarray) -> int:
        """Code a run; returns the bits of the whole string after the last one, a negative number before.

        Parameters
        ----------
        levels : ndarray
            int32, shape (n,).
        """
        bits = int(_code(levels, self._rest, self._state, self._out)) - 8 * self._start
        self._rest -= levels.size
        return bits


class SupportReader:
    """Reads what ``SupportWriter`` wrote, run by run.

    Parameters
    ----------
    d : int
        Number of coordinates.
    k : int
        How many of them are not zero.
    """

    def __init__(self, d: int, k: int) -> None:
        self._rest, self._before = d, np.array([0, 0, 0, k, 0], np.uint64)
        self._after = self._before

    @property
    def position(self) -> int:
        """Bit position after a run, in the words that were read."""
        return int(self._after[4])

    def read(self, stream: np.ndarray, position: int, end: int, mask: np.ndarray) -> bool:
        """Fill the mask of the next run; whether the stream holds it, and ends with the last one.

        Parameters
        ----------
        stream : ndarray
            ``words`` of a payload or of a window on it.
        position : int
            Where the string begins in them, or the coder stands.
        end : int
            Where they end.
        mask : ndarray
            uint8, zeros.
        """
        self._after = self._before.copy()
        return bool(_decode(stream, position, end, self._rest, self._after, mask))

    def go_on(self, n: int) -> None:
        """Leave the run of n coordinates that was read."""
        self._rest, self._before = self._rest - n, self._after


def encode_support(levels: np.ndarray, k: int) -> tuple[np.ndarray, int]:
    """Return (bytes, bits) of the positions of the k non-zero entries."""
    d = levels.size
    if k in (0, d):
        return np.zeros(0, np.uint8), 0
    if d <= RANKED:
        return pack(np.array([_rank(levels, _BINOMIAL)], np.uint64), np.array([rank_bits(d, k)]))
    out = np.zeros(d // 8 + 32, np.uint8)
    bits = SupportWriter(d, k, out).append(levels)
    return out[: (bits + 7) // 8], bits


def decode_support(payload: np.ndarray, position: int, end: int, d: int, k: int) -> np.ndarray:
    """Return the mask (uint8, shape (d,)) whose code fills bits position .. end of a payload exactly.

    Raises
    ------
    CorruptMessage
        If it does not.
    """
    mask = np.zeros(d, np.uint8)
    if k in (0, d):
        if position != end:
            raise CorruptMessage(f"{end - position} bits are left over after the last field")
        mask[:] = k > 0
        return mask
    if d <= RANKED:
        width = rank_bits(d, k)
        if position + width != end:
            raise CorruptMessage(f"the support of {k} among {d} takes {width} bits; {end - position} remain")
        rank = read_field(payload, position, width)
        if rank >= _BINOMIAL[d, k]:
            raise CorruptMessage(f"rank {rank} is not below C({d}, {k})")
        _unrank(np.uint64(rank), k, _BINOMIAL, mask)
    elif position > end or not SupportReader(d, k).read(words(payload), position, end, mask):
        raise CorruptMessage(f"the last {end - position} bits are no support of {k} among {d}")
    return mask
