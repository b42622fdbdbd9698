"""Sums of independent step times by FFT on a lattice, with Richardson extrapolation in its width.

Lattice.  Each step's mass is split between its two neighbouring lattice points in proportion, which keeps the
mean exactly: the mass at point k is c_{k-1} - c_k with c_k the average of the tail P(Y > t) over cell k.  A sum of
tau such steps is again on the lattice, and E max = width * sum_k (1 - F(k)^m) holds exactly there.  The splitting only
adds a variance of about tau width^2/6.  So the error is even in the width, and two widths remove its leading term.

Beyond the lattice one large step dominates, P(S > t) is about tau P(Y > t - (tau-1) mean).  That gives the shape of
the tail only: since the lattice keeps the mean, the integral of P(S > t) beyond is known exactly, and scales it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .distribution import Distribution
from .quadrature import expected_max_of, gauss_legendre, spread

RESOLUTION = 256  # cells in the width of a single step's law, while the sum needs no more than MOST_CELLS
FEWEST_CELLS, MOST_CELLS = 2**15, 2**17
MAX_MEANS = 400  # the lattice reaches at most this many (tau + 1) means
BULK_SDS = 12
TAIL = 1e-9  # a single step beyond the lattice is at most this likely, unless MAX_MEANS cuts earlier
VISIBLE = 1e-9  # relative to the mean: smaller tails are not scaled
CELL_NODES = 3


@dataclass(frozen=True)
class LatticeSum:
    """The sum of tau steps on a lattice: P(S > offset + k width) for k = 0, 1, ..., n - 1."""

    law: Distribution
    tau: int
    width_s: float
    tail: np.ndarray

    @property
    def offset_s(self) -> float:
        """The smallest possible sum, in seconds."""
        return self.tau * self.law.lower_s

    @property
    def end_s(self) -> float:
        """Where the lattice ends, in seconds."""
        return self.offset_s + self.width_s * self.tail.size

    def excess_beyond(self, t: float) -> float:
        """Return E max(S - t, 0) for t at or beyond the end: one large step, the others at their mean."""
        single = t - (self.tau - 1) * self.law.mean_s
        return self.tau * self.law.excess(max(single, self.law.lower_s)) if t < self.tau * self.law.upper_s else 0.0

    def expected_max(self, m: int) -> float:
        """Return E max of m independent sums, in seconds."""
        inside = -np.expm1(m * np.log1p(-np.minimum(self.tail, 1 - 2.0**-53)))
        return self.offset_s + self.width_s * float(inside.sum()) + self._beyond(m)

    def _beyond(self, m: int) -> float:
        """Return the integral of P(max of m sums > t) beyond the lattice, in seconds."""
        floor = max(self.end_s - (self.tau - 1) * self.law.mean_s, self.law.lower_s)
        shape, single = (expected_max_of(self.law, self.tau * k, floor) - floor for k in (m, 1))
        missing = self.tau * self.law.mean_s - self.offset_s - self.width_s * float(self.tail.sum())
        if missing < VISIBLE * self.tau * self.law.mean_s or single <= 0:
            return max(shape, 0.0)  # the difference would be rounding
        return shape * missing / single

    def sf(self, t: np.ndarray) -> np.ndarray:
        """Return P(S > t): the lattice tail is the average over a cell, hence the value in its middle."""
        t = np.asarray(t, float)
        middle = (t - self.offset_s) / self.width_s - 0.5
        inside = np.interp(middle, np.arange(self.tail.size), self.tail, left=1.0)
        single = np.maximum(t - (self.tau - 1) * self.law.mean_s, self.law.lower_s)
        return np.where(t < self.end_s - self.width_s, inside, np.minimum(self.tau * self.law.sf(single), 1.0))


def expected_max_of_sum(law: Distribution, tau: int, m: int) -> float:
    """Return E max of m independent sums of tau steps, in seconds; the law has a finite mean."""
    fine, coarse = (total.expected_max(m) for total in lattice_pair(law, tau))
    return (4 * fine - coarse) / 3


def waiting_below_of_sum(law: Distribution, tau: int, m: int, floor_s: float) -> float:
    """Return E max(floor_s - M, 0) for M the longest of m sums of tau steps of a bounded law, in seconds.

    The same lattices for every floor: the integral of F^m below it, linear inside a cell.
    """
    fine, coarse = _waiting(law, tau, m)
    floors = (np.interp(floor_s - tau * law.lower_s, *integral) for integral in (fine, coarse))
    first, second = map(float, floors)
    return max((4 * first - second) / 3, 0.0)


@lru_cache(maxsize=32)
def _waiting(law: Distribution, tau: int, m: int) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Return both lattices' seconds above the smallest sum, and the integral of F^m up to them."""
    integrals = []
    for total in lattice_pair(law, tau):
        below = np.exp(m * np.log1p(-np.minimum(total.tail, 1 - 2.0**-53)))
        ends = total.width_s * np.arange(total.tail.size + 1)
        integrals.append((ends, total.width_s * np.concatenate([[0.0], np.cumsum(below)])))
    return tuple(integrals)


