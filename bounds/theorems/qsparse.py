"""Qsparse-local-SGD: local steps, a contractive compressor and error memory together.

Setting.  As in ``pasgd_iterations`` with ``E|g|^2 <= G^2`` for every local gradient, any L-smooth F; every tau steps
each worker sends the compressed sum of its memory and its change, ``E|C(v) - v|^2 <= alpha |v|^2``, and keeps the
rest.  The average runs over workers and local steps of ``E|grad F(x^i)|^2``.

Derivation.  The virtual point y moves by -eta mean g; ``<grad F(y), g_i> >= |g_i|^2/2 - L^2|y - x^i|^2/2`` and eta L <=
1/2 give, after summation, ::

    avg E|grad F(x^i)|^2 <= 4 gap/(eta K) + 2 eta L sigma2/m + 2 L^2 avg E|y - x^i|^2.

``|y - x^i|^2 <= 2 |y - xbar|^2 + 2 |xbar - x^i|^2``; the second is at most eta^2 tau^2 G^2, the first is the mean
memory: by Minkowski's inequality its root grows as sqrt(alpha)(. + eta tau G), so ``E|memory|^2 <= alpha/(1 -
sqrt(alpha))^2 eta^2 tau^2 G^2 <= 4 alpha/(1 - alpha)^2 eta^2 tau^2 G^2``.  With gamma = 1 - alpha the published
constants 4 (1 - gamma^2)/gamma^2 and 8, and 4 before the variance, are larger.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import G, K, L, alpha, eta, gap, m, sigma2, tau

_gamma = 1 - alpha

qsparse = Bound(
    name="qsparse",
    quantity="average over workers and K local steps of E|grad F(x^i)|^2, compressed with memory",
    side=Side.UPPER,
    value=4 * gap / (eta * K)
    + 4 * eta * L * sigma2 / m
    + 8 * (4 * (1 - _gamma**2) / _gamma**2 + 1) * eta**2 * L**2 * G**2 * tau**2,
    assuming=(sp.Le(eta * L, sp.Rational(1, 2)),),
    reference=Reference("basu2019", "Theorem 1", arxiv="1906.02367"),
    status=Status.PROVED,
    setting=Setting(
        SAME_DATA | {Property.SECOND_MOMENT, Property.CONTRACTIVE, Property.MEMORY_LOCAL_SGD}, Conclusion.LOCAL_GRADIENT
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "G": 1, "tau": 2, "m": 4, "K": 100, "alpha": "0.5"},
            "4.6600",
            "by hand: .4 + .1 + 8 * 13 * .04",
        ),
    ),
    note="The term in G^2 tau^2 always prefers no compression: it cannot justify a ratio.",
    latex_name=r"\frac1{mK}\sum_{i,k} E\|\nabla F(x_k^i)\|^2",
)
