"""Bets on the mean of the error, over all vectors together and on each alone.

Together: that every vector is shrunk or stretched by the same share, along itself; and that every vector's error has
the mean that its draws so far have.  Alone: along the vector, along every coordinate, along the mean so far.
The proof that none of these wins on average against a true claim is in ``docs/concepts/evidence.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from .eprocess import LEAST_FACTOR, SLACK, Ledger, Moments, inflated, log_growth, stakes

SUPPOSED = np.array([1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015, 0.007])  # biases along x, over |x|
IN_ANY_DIRECTION = np.array([0.5, 0.25, 0.12, 0.06, 0.03])  # biases in an unknown direction, over |x|
AT_A_COORDINATE = np.array([0.6, 0.2, 0.06])
MOST_COORDINATES = 128
LOOKED_AT = 2  # first draws at a vector, on which nothing is bet
_LEARNT_FROM = 4
_LEARNT_EVERY = 20  # draws after which the direction is learnt again
EXACT = 1e-9  # below it a claimed second moment means that nothing is lost
_BELIEF = 0.2  # draws that the worst case counts for where vectors are compared


@dataclass(frozen=True)
class Batch:
    """What was bet along x at one batch: <e, v> and ``|e|^2``, shape (n,); s^2; lambda and kappa, shape (2 biases,)."""

    along: np.ndarray
    squares: np.ndarray
    s2: float
    tilt: np.ndarray
    kappa: np.ndarray


@dataclass
class Learnt:
    """What is known at one vector of a = <e, M/|M|>, with M the sum of the errors before: n, the sums of a and a^2.

    Over pairs of draws the sum of <e, M> is the unbiased U-statistic of ``|E e|^2``.
    """

    n: int = 0
    sum: float = 0.0
    square: float = 0.0

    def add(self, a: np.ndarray) -> None:
        """Count draws, shape (n,)."""
        self.n, self.sum, self.square = self.n + a.size, self.sum + float(a.sum()), self.square + float(a @ a)

    def variance(self, mean_square: float) -> float:
        """Return the variance of a, at first the whole of E|e|^2."""
        return (max(self.square - self.sum**2 / max(1, self.n), 0.0) + mean_square) / (self.n + 1)


@dataclass(frozen=True)
class Pairs:
    """One batch of pairs: what was bet along the sum M of the n errors before it.

    Along a direction u, ``errors`` and ``sum`` hold <e, u>, shape (n, directions), and <M, u>, shape (directions,).
    """

    vector: int
    n: int
    products: np.ndarray
    squares: np.ndarray
    length2: float
    errors: np.ndarray
    sum: np.ndarray
    s2: float
    mean_square: float
    spread: float


class MeanBets:
    """Tests E e = 0 under ``E|e|^2 <= s_j^2`` at vectors j = 0, 1, ..., whatever the order of the draws.

    Parameters
    ----------
    directions : list of ndarray
        Unit vectors along x_j, shape (d_j,), float64.
    second_moments : list of float
        s_j^2 >= 0.
    shared : list of bool or None, optional
        Where a bias along x_j may be common to all vectors; by default everywhere.
    """

    def __init__(
        self, directions: list[np.ndarray], second_moments: list[float], shared: list[bool] | None = None
    ) -> None:
        self.v = directions
        self.s2 = [inflated(s2) for s2 in second_moments]
        self.moments = [Moments(v.size) for v in directions]
        self.common = _common(directions, self.s2, shared or [True] * len(directions))
        sides = 2 * SUPPOSED.size
        learnt = IN_ANY_DIRECTION.size
        by_coordinate = [[2 * AT_A_COORDINATE.size * v.size] if self._by_coordinate(v) else [] for v in self.v]
        self.ledger = Ledger((sides, learnt), [(sides, learnt, *group) for group in by_coordinate])
        self.batches: list[Batch] = []
        self.pairs: list[Pairs] = []
        self.learnt = [Learnt() for _ in directions]
        self.tried = [_tried(v) for v in directions]  # directions in which the power of the learnt bets is computed
        self._excess = 0.0  # sums over all draws of |e|^2 / s^2 - 1, and of its square
        self._excess2 = 0.0
        self._draws = 0
        self._promises: dict[int, float] = {}  # of the vectors at which nothing was drawn since

    @staticmethod
    def _by_coordinate(v: np.ndarray) -> bool:
        return 1 < v.size <= MOST_COORDINATES

    def update(self, vector: int, errors: np.ndarray) -> None:
        """Bet on a batch of errors over ``|x|`` at one vector: shape (n, d), float64."""
        v, moments = self.v[vector], self.moments[vector]
        along, squares = errors @ v, (errors**2).sum(axis=1)
        begin = max(0, LOOKED_AT - moments.n)
        if begin < len(errors):
            s2 = self._cautious(vector)
            self._along_x(vector, along[begin:], squares[begin:], s2)
            self._learnt(vector, errors[begin:], squares[begin:], s2)
            if self._by_coordinate(v):
                self._coordinates(vector, errors[begin:], squares[begin:], s2)
            self.ledger.close(vector)
        moments.add(errors, along, squares)
        self._promises.pop(vector, None)
        ratio = squares / self.s2[vector] - 1
        self._draws += len(errors)
        self._excess += float(ratio.sum())
        self._excess2 += float((ratio**2).sum())

    def mean_error(self) -> float:
        """Return the mean of <e, ``x/|x|>`` over all draws at vectors of two and more coordinates."""
        drawn = [m for m in self.moments if m.d > 1 and m.n] or self.moments
        return sum(m.along for m in drawn) / max(1, sum(m.n for m in drawn))

    def _cautious(self, vector: int) -> float:
        """Return s^2; twice what was seen where the errors exceed it, so that the mean alone is judged (a larger s^2 is
        as fair).
        """
        s2, moments = self.s2[vector], self.moments[vector]
        everywhere = self._excess - 3 * sqrt(self._excess2)
        if everywhere > 0.02 * self._draws:
            s2 *= 2 * max(1.0, 1 + self._excess / self._draws)
        if moments.n:
            average = moments.square / moments.n
            s2 = max(s2, 2 * average) if average - 3 * sqrt(moments.fourth) / moments.n > self.s2[vector] else s2
        return s2

    def _along_x(self, vector: int, along: np.ndarray, squares: np.ndarray, s2: float) -> None:
        tilt, kappa = self._stakes_along_x(vector, s2)
        growth = log_growth(1 - np.abs(tilt) * SLACK + kappa * (squares[:, None] - s2) + along[:, None] * tilt)
        self.ledger.pay_own(vector, 0, growth)
        if self.common[vector]:
            self.ledger.pay_together(0, growth)
            self.batches.append(Batch(along, squares, s2, tilt, kappa))

    def _stakes_along_x(self, vector: int, s2: float) -> tuple[np.ndarray, np.ndarray]:
        """Return signed lambda and kappa for every supposed bias, first those of a stretch, then those of a shrink."""
        moments = self.moments[vector]
        sides = [
            stakes(SUPPOSED, s2, moments, moments.variance_along(s2), side * moments.covariance()) for side in (1, -1)
        ]
        tilt = np.concatenate([sides[0][0], -sides[1][0]])
        return tilt, np.concatenate([sides[0][1], sides[1][1]])

    def _learnt(self, vector: int, errors: np.ndarray, squares: np.ndarray, s2: float) -> None:
        """Bet along the mean of the draws before, which is learnt again every few draws."""
        moments, learnt = self.moments[vector], self.learnt[vector]
        total, n = moments.error, moments.n
        mean_square, spread = moments.mean_square(s2), moments.spread(s2)
        for begin in range(0, len(errors), _LEARNT_EVERY):
            part, sizes = errors[begin : begin + _LEARNT_EVERY], squares[begin : begin + _LEARNT_EVERY]
            length2 = float(total @ total)
            if n >= _LEARNT_FROM and length2 > 0:
                u = self.tried[vector]
                pairs = Pairs(vector, n, part @ total, sizes, length2, part @ u, total @ u, s2, mean_square, spread)
                growth, a = learnt_growth(pairs, learnt)
                learnt.add(a)
                self.ledger.pay_own(vector, 1, growth.sum(axis=0))
                self.ledger.pay_together(1, growth.sum(axis=0))
                self.pairs.append(pairs)
            total, n = total + part.sum(axis=0), n + len(part)

    def _coordinates(self, vector: int, errors: np.ndarray, squares: np.ndarray, s2: float) -> None:
        moments = self.moments[vector]
        tilt, kappa, _ = stakes(AT_A_COORDINATE, s2, moments, moments.variance_of_a_coordinate(s2))
        rest = (1 - tilt * SLACK + kappa * (squares[:, None] - s2))[:, :, None]
        side = tilt[:, None] * errors[:, None, :]
        self.ledger.pay_own(vector, 2, np.hstack([log_growth(rest + side), log_growth(rest - side)]).ravel())

    def promising(self, bias: float) -> int:
        """Return the vector, of those that are bet on together, where a bias along x would be found with the fewest
        draws.
        """
        for vector in range(len(self.v)):
            if vector not in self._promises:
                self._promises[vector] = self._promise(vector, bias)
        return max(self._promises, key=lambda vector: (self._promises[vector], -vector))

    def _promise(self, vector: int, bias: float) -> float:
        """Return log-growth a draw for the worse sign, believing what has been seen (an error is soon corrected)."""
        s2, moments = self.s2[vector], replace(self.moments[vector], prior=_BELIEF)
        if not self.common[vector]:
            return -1.0
        supposed, variance, covariance = np.array([bias]), moments.variance_along(s2), moments.covariance()
        return min(float(stakes(supposed, s2, moments, variance, side * covariance)[2][0]) for side in (1, -1))


@dataclass(frozen=True)
class _Sizes:
    """The mean and the variance of ``|e|^2``, as ``stakes`` needs them."""

    mean: float
    variance: float

    def mean_square(self, s2: float) -> float:
        return min(s2, self.mean)

    def spread(self, s2: float) -> float:
        return self.variance


def learnt_growth(pairs: Pairs, learnt: Learnt) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-growth of the bets along M, shape (n, biases), and a = <e, M/|M|>, shape (n,)."""
    a, mean_square = pairs.products / sqrt(pairs.length2), pairs.mean_square
    sizes = _Sizes(mean_square, pairs.spread)
    tilt, kappa, _ = stakes(drift_along(mean_square / pairs.n), pairs.s2, sizes, learnt.variance(mean_square))
    payoff = 1 + tilt * a[:, None] - tilt * SLACK + kappa * (pairs.squares[:, None] - pairs.s2)
    return np.log(np.maximum(payoff, LEAST_FACTOR)), a


def drift_along(noise: float | np.ndarray) -> np.ndarray:
    """Return the mean of a under each bias, where M/n has so large a mean square beside the bias."""
    return IN_ANY_DIRECTION**2 / np.sqrt(IN_ANY_DIRECTION**2 + noise)


def _tried(v: np.ndarray) -> np.ndarray:
    """Return unit vectors as columns, shape (d, 3): along x, a coordinate, a random direction."""
    random = np.random.default_rng(v.size).standard_normal(v.size)
    return np.stack([v, np.eye(1, v.size)[0], random / np.linalg.norm(random)], axis=1)


def _common(directions: list[np.ndarray], second_moments: list[float], shared: list[bool]) -> list[bool]:
    """Where a bias along x common to all vectors is bet on: two coordinates and more, and an error, if any has one.

    A claim may be exact at a few sizes; that nothing is lost there says little of the others.
    """
    long = [v.size > 1 and along for v, along in zip(directions, shared, strict=True)]
    lossy = [wide and s2 > EXACT for wide, s2 in zip(long, second_moments, strict=True)]
    return lossy if any(lossy) else long
