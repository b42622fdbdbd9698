"""TCDQ's model of the levels, the integer tables of its code, and the plan of a message."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isqrt

import numpy as np

from .trellis import LANES, SEGMENT, Trellis, code, lanes, segments

# Gaussian densities and tails in fixed point: integers only, so that every machine builds the same tables.

ONE = 30  # densities are multiples of 2^-30
RATE = 56  # rates are multiples of 2^-56
_BITS = 32
_LOG2_E = 6653256548922161245  # floor(2^62 log2 e)
TAIL_STEP = 16  # the tail is tabulated at multiples of 1/16 standard deviation
TAIL_SIZE = 128
ROOT_2PI = 2691471615  # floor(2^30 sqrt(2 pi))


@lru_cache(maxsize=1)
def _powers() -> np.ndarray:
    """Return floor(2^32 2^(-2^-i)) for i = 1 .. 32, by repeated square roots with 96 more bits."""
    value, out = 1 << 127, []
    for i in range(1, _BITS + 1):
        value = isqrt((1 << 255) if i == 1 else value << 128)
        out.append(value >> 96)
    return np.array(out, np.uint64)


def rate(numerator: int, denominator: int) -> int:
    """Return the rate of ``decay`` for exp(-(2 j + 1)^2 numerator / denominator)."""
    return numerator * _LOG2_E // (denominator << (62 - RATE))


def decay(rate: int, n: int) -> np.ndarray:
    """Return 2^30 2^(-rate 2^-56 (2 j + 1)^2) for j = 0 .. n - 1, rounded down: int64."""
    odd = 2 * np.arange(n, dtype=np.int64) + 1
    limit = (40 << RATE) // max(rate, 1)  # 2^-40 is zero here
    exponent = np.minimum(odd * odd, limit) * np.int64(rate) >> (RATE - _BITS)
    value = np.full(n, 1 << 32, np.uint64)
    for i, power in enumerate(_powers(), start=1):
        bit = (exponent >> (_BITS - i)) & 1 == 1
        value[bit] = (value[bit] * power) >> np.uint64(32)
    return (value >> (np.uint64(32 - ONE) + (exponent >> _BITS).astype(np.uint64))).astype(np.int64)


@lru_cache(maxsize=1)
def _tails() -> np.ndarray:
    values = decay(rate(1, 8 * TAIL_STEP**2), TAIL_SIZE)
    beyond = np.cumsum(values[::-1])[::-1]
    return np.append(beyond * (1 << 20) // beyond[0], 0)


def tail(sixteenths: int) -> int:
    """Return ``2^20 P(|Z| > sixteenths / 16)`` for a standard normal Z, rounded down."""
    return int(_tails()[min(sixteenths, TAIL_SIZE)])


# Densities of n - u in units of the symbol spacing: one Gaussian, or mixtures of Gaussians chosen by context.
#
# A mixture has weights 0 .. 255 for the standard deviations 2^(m/2) / 4, m = 0, 1, ...  The context of a
# coordinate is the mean magnitude of some 16 coordinates before it, on a scale of half octaves (see ``classes``);
# neighbouring contexts may share a mixture.  Only decoded values enter, so nothing but the weights is sent.

CLASSES = 16
COMPONENTS = 32
REACH = 128  # densities are tabulated for |n - u| < 128 spacings
WIDEST_SYMBOL = 127
MASS = 8  # a lone Gaussian has weight 2^8, about that of a mixture

# least running sum of magnitudes (in 1/64, 16 times their mean) of classes 1 .. 15: 256, 362, 512, ...
THRESHOLDS = np.array([isqrt((1 << 16) << c) for c in range(CLASSES - 1)], np.int64)


@dataclass(frozen=True)
class Model:
    """What the entropy coder assumes.

    Parameters
    ----------
    sigma : float
        Standard deviation of the Gaussian that serves where no mixture is given.
    starts : tuple of int, optional
        ``starts[c]`` is the number of the mixture of class c; non-decreasing from 0 by steps of 0 or 1.
    mixtures : tuple of tuple of int, optional
        Weights, one tuple per mixture; empty for the Gaussian.
    low : int, optional
        Last bits of each symbol that are sent as they are.
    """

    sigma: float
    starts: tuple[int, ...] = (0,) * CLASSES
    mixtures: tuple[tuple[int, ...], ...] = ()
    low: int = 0

    @property
    def groups(self) -> int:
        """How many densities there are."""
        return max(1, len(self.mixtures))

    def header(self) -> bytes:
        """Return the model as bytes: 0; or 1 + 2 low, the classes at which a mixture begins (bit c), and
        the weights.
        """
        if not self.mixtures:
            return b"\x00"
        mask = sum(1 << c for c in range(CLASSES) if c == 0 or self.starts[c] != self.starts[c - 1])
        return (
            bytes([1 | self.low << 1]) + mask.to_bytes(2, "big") + b"".join(bytes([len(w), *w]) for w in self.mixtures)
        )


def density(model: Model, group: int, bins: int) -> np.ndarray:
    """Return the density at ``|n - u| = (j`` + 1/2)/bins spacings, j = 0 .. 128 bins - 1, up to a factor: int64."""
    if not model.mixtures:
        return _gaussian(model.sigma, bins) << MASS
    parts = _components(bins)
    return sum(w * parts[m] for m, w in enumerate(model.mixtures[group]) if w)


def total_mass(model: Model, group: int) -> int:
    """Return the integral of ``density`` over a spacing's multiples: what its values sum to at one phase,
    on average.
    """
    if not model.mixtures:
        return int(ROOT_2PI * model.sigma * (1 << MASS))
    return sum(model.mixtures[group]) * ROOT_2PI // 4


def tail_mass(model: Model, group: int, reach: int) -> int:
    """Return the part of ``total_mass`` at ``|n - u|`` > reach spacings."""
    if not model.mixtures:
        return total_mass(model, group) * tail(int(TAIL_STEP * reach / model.sigma)) >> 20
    total = 0
    for m, w in enumerate(model.mixtures[group]):
        total += w * (ROOT_2PI // 4) * tail(isqrt((4 * TAIL_STEP * reach) ** 2 >> m)) >> 20
    return total


@lru_cache(maxsize=256)
def _gaussian(sigma: float, bins: int) -> np.ndarray:
    # (2 j + 1)^2 / (8 sigma^2 bins^2), with sigma^2 read as a multiple of 2^-40
    return decay(rate(1 << 40, int(8 * sigma * sigma * bins * bins * 2.0**40)), REACH * bins)


@lru_cache(maxsize=4)
def _components(bins: int) -> np.ndarray:
    """Return densities of the components, each divided by its standard deviation: shape (32, 128 bins)."""
    out = np.empty((COMPONENTS, REACH * bins), np.int64)
    for m in range(COMPONENTS):
        values = decay(rate(16, (8 << m) * bins * bins), REACH * bins)
        out[m] = values * isqrt((1 << 32) >> m) >> 16
    return out


def widest(values: np.ndarray, total: int, bins: int, rarest: int) -> int:
    """Return K: symbols 1 - K .. K are coded; those of probability below 2^-rarest leave it to the escape."""
    rare = np.flatnonzero(values[2 * bins :: bins] < total >> rarest)
    return min(WIDEST_SYMBOL, 2 + int(rare[0])) if rare.size else WIDEST_SYMBOL


# Frequencies of the entropy coder: for each mixture and each bin of the dither's phase, integers adding to 2^P.


@dataclass(frozen=True)
class Format:
    """How the coder works.

    Parameters
    ----------
    precision : int
        P, frequencies add to 2^P.
    bins : int
        Of the phase, C.
    streams : int
        Interleaved coder states of a segment.
    rarest : int
        Symbols of probability below 2^-rarest are escapes; each one above takes at least 2^-P.
    state : int
        Bytes of a final state.
    word : int
        Bytes of a word.
    """

    precision: int
    bins: int
    streams: int
    rarest: int
    state: int
    word: int

    @property
    def shift(self) -> int:
        """A phase in 1/64 becomes a bin by this shift."""
        return 6 - self.bins.bit_length() + 1


SHORT = Format(precision=16, bins=64, streams=1, rarest=30, state=8, word=4)
LONG = Format(precision=12, bins=16, streams=16, rarest=13, state=4, word=2)


@dataclass(frozen=True, eq=False)
class Tables:
    """Every group's frequencies one after the other.

    Parameters
    ----------
    widest : ndarray
        K of each group, int64; symbols 1 - K .. K have indices 0 .. 2 K - 1, the escape 2 K.
    offset : ndarray
        Where a group begins, int64; entry offset + bin (2 K + 1) + index.
    frequency : ndarray
        uint32.
    start : ndarray
        uint32.
    """

    form: Format
    widest: np.ndarray
    offset: np.ndarray
    frequency: np.ndarray
    start: np.ndarray

    def rows(self, group: int) -> np.ndarray:
        """Return the frequencies of one group: shape (C, 2 K + 1)."""
        size = 2 * int(self.widest[group]) + 1
        first = int(self.offset[group])
        return self.frequency[first : first + self.form.bins * size].reshape(-1, size)


def build(model: Model, form: Format) -> Tables:
    """Return the tables of a model."""
    return _gaussian_tables(model.sigma, form) if not model.mixtures else _build(model, form)


@lru_cache(maxsize=64)
def _gaussian_tables(sigma: float, form: Format) -> Tables:
    return _build(Model(sigma), form)


def _build(model: Model, form: Format) -> Tables:
    groups = [_group(model, g, form) for g in range(model.groups)]
    sizes = [rows.size for rows in groups]
    starts = [np.cumsum(rows, axis=1) - rows for rows in groups]
    return Tables(
        form,
        np.array([rows.shape[1] // 2 for rows in groups], np.int64),
        np.cumsum([0, *sizes[:-1]]).astype(np.int64),
        np.concatenate([rows.reshape(-1) for rows in groups]).astype(np.uint32),
        np.concatenate([rows.reshape(-1) for rows in starts]).astype(np.uint32),
    )


def _group(model: Model, group: int, form: Format) -> np.ndarray:
    values, total = density(model, group, form.bins), total_mass(model, group)
    k = widest(values, total, form.bins, form.rarest)
    symbol = np.arange(1 - k, k + 1)[None, :] * form.bins
    bins = np.arange(form.bins)[:, None]
    near = values[np.where(symbol > 0, symbol - bins - 1, bins - symbol)]
    share = np.concatenate([near, np.full((form.bins, 1), tail_mass(model, group, k))], axis=1)
    spare = (1 << form.precision) - share.shape[1]
    frequency = share * spare // share.sum(axis=1, keepdims=True) + 1
    rest = (1 << form.precision) - frequency.sum(axis=1)
    frequency[np.arange(form.bins), frequency.argmax(axis=1)] += rest
    return frequency


def lookup(tables: Tables) -> np.ndarray:
    """Return a flat uint32 table by group, bin and low 12 bits of the state.

    An entry is index ``|`` (slot - start) ``<< 8 |`` frequency << 20.
    """
    parts = [np.tile(np.arange(2 * k + 1), tables.form.bins) for k in tables.widest]
    index, frequency = np.concatenate(parts).astype(np.uint32), tables.frequency
    entry = index - (tables.start << np.uint32(8)) + (frequency << np.uint32(20))  # wraps until the slot is added
    slot = np.arange(1 << tables.form.precision, dtype=np.uint32) << np.uint32(8)
    flat = np.repeat(entry, frequency).reshape(-1, slot.size)
    return (flat + slot).reshape(-1)


# What both ends know beforehand, and the constants that follow from it.

NORM_BYTES = 4
MODEL_FROM = 1024  # below this d a mixture cannot pay for its header, and no model is sent
COARSEST = 16.0  # a symbol keeps its last bits apart until sigma is at most 16 spacings


@dataclass(frozen=True)
class Plan:
    """What both ends know: the number of coordinates, the distortion omega and the number of states.

    Parameters
    ----------
    segment : int, optional
        Coordinates of every segment but the last, a multiple of 16; a vector that fills one has the long format.
    """

    d: int
    omega: float
    states: int
    segment: int = SEGMENT

    @cached_property
    def code(self) -> Trellis:
        """The trellis in use."""
        return code(self.states, self.d)

    @cached_property
    def form(self) -> Format:
        """The entropy coder's format."""
        return LONG if self.d >= self.segment else SHORT

    @property
    def lanes(self) -> int:
        """How many trellises run side by side in a segment."""
        return LANES if self.form is LONG else lanes(self.d)

    @cached_property
    def segments(self) -> list[slice]:
        """The coordinates of each segment."""
        return segments(self.d, self.segment)

    @cached_property
    def error(self) -> float:
        """Mean squared error per coordinate in units of the step, c_S(d)."""
        return self.code.mean_error(self.d, self.segment)

    @cached_property
    def ratio(self) -> float:
        """Step over norm, sqrt(omega / (d c_S(d)))."""
        return math.sqrt(self.omega / (self.d * self.error))

    @cached_property
    def spread(self) -> float:
        """Standard deviation of n - u in spacings, sqrt(c_S(d) (1 + 1/omega)) / v."""
        return math.sqrt(self.error * (1 + 1 / self.omega)) / self.code.spacing

    @cached_property
    def low(self) -> int:
        """Bits of each symbol that are sent without a model."""
        low = 0
        while self.spread > COARSEST * 2**low:
            low += 1
        return low

    @cached_property
    def sigma(self) -> float:
        """Standard deviation in spacings of what the model sees."""
        return self.spread / 2**self.low

    @cached_property
    def fits(self) -> bool:
        """Whether a model field is sent."""
        return self.d >= MODEL_FROM

    def step(self, norm: float) -> tuple[float, float]:
        """Return (step for the norm's significand, the power of two left over)."""
        significand, exponent = math.frexp(norm)
        return 2 * significand * self.ratio, math.ldexp(1.0, exponent - 1)

    def steps(self, norms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``step`` of many norms; of 0 it is that of 1."""
        significand, exponent = np.frexp(np.where(norms > 0, norms, 1).astype(np.float64))
        return 2 * significand * self.ratio, np.ldexp(1.0, exponent - 1)


@lru_cache(maxsize=256)
def plan_of(d: int, omega: float, states: int) -> Plan:
    """Return the plan, kept so that its derived constants are computed once."""
    return Plan(d, omega, states)
