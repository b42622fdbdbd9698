"""The capital of one law: bets that run through the draws of all vectors, and bets on one vector each.

A weighted mean of nonnegative supermartingales is one, so the level is paid once for all of them.
"""

from __future__ import annotations

from math import log

import numpy as np

TOGETHER = 0.5  # share of the capital that is bet on all vectors at once; the rest is divided among the vectors
LEAST_FACTOR = 1e-300


class Ledger:
    """Logarithms of what every bet has grown to; each group of bets starts with its share of the capital.

    Parameters
    ----------
    together : tuple of int
        Numbers of bets in the groups that run through all vectors.
    own : list of tuple of int
        For every vector, the numbers of bets in its groups.
    """

    def __init__(self, together: tuple[int, ...], own: list[tuple[int, ...]]) -> None:
        self.together = [np.full(n, log(TOGETHER / len(together) / n)) for n in together]
        share = (1 - TOGETHER) / max(1, len(own))
        self.own = [[np.full(n, log(share / len(groups) / n)) for n in groups] for groups in own]
        self._totals = [_log_sum(groups) for groups in self.own]
        self.peak = 0.0

    def pay_own(self, vector: int, group: int, growth: np.ndarray) -> None:
        """Add the log-growth of a batch to the bets of one vector's group: shape (bets,)."""
        self.own[vector][group] = self.own[vector][group] + growth

    def pay_together(self, group: int, growth: np.ndarray) -> None:
        """Add the log-growth of a batch to a group that runs through all vectors: shape (bets,)."""
        self.together[group] = self.together[group] + growth

    def close(self, vector: int) -> None:
        """End a batch of one vector: take the whole capital down."""
        self._totals[vector] = _log_sum(self.own[vector])
        self.peak = max(self.peak, float(np.logaddexp.reduce([_log_sum(self.together), *self._totals])))

    def rejects(self, level: float) -> bool:
        """Return whether the capital has ever reached 1/level."""
        return self.peak >= -log(level)

    def richest(self) -> int:
        """Return the vector on which the most has been won."""
        return int(np.argmax(self._totals)) if self._totals else 0

    def growth(self, vector: int) -> float:
        """Return log-capital of the bets on one vector."""
        return self._totals[vector]


def log_growth(factors: np.ndarray) -> np.ndarray:
    """Return the sums of the logarithms over a batch, shape (n, ...) -> (...); a factor below zero by rounding counts
    as 0.
    """
    return np.log(np.maximum(factors, LEAST_FACTOR)).sum(axis=0)


def _log_sum(groups: list[np.ndarray]) -> float:
    return float(np.logaddexp.reduce(np.concatenate([g.ravel() for g in groups])))
