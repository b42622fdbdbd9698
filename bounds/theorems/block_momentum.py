"""Local-update SGD with momentum between rounds (block momentum), for a non-convex problem.

Setting.  As in ``pasgd_iterations``; round j starts all workers at x_j, G_j is the sum of the tau mean gradients of
the round, u_j = beta u_{j-1} + G_j, u_{-1} = 0, x_{j+1} = x_j - eta u_j.  Write e = eta/(1 - beta).

Derivation.  z_j = x_j + beta/(1 - beta) (x_j - x_{j-1}) moves by -e G_j, so the points y_{j,k} = z_j - e (sum of the
first k mean gradients) make plain steps of size e.  Descend along y, write <grad F(y), g_i> as <grad F(xbar), g_i> +
<grad F(y) - grad F(xbar), g_i>, and bound the second by ``L^2|y - xbar|^2 + |mean g_i|^2/4``::

    avg E|grad F(xbar)|^2 <= 2 gap/(e K) + e L sigma2/m + L^2 avg EV + 2 L^2 avg EW - (1/2 - e L) avg EG,

with ``W = |y - xbar|^2``.  V is that of ``pasgd_iterations``.  For W, y - xbar = -beta e (u_{j-1} + sum of the first k
mean gradients): split into noise (orthogonal: variance (sigma2/m)(tau/(1 - beta^2) + k)) and gradients (weighted
Cauchy-Schwarz; collect what each G receives from its own and later rounds), ::

    avg EW <= 2 beta^2 e^2 [(sigma2/m)(tau/(1 - beta^2) + (tau - 1)/2) + A avg EG],
    A = (tau^2/(1 - beta) + tau (tau - 1)/2) (2 - beta)/(1 - beta).

G cancels when e L + eta^2 L^2 tau (tau - 1) + 4 beta^2 e^2 L^2 A <= 1/2.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import K, L, eta, gap, m, sigma2, tau
from ..symbols import block_momentum_factor as beta

_effective = eta / (1 - beta)
_carried = (tau**2 / (1 - beta) + tau * (tau - 1) / 2) * (2 - beta) / (1 - beta)
_spread = tau / ((1 - beta) * (1 + beta)) + (tau - 1) / 2

block_momentum = Bound(
    name="block_momentum",
    quantity="average over K local steps of E|grad F(xbar)|^2, momentum between rounds",
    side=Side.UPPER,
    value=2 * gap / (_effective * K)
    + _effective * L * sigma2 / m
    + eta**2 * L**2 * sigma2 * (tau - 1)
    + 4 * beta**2 * _effective**2 * L**2 * sigma2 / m * _spread,
    assuming=(
        sp.Le(
            _effective * L + eta**2 * L**2 * tau * (tau - 1) + 4 * beta**2 * _effective**2 * L**2 * _carried,
            sp.Rational(1, 2),
        ),
    ),
    reference=Reference("chen2016", "block momentum; the rate is derived here"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.MOMENTUM_LOCAL_SGD}, Conclusion.GRADIENT),
    examples=(
        Example(
            {
                "gap": 1,
                "eta": "0.05",
                "L": 1,
                "sigma2": 3,
                "tau": 2,
                "m": 4,
                "K": 100,
                "block_momentum_factor": "0.5",
            },
            "0.306250",
            "by hand: e = .1; .2 + .075 + .0075 + 4 * .25 * .01 * .75 * (8/3 + 1/2)",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
