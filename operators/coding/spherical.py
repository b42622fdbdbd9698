"""Blocks coded by the first of a shared sequence of random directions that lies close enough."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from bounds.special.cap_probability import cap_lead_and_excess

from ..bits.bitstream import concatenate, in_windows, pack32, read_field, words
from ..compilation import jit
from ..compilation.simd import first, load_8, repeated_8, store
from ..key import Key
from ..message import CorruptMessage
from ..random import bits32

LANES = 8  # directions tried at once

# Golomb code of N >= 1 with P(N) = P (1 - P)^(N-1): the optimal prefix code of a geometric law.


@dataclass(frozen=True)
class Golomb:
    """Parameter M: quotient (N-1) div M in unary (ones, then a zero), remainder in truncated binary.

    Attributes
    ----------
    k : int
        A remainder below t = 2^(k+1) - M takes k = floor(log2 M) bits, any other k + 1.
    t : int
        A remainder below t = 2^(k+1) - M takes k = floor(log2 M) bits, any other k + 1.
    """

    M: int

    @classmethod
    def optimal(cls, p: float) -> Golomb:
        """Return the least M with q^M + q^(M+1) <= 1, q = 1 - p (Gallager and Van Voorhis 1975)."""
        return cls(1 if p >= 1 else max(1, math.ceil(math.log(2 - p) / -math.log1p(-p))))

    @property
    def k(self) -> int:
        """Bits of a short remainder."""
        return self.M.bit_length() - 1

    @property
    def t(self) -> int:
        """Number of short remainders."""
        return (1 << (self.k + 1)) - self.M

    def code(self, n: int) -> tuple[int, int, int]:
        """Return (ones before the zero, remainder field, its width) of N = n >= 1."""
        quotient, rest = divmod(n - 1, self.M)
        return (quotient, rest, self.k) if rest < self.t else (quotient, rest + self.t, self.k + 1)

    def mean_bits(self, p: float) -> float:
        """Return mean length under the geometric law: 1 + k + q^M/(1 - q^M) + (q^t - q^M)/(1 - q^M)."""
        if p >= 1:
            return 1.0 + self.k
        power = math.exp(self.M * math.log1p(-p))
        longer = math.exp(self.t * math.log1p(-p)) - power
        return 1 + self.k + (power + longer) / (1 - power)


NORM_BITS = 31  # binary32 without its sign
SLOWEST_BITS = 16.0  # an encoder draws 2^16 directions a block on average, at most
HOPELESS = 4096  # a search this many times longer than its mean has probability e^-4096
PIECE = 1 << 13  # blocks that are worked on together, in the cache
_INFINITY = 0x7F800000  # binary32 pattern
_LARGEST = float(np.finfo(np.float32).max)


@lru_cache(maxsize=256)
def cap(alpha: float, n: int) -> tuple[float, float]:
    """Return (P, m) in dimension n >= 2: share of the cap of cosine >= sqrt(1 - alpha), and mean cosine on it.

    m = alpha^a / (2 a B(a, 1/2) P), a = (n-1)/2; the power cancels against the lead of log P.
    """
    lead, excess = cap_lead_and_excess(alpha, n)
    a = (n - 1) / 2
    log_2ab = math.log(2 * a) + math.lgamma(a) + math.lgamma(0.5) - math.lgamma(a + 0.5)
    return 2.0 ** -(lead + excess), math.exp(excess * math.log(2) - log_2ab)


def check(alpha: float, block: int) -> None:
    """Raise ValueError unless 0 < alpha < 1, block >= 2 and the search takes at most 2^16 draws on average."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must satisfy 0 < alpha < 1; got alpha = {alpha}")
    if block < 2:
        raise ValueError(f"block must be at least 2; got block = {block}")
    if -math.log2(cap(alpha, block)[0]) > SLOWEST_BITS:
        raise ValueError(
            f"a block of {block} at alpha = {alpha} takes 1/P = {1 / cap(alpha, block)[0]:.3g} draws; at most 2^16: "
            "take a shorter block or a larger alpha"
        )


