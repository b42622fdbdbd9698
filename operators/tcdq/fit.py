"""The encoder's choice of a model: a histogram by context, mixtures by expectation-maximisation, fewest bits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from math import erfc, sqrt

import numpy as np
import torch

from .model import CLASSES, COMPONENTS, NORM_BYTES, THRESHOLDS, WIDEST_SYMBOL, Format, Model, Plan, build
from .quantise import PHASES
from .rans import FIELD, MOST_LENGTH, PIECE, classify, histogram
from .trellis import COUNT_BYTES

# Limits of message lengths from the codec's own tables.
#
# The cost of a symbol is at most alpha + beta r^2, where r = (n - u)/v and any beta >= 0 determines alpha.  The mean of
# sum r^2 is d spread^2 for every vector, by the error law; it never exceeds ``(|x|/step + |e|)^2 / v^2``.

ROUNDING = 1 + 1e-6  # of the norm to binary32
SLOPES = np.geomspace(0.2, 4.0, 40)  # of 1/(2 sigma^2 ln 2), the slope of the Gaussian itself


def coder_overhead(form: Format) -> float:
    """Return most bits that one step of the coder loses: log2(1 + f/state), state >= f 2^15 or f 2^4 before it."""
    return math.log2(1 + 2.0 ** (-15 if form.streams == 1 else -4))


@lru_cache(maxsize=256)
def _entries(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Return (cost, least r^2) of every table entry and of every length of an escape."""
    form = plan.form
    rows = build(Model(plan.sigma), form).rows(0).astype(np.float64)
    cost = form.precision - np.log2(rows) + coder_overhead(form)
    top, slack = rows.shape[1] // 2, 0.5 / form.bins + 0.5 * (plan.low > 0)
    centre = np.arange(1 - top, top + 1) - (np.arange(form.bins)[:, None] + 0.5) / form.bins
    near = np.maximum(np.abs(centre) - slack, 0)
    length = np.arange(MOST_LENGTH + 1)
    steps = 1 + np.ceil(length / PIECE)
    escape = cost[:, -1].max() + FIELD + length + steps * coder_overhead(form)
    far = np.maximum(top - 1 + 2.0**length - slack, 0)
    low = plan.low + coder_overhead(form) * (plan.low > 0)
    squares = np.concatenate([near.reshape(-1), far]) ** 2 * 4.0**plan.low
    return np.concatenate([cost[:, :-1].reshape(-1), escape]) + low, squares


