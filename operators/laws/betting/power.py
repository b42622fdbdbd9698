"""What the draws of a passed test would have shown with probability 99 %.

The bets that were made are paid once more on the same draws with a bias put in.  That capital is one sample of what a
biased subject of the same kind would have earned; QUANTILE standard deviations of it are set aside: 2.33 for 99 %,
times sqrt 2 because the sample itself varies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log, sqrt

import numpy as np

from .eprocess import LEAST_FACTOR, SLACK, STAKES, TOGETHER, SizeBets, expected_growth, grid, stakes
from .mean_bets import AT_A_COORDINATE, IN_ANY_DIRECTION, SUPPOSED, Batch, MeanBets, Pairs, drift_along

QUANTILE = 3.3
EXCESS_QUANTILE = 3.8  # more, because the best of several stakes is taken on the sample: 3.3 left 97.2 % of 99 %
_NEAREST = 3  # supposed biases whose bets are paid again
_STEPS, _FEWER_STEPS = 14, 8  # of bisection; where a step takes longer
_LEAST, _MOST = 1e-6, 2.0
_LEAST_LENGTH = 1e-3  # of a bias in any direction


@dataclass(frozen=True)
class Power:
    """The least fault found with probability 99 %: over ``|x|`` for biases, relative for an excess; inf for none, None
    where nothing was judged.

    Parameters
    ----------
    along_x : float or None, optional
        Every vector of two or more coordinates shrunk or stretched alike.
    coordinate : float or None, optional
        One coordinate of any one vector off.
    excess : float or None, optional
        mean squared errors above the constant by this share, on average over the draws.
    any_direction : float or None, optional
        The length of a bias at every vector, in a direction that nobody knows.
    """

    along_x: float | None = None
    coordinate: float | None = None
    excess: float | None = None
    any_direction: float | None = None

    def __str__(self) -> str:
        faults = (
            ("a bias along x", self.along_x, "below {:.2g} |x|", 1),
            ("a bias in any direction, at every vector,", self.any_direction, "of length below {:.2g} |x|", 1),
            ("a bias in a single coordinate of a single vector", self.coordinate, "below {:.2g} |x|", 1),
            ("an error above the constant", self.excess, "by less than {:.2g} %", 100),
        )
        judged = [(what, least, size.format(least * unit)) for what, least, size, unit in faults if least is not None]
        missed = " or ".join(f"{what} {size}" for what, least, size in judged if least < inf)
        never = " or ".join(what for what, least, _ in judged if least == inf)
        clauses = [f"{missed} would not have been seen"] * bool(missed)
        return "; ".join(clauses + [f"{never} might have been missed whatever its size"] * bool(never))

    def joined(self, other: Power) -> Power:
        """Return the better of both in every respect."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Power(*(min((v for v in pair if v is not None), default=None) for pair in pairs))


def bias_along_x(bets: MeanBets, level: float) -> float:
    """Return the least b such that E C(x) = (1 - b) x, or (1 + b) x, at every vector would have been found."""
    if not bets.batches:
        return inf
    draws = _Draws(bets.batches)
    threshold = -log(level) - log(TOGETHER / 2 / (2 * SUPPOSED.size))
    return _least(lambda b: all(draws.capital(side * b) >= threshold for side in (1, -1)))


def bias_in_any_direction(bets: MeanBets, level: float) -> float:
    """Return the least length of a bias at every vector that would have been found, whatever its direction."""
    if not bets.pairs:
        return inf
    threshold, pairs = -log(level) - log(TOGETHER / 2 / IN_ANY_DIRECTION.size), _AllPairs(bets.pairs)
    directions = range(bets.tried[0].shape[1])
    return _least(lambda b: all(pairs.capital(b, j) >= threshold for j in directions), _FEWER_STEPS, _LEAST_LENGTH)


