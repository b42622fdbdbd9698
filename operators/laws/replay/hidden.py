"""How often a function must be replayed before a finding stands, although it might draw on hidden randomness.

Let r be the error as a function of the intercepted words, e that of a true draw, A the event r != e, of probability q.
Replaying random words V times with equal results twice shows q <= ln(1/level)/V, except with probability ``level``.  As
in ``enumeration``, a true claim E e = 0, ``E|e|^2 <= s^2`` leaves ``E[|e|^2``; ``A] <= s^2 - E|r|^2 + q max|r|^2``, so
``|E r| <= q max|r| + sqrt(q (s^2 - E|r|^2 + q max|r|^2))``; and ``E|r|^2 <= s^2 + q max|r|^2``.  A finding beyond these
bounds stands.

One assumption bounds the work: hidden randomness that changes the output in fewer than one call in ``RARE``
max(1, s^2) is not reckoned with.  (Some 250 runs have followed the words before, or no finding would be made.)
A function is put to this test once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from ..kit.clock import work_s
from ..kit.law import Inconclusive, NotApplicable
from .recorded_words import HIDDEN, Controlled

RARE = 200
BATCH = 16
LEAST_REPLAYS = 64  # however long they take


@dataclass(frozen=True)
class Moments:
    """Of the error over ``|x|``: length of its mean, mean and largest square;

    Parameters
    ----------
    s2 : float
        The claimed bound of the mean square.
    """

    bias: float
    square: float
    largest: float
    s2: float

    def stands(self, q: float, *, unbiased: bool) -> bool:
        """Return whether the claim is violated although with probability q the error is another one."""
        rest = max(self.s2 - self.square, 0.0) + q * self.largest
        too_biased = unbiased and self.bias > q * sqrt(self.largest) + sqrt(q * rest)
        return too_biased or self.square - q * self.largest > self.s2


def exclude_rare_dependence(
    run: Controlled, constant: np.ndarray, moments: Moments, level: float, *, unbiased: bool
) -> None:
    """Try random words until the finding stands although coordinates might depend on a word that was not found.

    Parameters
    ----------
    constant : ndarray
        Where no word was found, shape (d,): a selection of one in thousands hardly ever shows that it depends on one.

    Raises
    ------
    NotApplicable
        If such a coordinate changes.
    """
    if not constant.any():
        return
    doubt, value, trials = log(1 / level), run(run.random_words())[constant], 0
    while trials < RARE * max(1.0, moments.s2) and not (
        trials and moments.stands(min(1.0, doubt / trials), unbiased=unbiased)
    ):
        for _ in range(BATCH):
            if not np.array_equal(run(run.random_words())[constant], value, equal_nan=True):
                raise NotApplicable("a coordinate depends on a random word in so few draws that it was not found")
        trials += BATCH


def exclude_hidden(run: Controlled, moments: Moments, level: float, seconds: float, *, unbiased: bool) -> None:
    """Replay random words until the finding stands.

    Parameters
    ----------
    seconds : float
        Of work, as ``clock`` counts it.

    Raises
    ------
    NotApplicable
        If a replay differs, Inconclusive if the function is too slow for the replays.
    """
    if not run.intercepted or run.subject.draws.complete:
        return
    doubt, most = log(1 / level), RARE * max(1.0, moments.s2)
    began = work_s()
    replays = 0
    while replays < most and not (replays and moments.stands(min(1.0, doubt / replays), unbiased=unbiased)):
        if replays >= LEAST_REPLAYS and work_s() - began > seconds:
            raise Inconclusive(
                f"its exact mean or error is off, but it is too slow to exclude hidden randomness: {replays} replays "
                f"in {seconds:g} s"
            )
        for _ in range(BATCH):
            words = run.random_words()
            if not np.array_equal(run(words), run(words), equal_nan=True):
                raise NotApplicable(HIDDEN)
        replays += BATCH
    run.subject.draws.complete = True