def blocks(d: int, block: int) -> Iterator[tuple[int, int]]:
    """Return (start, stop) of each run of ``block`` coordinates; the last one may be shorter."""
    return ((start, min(start + block, d)) for start in range(0, d, block))


def lengths(d: int, block: int) -> dict[int, int]:
    """Return block length -> how many blocks of d coordinates have it."""
    whole, rest = divmod(d, block)
    return {n: count for n, count in ((block, whole), (rest, 1 if rest else 0)) if count}


@jit
def _gauss(words, out):
    """Unit rows from pairs of words by the Box-Muller transform; an even number of words a row."""
    pairs = words.size // out.shape[0] // 2
    n = out.shape[1]
    for r in range(out.shape[0]):
        square = 0.0
        for j in range(pairs):
            u = (np.float64(words[2 * (r * pairs + j)]) + 0.5) * 2.0**-32
            v = np.float64(words[2 * (r * pairs + j) + 1]) * 2.0**-32
            radius = np.sqrt(-2 * np.log(u))
            out[r, 2 * j] = radius * np.cos(2 * np.pi * v)
            if 2 * j + 1 < n:
                out[r, 2 * j + 1] = radius * np.sin(2 * np.pi * v)
        for i in range(n):
            square += out[r, i] * out[r, i]
        for i in range(n):
            out[r, i] /= np.sqrt(square)


def directions(key: Key, n: int, start: int, count: int) -> np.ndarray:
    """Return rows v_(start+1) .. v_(start+count) of the shared sequence in dimension n: unit, independent, uniform."""
    width = n + (n & 1)
    out = np.empty((count, n))
    _gauss(bits32(key.fold_in(n), count * width, start=start * width), out)
    return out


@jit
def _search(rows, limits, book, offset, found, along):
    """Find for every row not yet found its first direction of the book within reach; returns how many are left.

    The book holds first coordinates of all its directions, then second ones: eight products are summed at once.
    """
    left, count = 0, book.size // rows.shape[1]
    products, row = np.empty(LANES), np.empty(rows.shape[1])
    for r in range(rows.shape[0]):
        if found[r] != 0:
            continue
        limit = limits[r]
        for i in range(row.size):
            row[i] = rows[r, i]
        for j in range(0, count, LANES):
            dot = repeated_8(0.0)
            for i in range(row.size):
                dot = dot + row[i] * load_8(book, i * count + j)
            k = np.int64(first(dot >= limit))
            if k < LANES:
                store(products, 0, dot)
                found[r], along[r] = offset + j + k + 1, products[k]
                break
        left += found[r] == 0
    return left


def lengths_of(rows: np.ndarray) -> np.ndarray:
    """Return the norms of float32 rows, float64, in pieces that stay in the cache."""
    norms = np.empty(len(rows))
    for start in range(0, len(rows), PIECE):
        wide = rows[start : start + PIECE].astype(np.float64)
        norms[start : start + PIECE] = np.sqrt((wide * wide).sum(axis=1))
    return norms


def search(rows: np.ndarray, norms: np.ndarray, alpha: float, key: Key) -> tuple[np.ndarray, np.ndarray]:
    """Return (N, <x, v_N>) for float32 rows x of known norms, shape (blocks, n), n >= 2; N = 0 for a zero row."""
    chosen, along, limits = np.where(norms > 0, 0, -1), np.zeros(norms.size), math.sqrt(1 - alpha) * norms
    offset, count = 0, 256
    enough = HOPELESS / cap(alpha, rows.shape[1])[0]
    while True:
        book = np.ascontiguousarray(directions(key, rows.shape[1], offset, count).T).reshape(-1)
        if _search(rows, limits, book, offset, chosen, along) == 0:
            break
        offset, count = offset + count, min(2 * count, 1 << 16)
        if offset > enough:
            raise RuntimeError(f"no direction among {offset} is close enough: the random stream is broken")
    return np.maximum(chosen, 0, out=chosen), along


