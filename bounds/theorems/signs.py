"""Signs: signSGD, majority votes, and votes among liars."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import L_1, K, faulty_fraction, gap, local_error, m, sigma_1, snr

signsgd = Bound(
    name="signsgd",
    quantity="square of the average over K steps of E|grad F(x)|_1, signSGD with mini-batches of K calls",
    side=Side.UPPER,
    value=(sp.sqrt(L_1) * (gap + sp.Rational(1, 2)) + 2 * sigma_1) ** 2 / K,
    reference=Reference("bernstein2018", "Theorem 1", arxiv="1802.04434"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.COORDINATE_SMOOTH,
                Property.BOUNDED_BELOW,
                Property.UNBIASED_GRADIENTS,
                Property.COORDINATE_VARIANCE,
                Property.INDEPENDENT_NOISE,
                Property.SIGN_SGD,
            }
        ),
        Conclusion.L1_GRADIENT,
    ),
    examples=(Example({"L_1": 4, "gap": "1.5", "sigma_1": 1, "K": 9}, "4.00000", "by hand: (2 * 2 + 2)^2/9"),),
    latex_name=r"\Big(\frac1K\sum_k E\|\nabla F(x_k)\|_1\Big)^2",
)
"""signSGD: convergence in the l1 norm with batches that grow with the run.

Setting.  ``|F(y) - F(x) - <grad F(x), y - x>| <= (1/2) sum_j L_j (y_j - x_j)^2``; coordinate j of one gradient call has
standard deviation sigma_j; K steps of size ``1/sqrt(|L|_1 K)`` with mini-batches of K calls (N = K^2 calls in all).

Derivation.  A sign is wrong with probability at most ``E|ghat_j - g_j|/|g_j| <= sigma_j/(sqrt(K)|g_j|)``, so ::

    E F(x+) <= F(x) - eta |grad F|_1 + 2 eta |sigma|_1/sqrt(K) + eta^2 |L|_1/2.

Sum, insert eta, square.  Convergence needs growing batches: the middle term does not shrink with eta.
"""

majority_vote = Bound(
    name="majority_vote",
    quantity="square of the average over K steps of E|grad F(x)|_1, majority vote, mini-batches of K calls",
    side=Side.UPPER,
    value=4 * (sigma_1 / ((1 - 2 * faulty_fraction) * sp.sqrt(m)) + sp.sqrt(L_1 * gap)) ** 2 / K,
    reference=Reference("bernstein2019", "Theorem 2", arxiv="1810.05291"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.COORDINATE_SMOOTH,
                Property.BOUNDED_BELOW,
                Property.SAME_F,
                Property.UNBIASED_GRADIENTS,
                Property.COORDINATE_VARIANCE,
                Property.INDEPENDENT_NOISE,
                Property.SYMMETRIC_NOISE,
                Property.MAJORITY_VOTE,
                Property.NEGATING_WORKERS,
            }
        ),
        Conclusion.L1_GRADIENT,
    ),
    examples=(
        Example(
            {"sigma_1": 4, "faulty_fraction": "0.25", "m": 16, "L_1": 4, "gap": 1, "K": 8},
            "8.00000",
            "by hand: 4 (4/(.5 * 4) + 2)^2/8",
        ),
    ),
    latex_name=r"\Big(\frac1K\sum_k E\|\nabla F(x_k)\|_1\Big)^2",
)
"""signSGD with majority vote, robust to a fraction of workers that negate their signs.

Setting.  As in ``signsgd`` with m workers that vote; noise of every coordinate unimodal and symmetric (mini-batches
then are too); a fraction f < 1/2 negates, without collusion; step size ``sqrt(gap/(|L|_1 K))``.

Derivation.  By ``vote_error`` with mini-batches of K calls, ``sum_j |g_j|`` P[wrong_j] <= ``|sigma|_1/((1 - 2f) sqrt(m
K))``::

    E F(x+) <= F(x) - eta |grad F|_1 + 2 eta |sigma|_1/((1 - 2f) sqrt(m K)) + eta^2 |L|_1/2.

Sum and insert eta: avg ``E|grad F|_1 <= (3/2) sqrt(gap |L|_1/K) + 2 |sigma|_1/((1 - 2f) sqrt(m K))``; replace 3/2 by 2,
square.
"""

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


_margin = sp.Rational(1, 2) - faulty_fraction - local_error


election_error = Bound(
    name="election_error",
    quantity="probability that the elected sign of one coordinate is wrong, a fraction of workers lying",
    side=Side.UPPER,
    value=sp.exp(-2 * m * _margin**2),
    assuming=(sp.Lt(faulty_fraction + local_error, sp.Rational(1, 2)),),
    reference=Reference("sohn2020", "Bernoulli codes; constants derived here", arxiv="1910.06093"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.ELECTION}), Conclusion.VOTE_ERROR),
    examples=(
        Example(
            {"m": 200, "faulty_fraction": "0.25", "local_error": "0.15"},
            "0.0183156388887341802937",
            "exp(-4) from a table: 400 times .1 squared",
        ),
    ),
    latex_name=r"P[\mathrm{election\ wrong}]",
)
"""Election coding: how often the final vote is wrong when liars know every vote before they send theirs.

