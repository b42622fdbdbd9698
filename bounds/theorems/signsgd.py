"""signSGD: convergence in the l1 norm with batches that grow with the run.

Setting.  ``|F(y) - F(x) - <grad F(x), y - x>| <= (1/2) sum_j L_j (y_j - x_j)^2``; coordinate j of one gradient call has
standard deviation sigma_j; K steps of size ``1/sqrt(|L|_1 K)`` with mini-batches of K calls (N = K^2 calls in all).

Derivation.  A sign is wrong with probability at most ``E|ghat_j - g_j|/|g_j| <= sigma_j/(sqrt(K)|g_j|)``, so ::

    E F(x+) <= F(x) - eta |grad F|_1 + 2 eta |sigma|_1/sqrt(K) + eta^2 |L|_1/2.

Sum, insert eta, square.  Convergence needs growing batches: the middle term does not shrink with eta.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import L_1, K, gap, sigma_1

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