@jit
def _fields(patterns, quotients, rests, rest_widths, values, widths):
    """Return per block: scale, then unless it is 0 the quotient in unary (no bit for -1), and the remainder."""
    m = 0
    for j in range(patterns.size):
        values[m], widths[m] = np.uint64(patterns[j]), NORM_BITS
        m += 1
        if patterns[j] != 0:
            ones = quotients[j]
            while ones >= 31:
                values[m], widths[m] = np.uint64(0x7FFFFFFF), 31
                m, ones = m + 1, ones - 31
            values[m], widths[m] = np.uint64(max((1 << (ones + 1)) - 2, 0)), ones + 1
            values[m + 1], widths[m + 1] = np.uint64(rests[j]), rest_widths[j]
            m += 2
    return m


def encode(x: np.ndarray, numbers: np.ndarray, scales: np.ndarray, alpha: float, block: int) -> tuple[np.ndarray, int]:
    """Return (payload, bits): per block the scale, then N in Golomb code, or the sign of a block of one coordinate."""
    runs, first = [], 0
    for n, count in lengths(x.size, block).items():
        code = Golomb.optimal(cap(alpha, n)[0]) if n > 1 else None
        for start in range(first, first + count, PIECE):
            part = slice(start, min(start + PIECE, first + count))
            runs.append(_pack_run(numbers[part], scales[part], code, x[-1] < 0))
        first += count
    return concatenate(runs)


def _pack_run(numbers: np.ndarray, scales: np.ndarray, code: Golomb | None, negative: bool) -> tuple[np.ndarray, int]:
    """Return (payload, bits) of blocks of one length; without a code, of a block of one coordinate with its sign."""
    patterns = scales.astype(np.float32).view(np.uint32)
    if code is None:
        quotients, rests, rest_widths = (np.full(patterns.size, value) for value in (-1, int(negative), 1))
    else:
        quotients, rest = np.divmod(np.maximum(numbers, 1) - 1, code.M)
        rests = np.where(rest < code.t, rest, rest + code.t)
        rest_widths = np.where(rest < code.t, code.k, code.k + 1)
    values = np.zeros(3 * patterns.size + int(np.maximum(quotients, 0).sum()) // 31, np.uint64)
    widths = np.zeros(values.size, np.int64)
    return pack32(values, widths, _fields(patterns, quotients, rests, rest_widths, values, widths))


@jit
def _read(words, position, bits, M, k, t, numbers, patterns):
    """Return blocks with one Golomb code; returns the next position, or -1 if the stream is corrupt."""
    for j in range(patterns.size):
        first = position >> 5
        w = ((np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])) << np.uint64(position & 31)
        position += NORM_BITS
        patterns[j] = np.uint32(w >> np.uint64(64 - NORM_BITS))
        if position > bits or patterns[j] >= _INFINITY:
            return -1
        if patterns[j] == 0:
            continue
        quotient = 0
        while position < bits and (words[position >> 5] >> np.uint32(31 - (position & 31))) & np.uint32(1):
            quotient, position = quotient + 1, position + 1
        position += 1
        first = position >> 5
        if position + k > bits:
            return -1
        w = ((np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])) << np.uint64(position & 31)
        rest = np.int64(w >> np.uint64(64 - k)) if k > 0 else np.int64(0)
        position += k
        if rest >= t:
            rest = np.int64(w >> np.uint64(63 - k)) - t
            position += 1
            if position > bits:
                return -1
        numbers[j] = quotient * M + rest + 1
    return position


