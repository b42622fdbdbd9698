"""Limits of message lengths from the codec's own tables.

The cost of a symbol is at most alpha + beta r^2, where r = (n - u)/v and any beta >= 0 determines alpha.  The mean of
sum r^2 is d spread^2 for every vector, by the error law; it never exceeds ``(|x|/step + |e|)^2 / v^2``.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .model import Model
from .plan import NORM_BYTES, Plan
from .rans import FIELD, MOST_LENGTH, PIECE
from .segments import COUNT_BYTES
from .tables import Format, build

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