def lattice_pair(law: Distribution, tau: int) -> tuple[LatticeSum, LatticeSum]:
    """Return the sum on two lattices, the second twice as wide: (4 first - second)/3 is the extrapolated value.

    The width does not depend on tau as long as the sum fits, so that the transform of a step is computed once.
    """
    reach = _reach(law, tau)
    width_s = min(_core(law) / RESOLUTION, reach / FEWEST_CELLS)
    while reach > width_s * MOST_CELLS:
        width_s *= 2
    if np.isfinite(law.upper_s):  # put the right end of the support on both lattices; atoms need the finest
        support = law.upper_s - law.lower_s
        width_s = support / (2 * math.ceil(support / (2 * reach / MOST_CELLS)))
    cells = 1 << math.ceil(math.log2(reach / width_s * (1 - 1e-12)))
    return lattice_sum(law, tau, width_s, cells), lattice_sum(law, tau, 2 * width_s, cells // 2)


def _core(law: Distribution) -> float:
    """Return the width of the middle half of a law, in seconds, or its whole spread if that is smaller or the half
    empty.
    """
    middle = law.quantile(0.25) - law.quantile(0.75)
    return min(spread(law), middle) if middle > 0 else spread(law)


@lru_cache(maxsize=16)
def lattice_sum(law: Distribution, tau: int, width_s: float, cells: int) -> LatticeSum:
    """Return the lattice law of the sum of tau independent steps."""
    from scipy.fft import irfft

    spectrum, inside = _spectrum(law, width_s, cells)
    total = irfft(integer_power(spectrum, tau), 2 * cells)
    missing = max(1.0 - inside**tau, 0.0)
    tail = np.cumsum(total[::-1])[::-1][1 : cells + 1] + missing
    return LatticeSum(law, tau, width_s, np.clip(tail, 0.0, 1.0))


@lru_cache(maxsize=8)
def _spectrum(law: Distribution, width_s: float, cells: int) -> tuple[np.ndarray, float]:
    """Return the zero-padded transform of one step's masses, and their sum."""
    from scipy.fft import rfft

    masses = law.lattice(width_s, cells)
    return rfft(masses, 2 * cells), float(masses.sum())


def integer_power(base: np.ndarray, exponent: int) -> np.ndarray:
    """Return base**exponent by repeated squaring: exact integer exponent, no complex logarithm."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        base, exponent = base * base, exponent >> 1
    return result


def _reach(law: Distribution, tau: int) -> float:
    """Return how far above its minimum the lattice follows the sum, in seconds."""
    mean = law.mean_s - law.lower_s
    bulk = tau * mean + BULK_SDS * np.sqrt(tau) * spread(law)
    reach = min(bulk + law.quantile(TAIL) - law.lower_s, max(MAX_MEANS * (tau + 1) * mean, bulk))
    return min(reach, tau * (law.upper_s - law.lower_s))


def split_tail(law: Distribution, width_s: float, cells: int) -> np.ndarray:
    """Return the lattice masses of a law from averages of its tail over the cells, shape (cells,)."""
    nodes, weights = gauss_legendre(CELL_NODES)
    left = law.lower_s + width_s * np.arange(cells)
    average = law.sf(left[:, None] + width_s * nodes) @ weights
    edges = np.concatenate([[0.0], 2.0 ** -np.arange(60.0, -1, -1)])  # the density may be singular at the left end
    inner = law.sf(law.lower_s + width_s * (edges[:-1, None] + np.diff(edges)[:, None] * nodes)) @ weights
    average[0] = float(np.diff(edges) @ inner)
    return -np.diff(average, prepend=1.0)
