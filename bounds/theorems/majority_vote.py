"""signSGD with majority vote, robust to a fraction of workers that negate their signs.

Setting.  As in ``signsgd`` with m workers that vote; noise of every coordinate unimodal and symmetric (mini-batches
then are too); a fraction f < 1/2 negates, without collusion; step size ``sqrt(gap/(|L|_1 K))``.

Derivation.  By ``vote_error`` with mini-batches of K calls, ``sum_j |g_j|`` P[wrong_j] <= ``|sigma|_1/((1 - 2f) sqrt(m
K))``::

    E F(x+) <= F(x) - eta |grad F|_1 + 2 eta |sigma|_1/((1 - 2f) sqrt(m K)) + eta^2 |L|_1/2.

Sum and insert eta: avg ``E|grad F|_1 <= (3/2) sqrt(gap |L|_1/K) + 2 |sigma|_1/((1 - 2f) sqrt(m K))``; replace 3/2 by 2,
square.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import L_1, K, faulty_fraction, gap, m, sigma_1

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