class _AllPairs:
    """All batches of pairs, with one row a draw and one row a batch: what was bet along the sums of the errors."""

    def __init__(self, pairs: list[Pairs]) -> None:
        self.products, self.squares, self.errors = (
            np.concatenate([getattr(p, name) for p in pairs]) for name in ("products", "squares", "errors")
        )
        self.length2, self.n, self.s2, self.mean_square, self.spread = (
            np.array([getattr(p, name) for p in pairs]) for name in ("length2", "n", "s2", "mean_square", "spread")
        )
        self.sum = np.stack([p.sum for p in pairs])
        self.counts = np.array([len(p.products) for p in pairs])
        self.starts = np.cumsum([0, *self.counts[:-1]])
        self.batch = np.repeat(np.arange(len(pairs)), self.counts)
        vectors = np.array([p.vector for p in pairs])
        self.order = np.argsort(vectors, kind="stable")  # the batches of one vector after another
        ordered = vectors[self.order]
        self.first = np.searchsorted(ordered, ordered)
        self.kappa, self.tilt = (np.stack(of_all) for of_all in zip(*(grid(p.s2) for p in pairs), strict=True))

    def _before(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of the values of the batches before each batch at the same vector."""
        sums = np.concatenate([[0.0], np.cumsum(values[self.order])])
        before = np.empty(len(values))
        before[self.order] = sums[:-1] - sums[self.first]
        return before

    def capital(self, bias: float, direction: int) -> float:
        """Return what the bets would have earned with a bias of this length, less QUANTILE deviations."""
        along, of_sum, n, batch = self.errors[:, direction], self.sum[:, direction], self.n, self.batch
        length = np.sqrt(self.length2 + 2 * n * bias * of_sum + (n * bias) ** 2)
        a = (self.products + bias * (of_sum[batch] + n[batch] * along) + n[batch] * bias**2) / length[batch]
        squares = self.squares + 2 * bias * along + bias**2
        mean_square = self.mean_square + bias**2
        drawn, sums = self._before(self.counts), self._before(np.add.reduceat(a, self.starts))
        rest = self._before(np.add.reduceat(a * a, self.starts)) - sums**2 / np.maximum(1, drawn)
        variance = (np.maximum(rest, 0.0) + mean_square) / (drawn + 1)
        tilt, kappa = self._stakes(drift_along(mean_square[:, None] / n[:, None]), mean_square, variance)
        payoff = 1 + tilt[batch] * (a[:, None] - SLACK) + kappa[batch] * (squares - self.s2[batch])[:, None]
        growth = np.log(np.maximum(payoff, LEAST_FACTOR))
        return _less_its_deviations(growth, self.starts, self.counts[:, None])

    def _stakes(
        self, drift: np.ndarray, mean_square: np.ndarray, variance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return lambda and kappa of each batch for each bias that is bet on, shape (batches, biases)."""
        excess, spread, variance = (
            values[:, None, None] for values in (np.minimum(mean_square - self.s2, 0.0), self.spread, variance)
        )
        kappa, tilt = self.kappa[:, None, :], self.tilt[:, None, :]
        growth = expected_growth(drift[:, :, None], kappa, tilt, excess, spread, variance, 0.0)
        best = growth.argmax(axis=2)
        on = growth.max(axis=2) > 0
        tilts, kappas = (np.take_along_axis(values, best, axis=1) for values in (self.tilt, self.kappa))
        return np.where(on, tilts, 0.0), np.where(on, kappas, 0.0)


class _Draws:
    """All draws at vectors of two or more coordinates, with what was bet on them."""

    def __init__(self, batches: list[Batch]) -> None:
        counts = [b.along.size for b in batches]
        self.along = np.concatenate([b.along for b in batches])
        self.squares = np.concatenate([b.squares for b in batches])
        self.s2 = np.repeat([b.s2 for b in batches], counts)
        self.tilt = np.repeat([b.tilt for b in batches], counts, axis=0)
        self.kappa = np.repeat([b.kappa for b in batches], counts, axis=0)
        self.starts = np.cumsum([0, *counts[:-1]])
        self.counts = np.array(counts)[:, None]

    def capital(self, bias: float) -> float:
        """Return what the best bet would have earned with this bias along x, less QUANTILE standard deviations."""
        near = np.argsort(np.abs(np.log(SUPPOSED / abs(bias))))[:_NEAREST] + SUPPOSED.size * (bias < 0)
        tilt, kappa = self.tilt[:, near], self.kappa[:, near]
        squares = self.squares + 2 * bias * self.along + bias**2
        payoff = 1 + tilt * (self.along + bias)[:, None] - np.abs(tilt) * SLACK + kappa * (squares - self.s2)[:, None]
        growth = np.log(np.maximum(payoff, 1e-300))
        return _less_its_deviations(growth, self.starts, self.counts)


def _less_its_deviations(
    growth: np.ndarray, starts: np.ndarray, counts: np.ndarray, quantile: float = QUANTILE
) -> float:
    sums = np.add.reduceat(growth, starts, axis=0)
    within = np.add.reduceat(growth**2, starts, axis=0) - sums**2 / counts
    spread = np.sqrt(np.maximum(within, 0).sum(axis=0))
    return float((sums.sum(axis=0) - quantile * spread).max())


def bias_of_a_coordinate(bets: MeanBets, level: float) -> float:
    """Return the least bias of one coordinate, at whichever single vector, that would have been found.

    From the first two moments of the payoffs, so to a few per cent.
    """
    worst = max(coordinate_powers(bets, level).values(), default=0.0)
    return worst if worst <= _MOST else inf


def coordinate_powers(bets: MeanBets, level: float) -> dict[int, float]:
    """Return every vector's least bias of one coordinate, among those bet on, that would have
    been found.
    """
    least: dict[int, float] = {}
    for vector, (v, s2, moments) in enumerate(zip(bets.v, bets.s2, bets.moments, strict=True)):
        if not bets._by_coordinate(v):
            continue
        share = (1 - TOGETHER) / len(bets.v) / 3 / (2 * AT_A_COORDINATE.size * v.size)
        threshold, n = -log(level) - log(share), max(1, moments.n)
        variance = moments.variance_of_a_coordinate(s2)
        tilt, kappa, _ = stakes(AT_A_COORDINATE, s2, moments, variance)
        noise = tilt**2 * variance + kappa**2 * moments.spread(s2)
        cost = kappa * (s2 - moments.mean_square(s2)) + tilt * SLACK + noise / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = (threshold + QUANTILE * np.sqrt(n * noise)) / (n * tilt) + cost / tilt
        least[vector] = float(np.min(needed[tilt > 0], initial=inf))
    return least


def excess(bets: SizeBets, level: float) -> float:
    """Return the least share by which every mean would have had to exceed its claim to be found."""
    batches = [(vector, y) for vector, y in bets.draws if bets.together[vector]]
    if not batches:
        return inf
    counts = np.array([y.size for _, y in batches])
    ratio = np.concatenate([y / bets.means[vector] for vector, y in batches])
    starts = np.cumsum([0, *counts[:-1]])
    threshold = -log(level) - log(TOGETHER / STAKES.size)
    if not ratio.any():
        return inf
    return _least(lambda share: _capital(ratio * (1 + share) / ratio.mean(), starts, counts) >= threshold)


def _capital(ratio: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> float:
    growth = np.log1p(STAKES * (ratio[:, None] - 1))
    return _less_its_deviations(growth, starts, counts[:, None], EXCESS_QUANTILE)


def _least(found: Callable[[float], bool], steps: int = _STEPS, least: float = _LEAST) -> float:
    """Return the least value at which ``found`` holds, within a few per cent above; inf if there is none."""
    low, high = least, _MOST
    if not found(high):
        return inf
    for _ in range(steps):
        middle = sqrt(low * high)
        low, high = (low, middle) if found(middle) else (middle, high)
    return high
