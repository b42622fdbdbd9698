"""How often a majority of sign votes is wrong when a fraction of the workers negates.

Setting.  One coordinate, gradient over noise S = ``snr``, noise unimodal and symmetric; n = m workers vote with the
sign of their own gradient, except that a fraction f < 1/2 sends the opposite of it; no collusion; a tie is wrong.

Derivation.  Gauss' inequality: one honest vote is wrong with probability at most 2/(9 S^2) if S > 2/sqrt(3), else at
most 1/2 - S/(2 sqrt(3)).  With p = 1/2 + e the probability that it is right, the number of right votes has mean
n/2 + n (1 - 2f) e and variance n (1/4 - e^2).  Cantelli's inequality and 1 + y^2 >= 2y give ::

    P[wrong] <= sqrt(1/(4 e^2) - 1)/(2 (1 - 2f) sqrt(n)),

and the lemma implies 1/(4 e^2) - 1 <= 3/S^2.  So even sqrt(3)/2 times the published value holds.

``worst_sign_error`` is the lemma, ``exact_vote_error`` the exact probability, which the bound may exceed by far.
"""

from __future__ import annotations

import math

import numpy as np
import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import faulty_fraction, m, snr

vote_error = Bound(
    name="vote_error",
    quantity="probability that the majority vote on one coordinate is wrong, a fraction of workers negating",
    side=Side.UPPER,
    value=1 / ((1 - 2 * faulty_fraction) * sp.sqrt(m) * snr),
    reference=Reference("bernstein2019", "Theorem 2, proof", arxiv="1810.05291"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.SAME_F,
                Property.UNBIASED_GRADIENTS,
                Property.INDEPENDENT_NOISE,
                Property.SYMMETRIC_NOISE,
                Property.NEGATING_WORKERS,
            }
        ),
        Conclusion.VOTE_ERROR,
    ),
    examples=(Example({"faulty_fraction": "0.25", "m": 16, "snr": 2}, "0.250000", "by hand: 1/(.5 * 4 * 2)"),),
    latex_name=r"P[\mathrm{vote\ wrong}]",
)


def worst_sign_error(snr: float) -> float:
    """Return the largest probability that one sign is wrong, over unimodal symmetric noise of unit variance;
    snr >= 0.
    """
    if snr < 0:
        raise ValueError(f"snr must be >= 0; got {snr}")
    return 2 / (9 * snr**2) if snr > 2 / math.sqrt(3) else 0.5 - snr / (2 * math.sqrt(3))


def exact_vote_error(*, workers: int, faulty: int, right: float, faulty_right: float | None = None) -> float:
    """Return the exact probability that a majority vote is wrong: a convolution of two binomial laws.

    Parameters
    ----------
    workers : int
        How many vote.
    faulty : int
        How many of them are faulty, 0 <= faulty <= workers.
    right : float
        Probability that an honest vote is right.
    faulty_right : float or None, optional
        Probability that a faulty vote is right; 1 - right (independent negation) unless given, 0 for colluders who know
        the truth.  A tie counts as wrong.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """
    faulty_right = 1 - right if faulty_right is None else faulty_right
    if not 0 <= faulty <= workers or workers < 1:
        raise ValueError(f"need 0 <= faulty <= workers, workers >= 1; got {faulty} of {workers}")
    if not (0 <= right <= 1 and 0 <= faulty_right <= 1):
        raise ValueError(f"probabilities must lie in [0, 1]; got {right} and {faulty_right}")
    counts = np.convolve(_binomial(workers - faulty, right), _binomial(faulty, faulty_right))
    return float(min(1.0, counts[: workers // 2 + 1].sum()))


def _binomial(n: int, p: float) -> np.ndarray:
    """Return the probabilities of 0..n successes, by repeated convolution: every term positive, no cancellation."""
    law = np.ones(1)
    for _ in range(n):
        law = np.convolve(law, [1 - p, p])
    return law
