"""Local steps, a contractive compressor and error memory: the sharp form of what Qsparse-local-SGD states.

Setting and quantity as in ``qsparse``, for any eta L < 1.

Derivation.  The virtual point y moves by -eta mean g; ``<grad F(y), g_i> >= |g_i|^2/2 - L^2 |y - x^i|^2/2`` for the
local gradients g_i = grad F(x^i) gives, after summation, ::

    (1 - eta L) avg E|g_i|^2 <= 2 gap/(eta K) + eta L sigma2/m + L^2 avg E|y - x^i|^2.

In the norm sqrt(avg ``E|.|^2``): ``|y - xbar|`` is at most the memory, sqrt(alpha)/(1 - sqrt(alpha)) eta tau G by the
argument of ``ef_memory`` with tau steps in the place of one, and ``|xbar - x^i| <= eta tau G``.  Their sum is eta tau
G/(1 - sqrt(alpha)).  For small eta L this is half of the first two terms of ``qsparse`` and about an eighth of its
last.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..special.fused_difference import FusedDifference
from ..symbols import G, K, L, alpha, eta, gap, m, sigma2, tau

pasgd_memory = Bound(
    name="pasgd_memory",
    quantity="average over workers and K local steps of E|grad F(x^i)|^2, compressed with memory",
    side=Side.UPPER,
    value=(2 * gap / (eta * K) + eta * L * sigma2 / m + (eta * L * tau * G * (1 + sp.sqrt(alpha)) / (1 - alpha)) ** 2)
    / FusedDifference(1, eta, L),
    assuming=(sp.Lt(eta * L, 1),),
    reference=Reference("ratedist", "sharp form of basu2019, Theorem 1"),
    status=Status.PROVED,
    setting=Setting(
        SAME_DATA | {Property.SECOND_MOMENT, Property.CONTRACTIVE, Property.MEMORY_LOCAL_SGD}, Conclusion.LOCAL_GRADIENT
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.2", "L": 1, "sigma2": 1, "G": 1, "tau": 2, "m": 4, "K": 100, "alpha": "0.25"},
            "0.987500",
            "by hand: (.1 + .05 + (.4/.5)^2)/.8",
        ),
    ),
    latex_name=r"\frac1{mK}\sum_{i,k} E\|\nabla F(x_k^i)\|^2",
)