@lru_cache(maxsize=256)
def lines(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Return (alpha, beta): for each pair, no coordinate costs more than alpha + beta r^2 under the Gaussian."""
    cost, square = _entries(plan)
    beta = SLOPES / (2 * plan.spread**2 * math.log(2))
    alpha = (cost[:, None] - square[:, None] * beta).max(axis=0)
    return alpha, beta


def overhead(plan: Plan) -> int:
    """Return bits of norm, model byte, coder states and numbers of words."""
    ends = len(plan.segments) * (plan.form.state * plan.form.streams + COUNT_BYTES) - COUNT_BYTES
    return 8 * (NORM_BYTES + plan.fits + ends)


def limit(plan: Plan, squares: float) -> float:
    """Return most bits of a message under the Gaussian whose sum of r^2 is ``squares``."""
    alpha, beta = lines(plan)
    return overhead(plan) + float((plan.d * alpha + beta * squares).min())


def expected(plan: Plan) -> float:
    """Return what no vector's mean length exceeds."""
    return limit(plan, plan.d * plan.spread**2 * ROUNDING)


def worst(plan: Plan) -> float:
    """Return what no message exceeds."""
    v = plan.code.spacing
    reach = 1 / (plan.ratio * v) * ROUNDING + math.sqrt(plan.d) * (1.0 if v == 2 else 0.5)
    return limit(plan, reach**2)


GAUSS_BITS = 2.1  # log2(2 pi e)/2, rounded up
PER_OCTAVE = 8
FINE = 1 << 13  # magnitudes (in 1/64 spacing) with a level of their own table entry
LEVELS = 256
STEPS = 25
SAMPLE = 1 << 13  # rows of 16 that the histogram looks at, when there are more
LEAST_IN_GROUP = 512
BYTE = 8


@lru_cache(maxsize=1)
def _levels() -> tuple[np.ndarray, np.ndarray]:
    """Return (level of each magnitude below 2^13, the root mean square magnitude of each level in spacings)."""
    j = np.arange(FINE) + 0.5
    level = np.maximum(np.floor(PER_OCTAVE * np.log2(j)), 0).astype(np.uint8)
    square = np.bincount(level, j * j, LEVELS) / np.maximum(np.bincount(level, minlength=LEVELS), 1)
    top = int(level[-1])
    for i in range(top + 1, LEVELS):
        square[i] = 4 * square[i - PER_OCTAVE]
    return level, np.sqrt(square) / 64


@dataclass(frozen=True, eq=False)
class Choice:
    """A model, the mixture of every row, the estimated bits, and a lower bound of sum r^2, r = (n - u)/v."""

    model: Model
    groups: np.ndarray | torch.Tensor
    bits: float
    least_squares: float = 0.0

    def gaussian(self, plan: Plan) -> Choice:
        """Return the same without mixtures."""
        return replace(self, model=gaussian(plan), groups=self.groups * 0)


def gaussian(plan: Plan) -> Model:
    """Return the model without mixtures."""
    return Model(plan.sigma, low=plan.low)


def choose(symbols: np.ndarray, plan: Plan, most: int = CLASSES) -> Choice:
    """Return the model of fewest estimated bits for packed symbols.

    Parameters
    ----------
    most : int, optional
        Mixtures allowed; 0 for the Gaussian.
    """
    width = plan.form.streams
    classes = np.zeros(-(-plan.d // width), np.uint8)
    bits, model = fitted(symbols, stride(plan), plan, most)
    if not model.mixtures:
        return Choice(model, classes, bits)
    energy = sum(
        classify(
            symbols[segment], model.low, THRESHOLDS, width, classes[segment.start // width : -(-segment.stop // width)]
        )
        for segment in plan.segments
    )
    return Choice(model, np.array(model.starts, np.uint8)[classes], bits, least_squares(energy, plan.d, model.low))


def least_squares(energy: int, d: int, low: int) -> float:
    """Return a lower bound of sum r^2 from the sum of (2 j + 1)^2 over the magnitudes j, each known up to ``off``."""
    off = 0.5 * (low > 0) + 0.5 / PHASES
    return max(np.sqrt(energy) / (2 * PHASES) - off * np.sqrt(d), 0.0) ** 2 * 4.0**low


def stride(plan: Plan) -> int:
    """Return the histogram looks at every so many rows; it is odd."""
    return (-(-plan.d // plan.form.streams) // SAMPLE) | 1 if plan.form.streams > 1 else 1


def fitted(symbols: np.ndarray, stride: int, plan: Plan, most: int = CLASSES) -> tuple[float, Model]:
    """Return (estimated bits, the model of fewest) from every ``stride``-th row."""
    sigma, d, width = plan.sigma, plan.d, plan.form.streams
    if most == 0 or not plan.fits:
        return d * (np.log2(sigma) + GAUSS_BITS + plan.low), gaussian(plan)
    candidates = []
    for low in range(plan.low, -1, -1):
        counts = np.zeros((CLASSES, LEVELS), np.int64)
        squares = histogram(symbols, low, THRESHOLDS, width, stride, _levels()[0], counts) / PHASES**2
        share = d / counts.sum()
        if low == plan.low:
            plain = d * np.log2(sigma * np.sqrt(2 * np.pi)) + share * squares / (2 * sigma**2) * np.log2(np.e)
            candidates.append((plain + BYTE + low * d, gaussian(plan)))
        together = (0,) * CLASSES
        for starts in {together, _grouping(counts.sum(axis=1)) if most > 1 else together}:
            grouped = np.add.reduceat(counts, np.flatnonzero(np.diff(starts, prepend=-1)), axis=0).astype(np.float64)
            weights = _fit(grouped)
            mixtures = tuple(tuple(int(v) for v in np.trim_zeros(w, "b")) for w in weights)
            model = Model(sigma, starts, mixtures, low)
            candidates.append((BYTE * len(model.header()) + share * _bits(grouped, weights) + low * d, model))
    return min(candidates, key=lambda c: c[0])


def _grouping(sizes: np.ndarray) -> tuple[int, ...]:
    """Return neighbouring classes share a mixture until they hold enough coordinates to fit one."""
    starts, held, left = [0] * CLASSES, 0, int(sizes.sum())
    for c in range(CLASSES):
        fresh = c > 0 and held >= LEAST_IN_GROUP and left >= LEAST_IN_GROUP
        starts[c] = (starts[c - 1] if c else 0) + fresh
        held = (0 if fresh else held) + int(sizes[c])
        left -= int(sizes[c])
    return tuple(starts)


@lru_cache(maxsize=1)
def _densities() -> tuple[np.ndarray, np.ndarray]:
    """Return (Densities of the components at every level, what an escape leaves of them at such a level).

    Shapes (components, levels).  The second is the tail's probability, halved for each bit that follows it.
    """
    s = 2.0 ** (np.arange(COMPONENTS)[:, None] / 2) / 4
    size = _levels()[1]
    inside = np.exp(-((size / s) ** 2) / 2) / (s * np.sqrt(2 * np.pi))
    tails = np.array([[erfc(WIDEST_SYMBOL / v / sqrt(2))] for v in s[:, 0]])
    excess = np.maximum(size - WIDEST_SYMBOL, 1)
    coded = np.where(size < WIDEST_SYMBOL, inside, tails / (2.0**FIELD * excess))
    return inside, coded


def _fit(counts: np.ndarray) -> np.ndarray:
    """Return weights 0 .. 255, the largest 255: shape (groups, components)."""
    occupied = np.flatnonzero(counts.any(axis=0))
    table, data = _densities()[0][:, occupied], counts[:, occupied]
    last = int(np.ceil(2 * np.log2(max(4 * _levels()[1][occupied[-1]], 1)))) + 1
    table = table[: min(last + 1, COMPONENTS)]
    weights = np.full((counts.shape[0], table.shape[0]), 1 / table.shape[0])
    for _ in range(STEPS):
        share = data / np.maximum(weights @ table, 1e-300)
        weights *= share @ table.T
        weights /= weights.sum(axis=1, keepdims=True)
    out = np.rint(255 * weights / weights.max(axis=1, keepdims=True)).astype(np.int64)
    return np.pad(out, ((0, 0), (0, COMPONENTS - out.shape[1])))


def _bits(counts: np.ndarray, weights: np.ndarray) -> float:
    occupied = np.flatnonzero(counts.any(axis=0))
    density = weights / weights.sum(axis=1, keepdims=True) @ _densities()[1][:, occupied]
    return -float((counts[:, occupied] * np.log2(np.maximum(density, 1e-30))).sum())
