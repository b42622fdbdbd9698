"""What a compressor answers at each coordinate: which of them differ from the others?

An answer is C(x)_i / x_i where both are non-zero.  Coordinates are numbered from the start, whatever the length.
"""

from __future__ import annotations

import numpy as np

WANTED = 4  # answers of every coordinate
NEARLY = 1 + 2.0**-16  # the entries that are asked for, among ones: a selection of the largest takes them first


class Answers:
    """The answers so far, for vectors of at most ``longest`` coordinates."""

    def __init__(self, longest: int) -> None:
        self.asked, self.n = np.zeros(longest, int), np.zeros(longest, int)
        self.sum, self.square = np.zeros(longest), np.zeros(longest)
        self.share = 1.0  # of the missing coordinates that the next sparse vector asks for

    def missing(self, d: int) -> np.ndarray:
        """Return the coordinates below d that have answered fewer than WANTED times."""
        return np.flatnonzero(self.n[:d] < WANTED)

    def vector(self, d: int, rng: np.random.Generator, *, sparse: bool) -> np.ndarray:
        """Return entries +-1, shape (d,), float32: all of them, the missing ones a little larger; or only
        missing ones.
        """
        x, missing = np.ones(d), self.missing(d)
        x[missing] = NEARLY
        if sparse and missing.size:
            chosen = rng.permutation(missing)[: max(1, int(self.share * missing.size))]
            x = np.zeros(d)
            x[chosen] = 1.0
        return (x * rng.choice([-1.0, 1.0], d)).astype(np.float32)

    def add(self, x: np.ndarray, y: np.ndarray) -> None:
        """Count the output y, float64, for x, float32; both of shape (d,)."""
        asked, answered = x != 0, (x != 0) & (y != 0)
        chosen = np.flatnonzero(answered)
        ratio = y[chosen] / x[chosen]
        self.asked[: x.size] += asked
        self.n[chosen] += 1
        self.sum[chosen] += ratio
        self.square[chosen] += ratio**2
        if not asked.all():
            few = answered.sum() < 0.25 * asked.sum()
            self.share = max(self.share / 2, 1e-6) if few else min(2 * self.share, 1.0)

    def suspects(self, each: int) -> list[int]:
        """Return coordinates that answer least often, most differently, and most differently for how much they vary."""
        has_answered = self.n > 0
        n = np.maximum(self.n, 1)
        mean = self.sum / n
        typical = float(np.median(mean[has_answered])) if has_answered.any() else 0.0
        spread = np.sqrt(np.maximum(self.square / n - mean**2, 0))
        off = np.where(has_answered, np.abs(mean - typical), 0.0)
        certain = off / ((spread + 1e-6) / np.sqrt(n))
        silent = np.where(has_answered, 0.0, self.asked)
        suspected = [int(i) for score in (silent, certain, off) for i in np.argsort(-score)[:each] if score[i] > 0]
        return list(dict.fromkeys(suspected))
