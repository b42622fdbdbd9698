"""Bets on the mean of the error, over all vectors together and on each alone.

Together: that every vector is shrunk or stretched by the same share, along itself; and that every vector's error has
the mean that its draws so far have.  Alone: along the vector, along every coordinate, along the mean so far.
The proof that none of these wins on average against a true claim is in ``docs/concepts/evidence.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from .eprocess import SLACK, inflated
from .ledger import Ledger, log_growth
from .stakes import Moments, stakes

SUPPOSED = np.array([1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015, 0.007])  # biases along x, over |x|
AT_A_COORDINATE = np.array([0.6, 0.2, 0.06])
MOST_COORDINATES = 128
LOOKED_AT = 2  # first draws at a vector, on which nothing is bet
_LEARNT_FROM = 8
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
        groups = [(sides, 1, *([2 * AT_A_COORDINATE.size * v.size] if self._by_coordinate(v) else [])) for v in self.v]
        self.ledger = Ledger((sides, 1), groups)
        self.batches: list[Batch] = []
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
        moments = self.moments[vector]
        length = float(np.linalg.norm(moments.error))
        if moments.n < _LEARNT_FROM or length == 0:
            return
        mean = length / moments.n
        bias = sqrt(max(mean**2 - moments.mean_square(s2) / moments.n, 0.0))  # without what chance adds
        if bias == 0:
            return
        (tilt,), (kappa,), _ = stakes(np.array([bias]), s2, moments, moments.mean_square(s2))
        side = tilt * (errors @ (moments.error / length))
        growth = log_growth(1 + side - tilt * SLACK + kappa * (squares - s2))
        self.ledger.pay_own(vector, 1, growth)
        self.ledger.pay_together(1, growth)

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


def _common(directions: list[np.ndarray], second_moments: list[float], shared: list[bool]) -> list[bool]:
    """Where a bias along x common to all vectors is bet on: two coordinates and more, and an error, if any has one.

    A claim may be exact at a few sizes; that nothing is lost there says little of the others.
    """
    long = [v.size > 1 and along for v, along in zip(directions, shared, strict=True)]
    lossy = [wide and s2 > EXACT for wide, s2 in zip(long, second_moments, strict=True)]
    return lossy if any(lossy) else long