def decode(payload: np.ndarray, bits: int, d: int, alpha: float, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (numbers, scales) of the blocks; the number is 1 or 2 for the sign + or - of a block of one coordinate.

    Raises
    ------
    CorruptMessage
        For anything ``encode`` cannot write.
    """
    numbers, patterns = np.zeros(-(-d // block), np.int64), np.zeros(-(-d // block), np.uint32)
    finish(_read_blocks(payload, 0, bits, d, alpha, block, numbers, patterns), bits)
    return numbers, patterns.view(np.float32).astype(np.float64)


def finish(position: int, bits: int) -> None:
    """Raise CorruptMessage unless the blocks end at bit ``bits``."""
    if position < 0:
        raise CorruptMessage("the blocks are cut off or have no finite scale")
    if position != bits:
        raise CorruptMessage(f"{bits - position} bits are left over after the last block")


def decode_runs(
    payload: np.ndarray, bits: int, d: int, alpha: float, block: int, runs: Iterator[slice]
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield (coordinates, numbers, scales) of each run of whole blocks; raises as ``decode``, at the end at last."""
    position = 0
    for run in runs:
        n = run.stop - run.start
        numbers, patterns = np.zeros(-(-n // block), np.int64), np.zeros(-(-n // block), np.uint32)
        read = partial(_read_blocks, d=n, alpha=alpha, block=block, numbers=numbers, patterns=patterns)
        position = in_windows(payload, bits, position, n / d, read)
        finish(min(position, 0), 0)
        yield n, numbers, patterns.view(np.float32).astype(np.float64)
    finish(position, bits)


def _read_blocks(
    payload: np.ndarray,
    position: int,
    bits: int,
    d: int,
    alpha: float,
    block: int,
    numbers: np.ndarray,
    patterns: np.ndarray,
) -> int:
    """Fill numbers and scales of d coordinates; returns the bit position after them, -1 if the stream is corrupt."""
    stream, first = words(payload), 0
    for n, same in lengths(d, block).items():
        part, first = slice(first, first + same), first + same
        if position < 0:
            return -1
        if n > 1:
            code = Golomb.optimal(cap(alpha, n)[0])
            position = int(_read(stream, position, bits, code.M, code.k, code.t, numbers[part], patterns[part]))
        elif position + NORM_BITS > bits:
            return -1
        else:
            patterns[-1] = read_field(payload, position, NORM_BITS)
            position += NORM_BITS
            if patterns[-1] >= _INFINITY or (patterns[-1] and position >= bits):
                return -1
            numbers[-1] = 1 + int(read_field(payload, position, 1)) if patterns[-1] else 0
            position += int(patterns[-1] > 0)
    return position


def rebuild(numbers: np.ndarray, scales: np.ndarray, d: int, block: int, key: Key) -> np.ndarray:
    """Scale times direction, block by block: float32, shape (d,).

    Raises
    ------
    CorruptMessage
        If an entry exceeds binary32.
    """
    out, whole, top = np.zeros(d, np.float32), d - d % block, 0.0
    full, last = numbers[: whole // block], numbers[whole // block :]
    highest = int(full.max(initial=0))
    if 0 < highest <= _dense(full.size):
        top = _fill(directions(key, block, 0, highest), full - 1, scales, out)
    elif highest:
        distinct, where = np.unique(full, return_inverse=True)
        top = _fill(_rows(key, block, distinct), where, scales, out)
    if last.size:
        sign = np.array([[1.0 if last[0] == 1 else -1.0]])
        direction = _rows(key, d - whole, last) if d - whole > 1 else sign
        top = max(top, _fill(direction, np.zeros(1, np.int64), scales[-1:], out[whole:]))
    if top > _LARGEST:
        raise CorruptMessage("a decoded value exceeds binary32")
    return out


@jit
def _fill(book, places, scales, out):
    """Write scale times row, block by block, zeros for place -1; returns the largest magnitude, in float64."""
    n, top = book.shape[1], 0.0
    for b in range(places.size):
        if places[b] < 0:
            continue
        for i in range(n):
            value = book[places[b], i] * scales[b]
            top = max(top, abs(value))
            out[b * n + i] = np.float32(value)
    return top


def _dense(count: int) -> int:
    """Return up to which number all directions are drawn for so many: faster than one by one."""
    return 16 * count + 1024


def _rows(key: Key, n: int, numbers: np.ndarray) -> np.ndarray:
    """Return the directions of increasing numbers, zeros for number 0; at once if they are dense in the sequence."""
    if numbers[-1] == 0:
        return np.zeros((numbers.size, n))
    if numbers[-1] <= _dense(numbers.size):
        book = directions(key, n, 0, int(numbers[-1]))
        return np.where(numbers[:, None] > 0, book[np.maximum(numbers, 1) - 1], 0.0)
    return np.stack([directions(key, n, int(i) - 1, 1)[0] if i else np.zeros(n) for i in numbers])
