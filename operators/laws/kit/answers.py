"""What a compressor answers at each coordinate of one length: which of them differ from the others?

An answer is C(x)_i / x_i where both are non-zero.  Answers of different lengths are not compared: for many quantisers
they differ by sqrt(d).
"""

from __future__ import annotations

import numpy as np

WANTED = 4  # answers of every coordinate
NEARLY = 1 + 2.0**-16  # the entries that are asked for, among ones: a selection of the largest takes them first
COMPARED = 8  # answers of a sparse vector that are compared with each other
_TRUSTED = 4  # answers that the typical spread counts for
_ROUNDING = 1e-6  # of an answer


class Answers:
    """The answers so far, for vectors of d coordinates.

    Attributes
    ----------
    n
        Answers of each coordinate.
    half_seen
        Where a half would have broken a strict contraction already.
    """

    def __init__(self, d: int) -> None:
        self.d = d
        self.asked, self.n = np.zeros(d, int), np.zeros(d, int)
        self.sum, self.square = np.zeros(d), np.zeros(d)
        self.half_seen = np.zeros(d, bool)
        self.share = 1.0  # of the missing coordinates that the next sparse vector asks for
        self._dense_answer = 0.0  # the typical one of the first vector without zeros

    def missing(self) -> np.ndarray:
        """Return the coordinates with the fewest answers, if they are fewer than WANTED."""
        least = int(self.n.min())
        return np.flatnonzero(self.n == least) if least < WANTED else np.zeros(0, int)

    def vector(self, rng: np.random.Generator, *, sparse: bool) -> np.ndarray:
        """Return entries +-1, shape (d,), float32: all of them, the missing ones a little larger; or only
        missing ones.
        """
        x, missing = np.ones(self.d), self.missing()
        x[missing] = NEARLY
        if sparse and missing.size:
            chosen = rng.permutation(missing)[: max(1, int(self.share * missing.size))]
            x = np.zeros(self.d)
            x[chosen] = 1.0
        return (x * rng.choice([-1.0, 1.0], self.d)).astype(np.float32)

    def add(self, x: np.ndarray, y: np.ndarray) -> None:
        """Count the output y, float64, for x, float32; both of shape (d,)."""
        asked, answered = x != 0, (x != 0) & (y != 0)
        self.asked += asked
        chosen = np.flatnonzero(answered)
        if not asked.all():
            few = answered.sum() < 0.25 * asked.sum()
            self.share = max(self.share / 2, 1e-6) if few else min(2 * self.share, 1.0)
            if chosen.size < COMPARED:  # of vectors with other norms the answers themselves say nothing
                return
        if not chosen.size:
            return
        ratio = y[chosen] / x[chosen]
        typical = float(np.median(np.abs(ratio)))
        if asked.all():
            typical = self._dense_answer = self._dense_answer or typical
        self.n[chosen] += 1
        self.sum[chosen] += ratio / typical
        self.square[chosen] += (ratio / typical) ** 2

    def dissent(self, factor: float = 1.0) -> np.ndarray:
        """Return the standard errors by which each coordinate, times ``factor``, differs from the typical one: (d,)."""
        has_answered, n = self.n > 0, np.maximum(self.n, 1)
        if not has_answered.any():
            return np.zeros(self.d)
        mean = self.sum / n
        typical = float(np.median(mean[has_answered]))
        variance = np.maximum(self.square / n - mean**2, 0)
        several = self.n > 1
        usual = float(np.mean(variance[several] * (n / np.maximum(n - 1, 1))[several])) if several.any() else 0.0
        spread = (n * factor**2 * variance + _TRUSTED * usual) / (n + _TRUSTED) + (_ROUNDING * typical) ** 2
        return np.where(has_answered, np.abs(factor * mean - typical) / np.sqrt(spread / n), 0.0)

    def silence(self) -> np.ndarray:
        """Return the standard errors by which each coordinate answers less often than the others: (d,)."""
        asked = np.maximum(self.asked, 1)
        rate = min(max(float(self.n.sum() / asked.sum()), 1e-9), 1 - 1e-9)
        return np.maximum(rate - self.n / asked, 0.0) * np.sqrt(asked / (rate * (1 - rate)))
