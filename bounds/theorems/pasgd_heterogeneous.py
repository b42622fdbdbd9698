"""Theorem 1 when the workers' data differ: a term in the squared period that no number of workers removes.

Setting.  Worker i samples its own L-smooth F_i, F is their mean; ``(1/m) sum_i |grad F_i - grad F|^2`` <= zeta^2 at the
mean iterates (``heterogeneity``); noise as in ``pasgd_iterations``.

Derivation.  Let gbar be the mean of grad F_i(x^i).  As there, with ``|grad F(xbar) - gbar|^2 <= L^2 V`` and eta L <= 1,
::

    avg E|grad F(xbar)|^2 <= 2 gap/(eta K) + eta L sigma2/m + L^2 avg EV.

The spread of the gradients around their mean is at most their spread around grad F(xbar), hence <= 2 L^2 V + 2 zeta^2::

    EV_r <= 2 eta^2 r [(1 - 1/m) sigma2 + sum_{s<r} (2 L^2 EV_s + 2 zeta^2)].

Summed over a round, 4 eta^2 L^2 tau (tau - 1) <= 1 lets half of sum V absorb the V on the right::

    avg EV <= 2 eta^2 (tau - 1) [(1 - 1/m) sigma2 + (2/3)(2 tau - 1) zeta^2].
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import NOISE, Setting
from ..symbols import K, L, eta, gap, heterogeneity, m, sigma2, tau

_spread = (1 - 1 / m) * sigma2 + sp.Rational(2, 3) * (2 * tau - 1) * heterogeneity**2

pasgd_heterogeneous = Bound(
    name="pasgd_heterogeneous",
    quantity="average over K local steps of E|grad F(xbar)|^2, different data at every worker",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * sigma2 / m + 2 * eta**2 * L**2 * (tau - 1) * _spread,
    assuming=(sp.Le(eta * L, 1), sp.Le(4 * eta**2 * L**2 * tau * (tau - 1), 1)),
    reference=Reference("ratedist", "wang2018, Theorem 1, for different data; order of koloskova2020"),
    status=Status.PROVED,
    setting=Setting(
        NOISE | {Property.EVERY_SMOOTH, Property.BOUNDED_BELOW, Property.BOUNDED_HETEROGENEITY, Property.LOCAL_SGD},
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100, "heterogeneity": "0.5"},
            "0.405000",
            "by hand: .2 + .025 + .08 * (.75 + 6 * .25)",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
