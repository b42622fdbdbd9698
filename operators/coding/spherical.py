"""Blocks coded by the first of a shared sequence of random directions that lies close enough."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from bounds.special.cap_probability import cap_lead_and_excess

from ..bits.bitstream import BitReader, pack32, words
from ..bits.golomb import Golomb
from ..compilation import jit
from ..key import Key
from ..message import CorruptMessage
from ..random import bits32

NORM_BITS = 31  # binary32 without its sign
SLOWEST_BITS = 16.0  # an encoder draws 2^16 directions a block on average, at most
HOPELESS = 4096  # a search this many times longer than its mean has probability e^-4096
_INFINITY = 0x7F800000  # binary32 pattern


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
def _search(rows, norms, book, offset, cosine, found, along):
    """Find for every row not yet found its first direction of the book within reach; returns how many are left."""
    left = 0
    for r in range(rows.shape[0]):
        if found[r] != 0:
            continue
        for j in range(book.shape[0]):
            dot = 0.0
            for i in range(rows.shape[1]):
                dot += rows[r, i] * book[j, i]
            if dot >= cosine * norms[r]:
                found[r], along[r] = offset + j + 1, dot
                break
        left += found[r] == 0
    return left


def search(rows: np.ndarray, alpha: float, key: Key) -> tuple[np.ndarray, np.ndarray]:
    """Return (N, <x, v_N>) for rows x, shape (blocks, n), n >= 2; N = 0 for a zero row."""
    norms = np.sqrt((rows * rows).sum(axis=1))
    chosen, along = np.where(norms > 0, 0, -1), np.zeros(norms.size)
    cosine, offset, count = math.sqrt(1 - alpha), 0, 256
    enough = HOPELESS / cap(alpha, rows.shape[1])[0]
    while True:
        book = directions(key, rows.shape[1], offset, count)
        if _search(rows, norms, book, offset, cosine, chosen, along) == 0:
            break
        offset, count = offset + count, min(2 * count, 1 << 16)
        if offset > enough:
            raise RuntimeError(f"no direction among {offset} is close enough: the random stream is broken")
    return np.maximum(chosen, 0), along


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
    patterns = scales.astype(np.float32).view(np.uint32)
    quotients, rests, rest_widths = (np.zeros(patterns.size, np.int64) for _ in range(3))
    first = 0
    for n, count in lengths(x.size, block).items():
        part, first = slice(first, first + count), first + count
        if n == 1:
            quotients[part], rests[part], rest_widths[part] = -1, x[-1] < 0, 1
            continue
        code = Golomb.optimal(cap(alpha, n)[0])
        quotients[part], rest = np.divmod(np.maximum(numbers[part], 1) - 1, code.M)
        rests[part] = np.where(rest < code.t, rest, rest + code.t)
        rest_widths[part] = np.where(rest < code.t, code.k, code.k + 1)
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
    count = -(-d // block)
    numbers, patterns, stream, position, first = (
        np.zeros(count, np.int64),
        np.zeros(count, np.uint32),
        words(payload),
        0,
        0,
    )
    for n, same in lengths(d, block).items():
        part, first = slice(first, first + same), first + same
        if n == 1:
            reader = BitReader(payload, bits, position)
            patterns[-1] = reader.read(NORM_BITS)
            numbers[-1] = 1 + reader.read(1) if patterns[-1] else 0
            position = reader.position if patterns[-1] < _INFINITY else -1
        else:
            code = Golomb.optimal(cap(alpha, n)[0])
            position = _read(stream, position, bits, code.M, code.k, code.t, numbers[part], patterns[part])
        if position < 0:
            raise CorruptMessage(f"the {same} blocks of {n} coordinates are cut off or have no finite scale")
    if position != bits:
        raise CorruptMessage(f"{bits - position} bits are left over after the last block")
    return numbers, patterns.view(np.float32).astype(np.float64)


def rebuild(numbers: np.ndarray, scales: np.ndarray, d: int, block: int, key: Key) -> np.ndarray:
    """Scale times direction, block by block: float64, shape (d,)."""
    out = np.zeros(d)
    whole = d - d % block
    full, last = numbers[: whole // block], numbers[whole // block :]
    if full.size:
        distinct, where = np.unique(full, return_inverse=True)
        book = _rows(key, block, distinct)
        out[:whole] = (book[where] * scales[: full.size, None]).reshape(-1)
    if last.size and d - whole > 1:
        out[whole:] = _rows(key, d - whole, last)[0] * scales[-1]
    elif last.size:
        out[whole:] = scales[-1] * (1 if last[0] == 1 else -1)
    return out


def _rows(key: Key, n: int, numbers: np.ndarray) -> np.ndarray:
    """Return the directions of increasing numbers, zeros for number 0; at once if they are dense in the sequence."""
    if numbers[-1] == 0:
        return np.zeros((numbers.size, n))
    if numbers[-1] <= 16 * numbers.size + 1024:
        book = directions(key, n, 0, int(numbers[-1]))
        return np.where(numbers[:, None] > 0, book[np.maximum(numbers, 1) - 1], 0.0)
    return np.stack([directions(key, n, int(i) - 1, 1)[0] if i else np.zeros(n) for i in numbers])
