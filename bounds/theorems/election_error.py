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

from __future__ import annotations

import numpy as np
import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import faulty_fraction, local_error, m

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


def _binomial(n: int, p: float) -> np.ndarray:
    """Return the probabilities of 0..n successes, by repeated convolution: every term positive, no cancellation."""
    law = np.ones(1)
    for _ in range(n):
        law = np.convolve(law, [1 - p, p])
    return law
