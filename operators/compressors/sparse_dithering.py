"""Sparse Dithering: deterministic, the same with an arithmetic code, and randomised."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
import torch

from bounds.claims import StrictlyContractive, Unbiased

from ..bits import elias
from ..bits.bitstream import BitReader, grow, in_windows, shift_down, words
from ..coding import range_coder, sparse_levels
from ..coding.size_bounds import SLACK, least
from ..coding.support_set import RANKED, support_bits
from ..compilation import jit
from ..kernels import kernels_for
from ..key import Key
from ..message import CorruptMessage
from ..operator import Size
from ..pieces import InRuns, Runs
from ..quantisers.scale import energy, nearest, negligible, norm_of, round_up_to_float32
from ..random import stream
from ..rate import Rate

# Deterministic Sparse Dithering: uniform levels on the unit sphere, projected back on the input.

FINEST = 2.0**-30  # keeps levels far below 2^31 at every d that fits memory
COARSEST = 1 - 2.0**-40  # at nu = 1 every level may be zero


@jit
def _round(x, spacing, most, levels):
    """Round to the nearest signed levels."""
    for i in range(x.size):
        n = np.int32(min(np.floor(np.float64(abs(x[i])) / spacing + 0.5), most))
        levels[i] = -n if x[i] < 0 else n


@jit
def _project(x, levels, sums):
    """Add <x, n> to two sums, over even and odd positions, and return ``|n|^2``; only the last run may be odd."""
    a, b, square = sums[0], sums[1], np.int64(0)
    for i in range(0, x.size - 1, 2):
        a += np.float64(x[i]) * np.float64(levels[i])
        b += np.float64(x[i + 1]) * np.float64(levels[i + 1])
        square += np.int64(levels[i]) * np.int64(levels[i]) + np.int64(levels[i + 1]) * np.int64(levels[i + 1])
    if x.size & 1:
        a += np.float64(x[-1]) * np.float64(levels[-1])
        square += np.int64(levels[-1]) * np.int64(levels[-1])
    sums[0], sums[1] = a, b
    return square


def quantise(x: np.ndarray, nu: float) -> tuple[float, np.ndarray]:
    """Return (g, signed levels n), such that g h n projects x on the rounded direction, h = 2 sqrt(nu/d).

    g is a positive binary32 number, 0 if x is negligible.

    Raises
    ------
    ValueError
        If it exceeds binary32.
    """
    levels, sums = np.zeros(x.size, np.int32), np.zeros(2)
    if negligible(x):
        return 0.0, levels
    h = spacing(nu, x.size)
    _round(x, h * math.sqrt(energy(x)), float(highest(nu, x.size)), levels)
    square = _project(x, levels, sums)
    return _scale(sums, square, h, max(float(levels.max()), -float(levels.min()))), levels


def _scale(sums: np.ndarray, square: int, h: float, top: float) -> float:
    """Return g from the two sums, ``|n|^2``, h and the largest level."""
    g = nearest(float(sums[0] + sums[1]) / float(square) / h)
    nearest(g * h * top)
    return g


class Quantised:
    """Levels and scale of a vector that is read run by run.

    The constructor reads it twice for the scale; every call of ``levels`` reads it again.

    Attributes
    ----------
    g : float
        Scale of the levels, as in ``quantise``.
    """

    def __init__(self, runs: Runs, nu: float, d: int) -> None:
        self._runs, self._most, h = runs, float(highest(nu, d)), spacing(nu, d)
        norm, self.g = norm_of(runs, float), 0.0
        if not norm:
            return
        self._spacing, sums, square, top = h * norm, np.zeros(2), 0, 0.0
        for x, levels in self._rounded():
            square += int(_project(x, levels, sums))
            top = max(top, float(levels.max()), -float(levels.min()))
        self.g = _scale(sums, square, h, top)

    def _rounded(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for _, x in self._runs():
            levels = np.zeros(x.size, np.int32)
            _round(x, self._spacing, self._most, levels)
            yield x, levels

    def levels(self) -> Iterator[np.ndarray]:
        """Yield the levels of each run."""
        return (levels for _, levels in self._rounded())


def spacing(nu: float, d: int) -> float:
    """Return the distance h = 2 sqrt(nu/d) of neighbouring levels on the unit sphere."""
    return 2 * math.sqrt(nu / d)


def highest(nu: float, d: int) -> int:
    """Return the level of a one-hot vector."""
    return math.floor(1 / spacing(nu, d) + 0.5)


class _Levels(InRuns):
    """Signed multiples of a spacing on the sphere of the sent scale, in the code of ``coding.sparse_levels``."""

    fewest: ClassVar[int]  # levels that are not 0 of a vector that is not negligible

    @abstractmethod
    def _grid(self, d: int) -> tuple[float, int]:
        """Return (the distance of neighbouring levels, the largest level)."""

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        return sparse_levels.read(payload, bits, d, self.fewest, *self._grid(d))

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        return sparse_levels.read_runs(payload, bits, d, self.fewest, *self._grid(d), list(self._runs(d)))


@dataclass(frozen=True)
class _Dithered(InRuns):
    """What both codes of the levels share."""

    nu: float = 0.1

    sources = ("albasyoni2020",)
    randomness = "none"
    projects = True
    equivariant = frozenset({"permutation", "scale", "sign"})

    def __post_init__(self) -> None:
        assert self.rate is not None  # every code has one
        finest = self.rate.many
        if not finest <= self.nu <= COARSEST:
            raise ValueError(f"nu must satisfy 2^{math.log2(finest):.0f} <= nu <= 1 - 2^-40; got nu = {self.nu}")

    def claim(self, d: int) -> StrictlyContractive:
        """Return alpha = nu."""
        return StrictlyContractive(self.nu)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(nu=0.1), cls(nu=0.01), cls(nu=0.9)


@dataclass(frozen=True)
class SparseDithering(_Levels, _Dithered):
    """Round ``x/|x|`` to multiples of h = 2 sqrt(nu/d), and send the projection of x on the result.

    Parameters
    ----------
    x : float tensor, shape (d,)
    nu : float, optional
        2^-30 <= nu < 1.

    Raises
    ------
    ValueError
        For nu out of range or a scale beyond binary32.

    Notes
    -----
    Strictly contractive with alpha = nu: the rounding error is at most d h^2/4 = nu, and projecting cannot be worse
    (Albasyoni et al. 2020).  Bits: scale 31, count, signs, unary levels, support within 2 bits of log2 C(d, k); below
    30 + log2 d + 3.35 d at nu = 0.1 and d >= 93.  Zero sends the scale only.
    """

    name = "sparse_dithering"
    fewest = 1
    rate = Rate("nu", few=COARSEST, many=FINEST)

    def bits(self, d: int) -> Size:
        """Return the worst length under the budget sum (n_i - 1/2)^2 <= d/(4 nu) of the non-zero levels."""
        worst = _exact_worst(self.nu, d) if d <= RANKED else _worst(self.nu, d)
        return Size(None, worst, worst)

    def _grid(self, d: int) -> tuple[float, int]:
        return spacing(self.nu, d), highest(self.nu, d)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        return sparse_levels.write(*quantise(x, self.nu), self.fewest)

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        quantised = Quantised(runs, self.nu, d)
        return sparse_levels.write_runs(quantised.g, quantised.levels, d, self.fewest)


@lru_cache(maxsize=1024)
def _exact_worst(nu: float, d: int) -> int:
    """Return the largest length over all k, at equal levels m of which as many as the budget allows become m + 1."""
    budget, most = d / (4 * nu) * (1 + 1e-12), 0.0
    for k in range(1, d + 1):
        m = math.floor(0.5 + math.sqrt(budget / k))
        raised = min(k, math.floor((budget - k * (m - 0.5) ** 2) / (2 * m)))
        most = max(most, support_bits(d, k) + k + k * m + raised)
    return sparse_levels.SCALE_BITS + (d - 1).bit_length() + int(most)


@lru_cache(maxsize=1024)
def _worst(nu: float, d: int) -> float:
    def cost(t: float) -> float:
        n = math.floor(0.5 + 1 / (2 * t))
        return max(m - t * (m - 0.5) ** 2 for m in (max(n, 1), n + 1))

    return sparse_levels.ends_bits(d, 1) + d * sparse_levels.per_coordinate(cost, 1 / (4 * nu))


# Sparse Dithering with one arithmetic code for all levels: 3.02 bits per coordinate at nu = 0.1 instead of 3.35.

SCALE_BITS = 31  # binary32 without its sign
SCALE_BYTES = 4
WORST_BYTES, ENDING_BYTES = 9, 16  # of one level (16 bits and an escape of up to 2^31), of the ending
FINEST_CODED = 2.0**-10  # below it 65536 shares are too coarse for the many levels
TOTAL = 1 << 16
SHIFT = np.uint64(16)
COARSE = 4  # log2 of the number of shares per entry of ``lookup``
BEYOND = 16  # a level of at least 1/16 ideal share gets a whole share: an escape costs at most its ideal length
_LARGEST = float(np.finfo(np.float32).max)


@lru_cache(maxsize=64)
def multiplier(nu: float) -> Decimal:
    """Return the rate lambda of the level law, to 12 digits.

    The law is p(n) ~ ``exp(-lambda (|n| - 1/2)^2)`` with p(0) ~ 1, and lambda makes ``E (|n| - 1/2)^2 = 1/(4 nu)``.
    """

    def excess(rate: float) -> float:
        e = (np.arange(1, math.ceil(math.sqrt(40 / rate)) + 2) - 0.5) ** 2
        w = 2 * np.exp(-rate * e)
        return float((w * e).sum() / (1 + w.sum()) - 1 / (4 * nu))

    low, high = nu / 8, 64.0
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return Decimal(f"{low:.12g}")


@lru_cache(maxsize=64)
def table(nu: float) -> np.ndarray:
    """Return cumulative integer shares of 65536 for the symbols 0, +1, -1, .., +M, -M, escape.

    Decimal arithmetic makes them equal on every machine.

    Tails are rounded up, so that a rare level never costs more than its ideal length; 0 takes the remainder.
    """
    with localcontext() as context:
        context.prec = 40
        rate = multiplier(nu)
        weights: list[Decimal] = []
        while not weights or weights[-1] * TOTAL * BEYOND > 1 + 2 * sum(weights):
            weights.append((-rate * (Decimal(len(weights)) + Decimal("0.5")) ** 2).exp())
        z = 1 + 2 * sum(weights)
        sizes = [math.ceil(TOTAL * w / z) for w in weights]
    shares = [0, *(size for size in sizes for _ in range(2)), 1]
    shares[0] = TOTAL - sum(shares)
    return np.cumsum([0, *shares])


@lru_cache(maxsize=64)
def lookup(nu: float) -> np.ndarray:
    """Return the symbol at every 2^COARSE-th share, where the search for a symbol starts."""
    return (np.searchsorted(table(nu), np.arange(0, TOTAL, 1 << COARSE), side="right") - 1).astype(np.uint16)


@jit
def _escape(out, state, n, negative):
    """Encode the sign and the Elias code of the distance beyond the table, one fair bit at a time."""
    state = range_coder.encode(out, state, negative, 1, 2)
    code, width = elias.build(n)
    for i in range(width - 1, -1, -1):
        state = range_coder.encode(out, state, np.int64((code >> np.uint64(i)) & np.uint64(1)), 1, 2)
    return state


@jit
def _write(levels, ends, out, state, last):
    """Encode one run of levels; after the last run, store the length in bits in ``state[0]``.

    The loop repeats ``range_coder.encode`` in place; a call would count references at every coordinate.
    """
    low, width, next_byte = state[0], state[1], np.int64(state[2])
    escape = ends.size - 2
    most = (escape - 1) // 2
    for level in levels:
        n = np.int64(abs(level))
        symbol = 2 * n - (level > 0) if n <= most else np.int64(escape)
        share = width >> SHIFT
        before = share * ends[symbol]
        low += before
        if low < before:
            range_coder.carry(out, next_byte)
        width = share * (ends[symbol + 1] - ends[symbol]) if symbol < escape else width - before
        while width < range_coder.NARROW:
            out[next_byte] = np.uint8(low >> np.uint64(56))
            next_byte += 1
            low <<= np.uint64(8)
            width <<= np.uint64(8)
        if symbol == escape:
            low, width, next_byte = _escape(out, (low, width, next_byte), n - most, np.int64(level < 0))
    state[0], state[1], state[2] = low, width, np.uint64(next_byte)
    if last:
        state[0] = np.uint64(range_coder.close(out, (low, width, next_byte)))


@jit
def _read_escape(words, end, state):
    """Read an ``_escape``; return (state, n, negative), with n = 0 if no code ends within 56 bits."""
    negative = range_coder.share_of(state, 2)
    state = range_coder.consume(words, end, state, negative, 1, 2)
    word = np.uint64(0)
    for filled in range(1, 57):
        bit = range_coder.share_of(state, 2)
        state = range_coder.consume(words, end, state, bit, 1, 2)
        word |= np.uint64(bit) << np.uint64(64 - filled)
        n, used = elias.parse(word)
        if used == filled and bit == 0:
            return state, n, negative
    return state, np.int64(0), negative


@jit
def _read(words, position, end, ends, symbols, highest_level, levels, coder, begins, last):
    """Decode one run into ``levels``; return whether the stream is valid.

    ``coder`` holds (code, width, low) and receives the position as its fourth number.  The loop repeats
    ``range_coder.consume``.  A narrow range takes its next byte by arithmetic: a branch would often be mispredicted.
    """
    if begins:
        code, width, low, position = range_coder.open_stream(words, position, end)
    else:
        code, width, low = coder[0], coder[1], coder[2]
    escape = ends.size - 2
    most = (escape - 1) // 2
    if code >= width:
        return False
    for j in range(levels.size):
        share = width >> SHIFT
        place = min(code // share, np.uint64(TOTAL - 1))
        symbol = np.int64(symbols[place >> np.uint64(COARSE)])
        while place >= ends[symbol + 1]:
            symbol += 1
        before = share * ends[symbol]
        code -= before
        low += before
        width = share * (ends[symbol + 1] - ends[symbol]) if symbol < escape else width - before
        while True:
            narrow = np.uint64(width < range_coder.NARROW)
            first = min(position, end) >> 5
            w = (np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])
            byte = ((w << np.uint64(position & 31)) >> np.uint64(56)) * np.uint64(position < end)
            code = (code << (narrow << np.uint64(3))) | (byte & (np.uint64(0) - narrow))
            low <<= narrow << np.uint64(3)
            width <<= narrow << np.uint64(3)
            position += np.int64(narrow) << 3
            if width >= range_coder.NARROW:
                break
        n, negative = (symbol + 1) >> 1, np.int64(symbol & 1 == 0)
        if symbol == escape:
            state, n, negative = _read_escape(words, end, (code, width, low, position))
            code, width, low, position = state
            if n == 0:
                return False
            n += most
        if n > highest_level:
            return False
        levels[j] = (n ^ -negative) + negative
    coder[0], coder[1], coder[2], coder[3] = code, width, low, np.uint64(position)
    return not last or range_coder.finished((code, width, low, position), end)


@dataclass(frozen=True)
class ArithmeticSparseDithering(_Dithered):
    """Encode the levels of ``SparseDithering`` with an arithmetic code under a static law.

    Parameters
    ----------
    x
        Float tensor, shape (d,).  Decodes to the same vector as SparseDithering(nu): strictly contractive with alpha =
        nu.  With lambda such that ``E (|n| - 1/2)^2 = 1/(4 nu)``, the energy budget of the levels bounds every message
        by d (log2 Z + lambda log2(e)/(4 nu)) + 33 bits, 3.0182 d at nu = .1; the declared size uses the coder's own
        integer shares instead.  Levels beyond the table are escaped in Elias omega code.
    nu : float, optional
        2^-10 <= nu < 1.

    Raises
    ------
    ValueError
        For nu out of range or a scale beyond binary32.

    Notes
    -----
    Sparse Dithering is that of Albasyoni et al. 2020.  Zero sends the scale only.
    """

    name = "arithmetic_sparse_dithering"
    rate = Rate("nu", few=COARSEST, many=FINEST_CODED)

    def bits(self, d: int) -> Size:
        """Return the bound on the worst levels under the budget ``sum (|n_i| - 1/2)^2 <= d/(4 nu)``."""
        worst = SCALE_BITS + 2 + d * per_coordinate(self.nu)
        return Size(None, worst, worst)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        g, levels = quantise(x, self.nu)
        return _written(g, (levels[part] for part in self._runs(x.size)), x.size, self.nu)

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        quantised = Quantised(runs, self.nu, d)
        return _written(quantised.g, quantised.levels(), d, self.nu)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        return self._joined(payload, bits, d, key)

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        reader = BitReader(payload, bits)
        g = float(np.uint32(reader.read(SCALE_BITS)).view(np.float32))
        if not math.isfinite(g):
            raise CorruptMessage(f"the scale must be finite; got {g}")
        if g == 0:
            reader.finish()
            yield from (np.zeros(part.stop - part.start, np.float32) for part in self._runs(d))
            return
        most, step, coder, empty = highest(self.nu, d), g * spacing(self.nu, d), _Coder(payload, bits, self.nu), True
        for part in self._runs(d):
            levels = np.zeros(part.stop - part.start, np.int32)
            if not coder.read(levels, levels.size / d, most, part.stop == d):
                raise CorruptMessage(f"the message does not hold {d} levels of 0 .. {most}")
            top = max(float(levels.max()), -float(levels.min()))
            empty = empty and top == 0
            if step * top > _LARGEST:
                raise CorruptMessage("a decoded value exceeds binary32")
            yield np.multiply(levels, step, out=np.empty(levels.size, np.float32), dtype=np.float64, casting="unsafe")
        if empty:
            raise CorruptMessage("the message holds no level but 0")


def _written(g: float, levels: Iterable[np.ndarray], d: int, nu: float) -> tuple[np.ndarray, int]:
    """Return (payload, bits) of the scale and the code.

    The scale has 31 bits, so the code is written one bit late and then shifted.
    """
    out = np.array([np.float32(g).view(np.uint32) << np.uint32(1)], ">u4").view(np.uint8).copy()
    if g == 0:
        return out, SCALE_BITS
    state, shares, left = np.array([*range_coder.START[:2], SCALE_BYTES], np.uint64), table(nu).astype(np.uint64), d
    for run in levels:
        left -= run.size
        grow(out, int(state[2]) + WORST_BYTES * run.size + ENDING_BYTES)
        _write(run, shares, out, state, left == 0)
    bits = int(state[0])
    shift_down(out, SCALE_BYTES, (bits + 7) // 8, 8 * SCALE_BYTES - SCALE_BITS)
    bits -= 8 * SCALE_BYTES - SCALE_BITS
    out.resize((bits + 7) // 8, refcheck=False)
    return out, bits


class _Coder:
    """Decoder state between runs."""

    def __init__(self, payload: np.ndarray, bits: int, nu: float) -> None:
        self.payload, self.bits, self.nu = payload, bits, nu
        self.position, self.state = -1, np.zeros(4, np.uint64)

    def read(self, levels: np.ndarray, share: float, most: int, last: bool) -> bool:
        """Decode one run into ``levels``; return whether the stream is valid."""
        ends, symbols, before, good = table(self.nu).astype(np.uint64), lookup(self.nu), self.state, False

        def run(window: np.ndarray, position: int, there: int) -> int:
            nonlocal good
            self.state = before.copy()
            begins = self.position < 0
            good = bool(_read(words(window), position, there, ends, symbols, most, levels, self.state, begins, last))
            return int(self.state[3]) if good else -1

        self.position = in_windows(self.payload, self.bits, max(self.position, SCALE_BITS), share, run)
        return good


@lru_cache(maxsize=64)
def per_coordinate(nu: float) -> float:
    """Return the worst bits per coordinate under the energy budget, by Lagrangian duality.

    It is min over t of t/(4 nu) + max_n (cost of n - t (n - 1/2)^2), with the costs of the integer shares.
    """
    shares = np.diff(table(nu))
    most = (shares.size - 2) // 2
    costs = math.log2(TOTAL) - np.log2(shares[1:-1:2])
    beyond = 1 << np.arange(31)
    escaped = math.log2(TOTAL / shares[-1]) + 1 + np.array([elias.length(int(n)) for n in beyond])
    n = np.concatenate([np.arange(1, most + 1), most + beyond])
    c, e = np.concatenate([costs, escaped]), (n - 0.5) ** 2
    empty = math.log2(TOTAL / shares[0])

    def limit(log: float) -> float:
        t = math.exp(log)
        return t / (4 * nu) + max(empty, float((c - t * e).max()))

    return SLACK * least(limit, math.log(nu) - 10, 10.0, 80) + 2.0**-30


# Randomised Sparse Dithering: stochastic rounding of the direction, unbiased.

LEAST_OMEGA = 2.0**-30  # keeps levels far below 2^31 at every d that fits memory
MOST_OMEGA = 2.0**30


@dataclass(frozen=True)
class RandomisedSparseDithering(_Levels):
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
    fewest = 0
    sources = ("albasyoni2020",)
    randomness = "private"
    rate = Rate("omega", few=MOST_OMEGA, many=LEAST_OMEGA)
    equivariant = frozenset({"scale", "sign"})

    def __post_init__(self) -> None:
        if not LEAST_OMEGA <= self.omega <= MOST_OMEGA:
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

    def _grid(self, d: int) -> tuple[float, int]:
        return self.spacing(d), math.ceil(1 / self.spacing(d))

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        norm = 0.0 if negligible(x) else self._checked(round_up_to_float32(math.sqrt(energy(x))), x.size)
        return sparse_levels.write(norm, self._levels(x, 0, norm, x.size, key), self.fewest)

    def _checked(self, norm: float, d: int) -> float:
        """Return the norm; raise ValueError if a decoded coordinate could exceed binary32."""
        h, most = self._grid(d)
        nearest(norm * h * most)
        return norm

    def _levels(self, x: np.ndarray, start: int, norm: float, d: int, key: Key) -> np.ndarray:
        """Return the signed levels of the run that begins at ``start``."""
        (h, most), vector = self._grid(d), torch.from_numpy(x)
        scale, words = torch.tensor([norm * h], dtype=torch.float64), stream(key, x.size, start=start)
        levels = kernels_for(vector).levels.signed(vector, x.size, scale, 1, words).numpy()
        return np.clip(levels, -most, most, out=levels)

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        norm = self._checked(norm_of(runs, round_up_to_float32), d)

        def levels() -> Iterator[np.ndarray]:
            return (self._levels(x, part.start, norm, d, key) for part, x in runs())

        return sparse_levels.write_runs(norm, levels, d, self.fewest)


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
