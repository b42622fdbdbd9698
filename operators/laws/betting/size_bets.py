"""Bets on the mean of a nonnegative quantity at many vectors: squared errors, message lengths."""

from __future__ import annotations

import numpy as np

from .ledger import Ledger, log_growth

STAKES = np.array([0.9, 0.5, 0.1, 0.02, 0.004])


class SizeBets:
    """Tests E y <= mean_j (``ceilings`` None), or E y >= mean_j where 0 <= y <= ceiling_j, at vectors j = 0, 1, ....

    A draw above its ceiling counts as the ceiling.

    Parameters
    ----------
    means : list of float
        Positive.
    """

    def __init__(self, means: list[float], sizes: list[int], ceilings: list[float] | None = None) -> None:
        self.means, self.ceilings = means, ceilings
        self.together = [d > 1 for d in sizes]
        self.ledger = Ledger((STAKES.size,), [(STAKES.size,) for _ in means])
        self.draws: list[tuple[int, np.ndarray]] = []
        self.totals = np.zeros(len(means))
        self.counts = np.zeros(len(means), int)

    def update(self, vector: int, y: np.ndarray) -> None:
        """Bet on a batch of draws at one vector: shape (n,), float64."""
        growth = log_growth(self.factors(vector, y))
        self.ledger.pay_own(vector, 0, growth)
        if self.together[vector]:
            self.ledger.pay_together(0, growth)
        self.ledger.close(vector)
        self.draws.append((vector, y))
        self.totals[vector] += y.sum()
        self.counts[vector] += y.size

    def factors(self, vector: int, y: np.ndarray) -> np.ndarray:
        """Return the payoff of each stake at each draw: shape (n, stakes)."""
        mean = self.means[vector]
        if self.ceilings is None:
            return 1 + STAKES / mean * (y[:, None] - mean)
        ceiling = self.ceilings[vector]
        return 1 + STAKES / max(ceiling - mean, mean) * (mean - np.minimum(y, ceiling)[:, None])

    def ratio(self, vector: int) -> float:
        """Return the mean so far over the claimed one."""
        return float(self.totals[vector] / max(1, self.counts[vector]) / self.means[vector])

    def overall_ratio(self) -> float:
        """Return the mean over all draws of y over its claimed mean."""
        return float((self.totals / np.array(self.means)).sum() / max(1, self.counts.sum()))