Setting.  n = m workers hold random sets of partitions of the data, drawn independently of each other, and send the
majority sign of the partitions they hold; e = ``local_error`` is the probability that such a vote is wrong, averaged
over the workers (any upper bound on it will do).  A fraction f of the workers, chosen once all votes are known, sends
the wrong sign; the server takes the majority, and a tie is wrong.

Derivation.  Liars replace right votes, so the result is wrong if and only if at most n/2 + f n of the n workers would
have voted right, that is, at least n (1/2 - f) would have voted wrong.  Their number is a sum of independent indicators
of mean at most n e in all, so by Hoeffding's inequality that has probability at most exp(-2 n (1/2 - f - e)^2).

The threshold is f + e < 1/2: beyond it the liars win in the limit of many workers.  ``exact_election_error`` is the
exact probability for given partition signs under the Bernoulli allocation of Sohn et al.; ``local_errors`` gives its e.
"""


def local_errors(*, workers: int, right: int, density: float) -> tuple[float, float]:
    """Return probability that a worker votes wrong whose own partition is right, and whose own partition is wrong.

    Parameters
    ----------
    workers : int
        n, as many as partitions.
    right : int
        Partitions of the right sign, 0 <= right <= n.
    density : float
        Probability that a worker holds any partition but its own, which it always holds.  A local tie is a fair coin.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """
    if workers < 1 or not 0 <= right <= workers:
        raise ValueError(f"need workers >= 1 and 0 <= right <= workers; got {right} of {workers}")
    if not 0 <= density <= 1:
        raise ValueError(f"density must lie in [0, 1]; got {density}")
    return (
        _wrong_majority(1, right - 1, workers - right, density) if right else 1.0,
        _wrong_majority(-1, right, workers - right - 1, density) if right < workers else 1.0,
    )


def exact_election_error(*, workers: int, faulty: int, right: int, density: float) -> float:
    """Return the exact probability that the election is wrong, over Bernoulli allocations and local coins.

    Parameters
    ----------
    faulty : int
        Liars, chosen when all votes are known, 0 <= faulty <= workers; the rest as for ``local_errors``.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """
    if not 0 <= faulty <= workers:
        raise ValueError(f"need 0 <= faulty <= workers; got {faulty} of {workers}")
    own_right, own_wrong = local_errors(workers=workers, right=right, density=density)
    wrong = np.convolve(_binomial(right, own_right), _binomial(workers - right, own_wrong))
    least = max(0, -((2 * faulty - workers) // 2))  # whole numbers from n/2 - faulty on
    return float(min(1.0, wrong[least:].sum()))


def _wrong_majority(own: int, right: int, wrong: int, density: float) -> float:
    """Return P[own + Bin(right) - Bin(wrong) < 0] plus half that of 0."""
    if right < 0 or wrong < 0:
        return 1.0
    law = np.convolve(_binomial(right, density), _binomial(wrong, density)[::-1])
    total = own + np.arange(-wrong, right + 1)
    return float(law[total < 0].sum() + law[total == 0].sum() / 2)


_full = (m + 1) / 2 + faulty_fraction * m


election_load = Bound(
    name="election_load",
    quantity="partitions a worker, on average, with which no f m liars change the elected sign",
    side=Side.UPPER,
    value=_full + (m - _full) / m,
    assuming=(sp.Le(_full, m),),
    reference=Reference("sohn2020", "deterministic codes; construction derived here", arxiv="1910.06093"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.SURE_ELECTION}), Conclusion.ELECTION_LOAD),
    examples=(
        Example({"m": 5, "faulty_fraction": Fraction(1, 5)}, "4.20000", "by hand: 4 full workers and one partition"),
        Example({"m": 3, "faulty_fraction": Fraction(1, 3)}, "3.00000", "full replication"),
    ),
    latex_name=r"r",
)
"""Election coding: how many partitions a worker must hold so that liars never change the result.

Setting.  n = m workers, n odd, each sends the majority sign of the partitions it holds; b = f n of them send anything.

Derivation.  Let (n+1)/2 + b workers hold all partitions and every other one a single partition.  The b liars leave
(n+1)/2 votes of full majorities, all of them right: a majority.  That is ((n+1)/2 + b) n + (n-1)/2 - b partitions
in all, divided by n workers.  At b = (n-1)/2 it is full replication, the only way (a strict subset errs on some signs).
The threshold is b <= (n-1)/2.
"""
