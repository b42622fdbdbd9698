"""Cooperative SGD: local steps with gossip, every averaging replaced by one multiplication with a mixing matrix.

Setting.  As in ``pasgd_iterations``, but every tau steps the matrix of iterates is multiplied by W, symmetric and
doubly stochastic, whose eigenvalues other than 1 have modulus at most zeta.  zeta = 0 is full averaging: Theorem 1.

Derivation.  W leaves xbar unchanged, so (a) of ``pasgd_iterations`` stands.  For V, a gradient that has passed j
mixings reaches the deviations through W^j - J, J the averaging matrix, of spectral norm zeta^j.
Noise (orthogonal): EV_noise <= sigma2 (r + tau sum_{j>=1} zeta^(2j)), r steps after a mixing; twice its mean over r is
::

    sigma2 [(tau - 1) + 2 tau zeta^2/(1 - zeta^2)] = sigma2 [tau (1 + zeta^2)/(1 - zeta^2) - 1].

Gradients (weighted Cauchy-Schwarz, weights zeta^j): at most (r + tau zeta/(1 - zeta)) sum_s zeta^j(s) G_s; collecting
what one G_s sends to its own and to later rounds, twice the total is at most ::

    tau^2/(1 - zeta) [(1 + 2 zeta)(tau - 1)/tau + 2 zeta^2/(1 - zeta)].

G cancels under the stated condition, which is implied by the published one.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import K, L, eta, gap, m, sigma2, tau, zeta

_carried = tau / (1 - zeta) * ((1 + 2 * zeta) * (tau - 1) + 2 * zeta**2 * tau / (1 - zeta))

cooperative = Bound(
    name="cooperative",
    quantity="average over K local steps of E|grad F(xbar)|^2, mixing every tau steps",
    side=Side.UPPER,
    value=2 * gap / (eta * K)
    + eta * L * sigma2 / m
    + eta**2 * L**2 * sigma2 * ((1 + zeta**2) / ((1 - zeta) * (1 + zeta)) * tau - 1),
    assuming=(sp.Le(eta * L + eta**2 * L**2 * _carried, 1),),
    reference=Reference("wang2021", "Theorem 1", arxiv="1808.07576"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.MIXED_LOCAL_SGD}, Conclusion.GRADIENT),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 3, "tau": 2, "m": 4, "K": 100, "zeta": "0.5"},
            "0.34500",
            "by hand: .2 + .075 + .03 * (5/3 * 2 - 1)",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
