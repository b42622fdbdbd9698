"""Distributed compressed gradient descent: linear convergence to a ball set by the differences between workers.

Setting.  x+ = x - eta mean C_i(grad F_i(x)) with unbiased C_i of constant omega, independent over the m workers; every
F_i convex and L-smooth, F mu-strongly convex; sigma2_opt is the mean over workers of ``|grad F_i(x*)|^2``.

Derivation.  ``E|mean C_i(grad F_i)|^2 <= |grad F|^2 + (omega/m) mean |grad F_i|^2``.  Let delta = F(x) - F*; then
``|grad F|^2 <= 2 L delta`` and ``mean |grad F_i|^2 <= 4 L delta + 2`` sigma2_opt.  With <grad F, ``x - x*> >= delta +
mu/2 |x - x*|^2`` the coefficient of delta is 2 eta (eta L (1 + 2 omega/m) - 1) <= 0 and ::

    E|x+ - x*|^2 <= (1 - eta mu)|x - x*|^2 + 2 eta^2 (omega/m) sigma2_opt.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.geometric_decay import GeometricDecay
from ..symbols import R0, K, L, eta, m, mu, omega, sigma2_opt

dcgd = Bound(
    name="dcgd",
    quantity="E|x - x*|^2 after K steps of compressed gradient descent, strongly convex",
    side=Side.UPPER,
    value=GeometricDecay(eta, mu, K) * R0**2 + 2 * eta * omega * sigma2_opt / (m * mu),
    assuming=(sp.Le(eta * L * (1 + 2 * omega / m), 1), sp.Le(mu, L)),
    reference=Reference("khirirat2018", "strongly convex case", arxiv="1806.06573"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_CONVEX,
                Property.EVERY_SMOOTH,
                Property.STRONGLY_CONVEX,
                Property.FULL_GRADIENTS,
                Property.UNBIASED,
                Property.INDEPENDENT_MESSAGES,
                Property.COMPRESSED_GRADIENTS,
            }
        ),
        Conclusion.DISTANCE,
    ),
    examples=(
        Example(
            {"R0": 2, "eta": "0.1", "mu": 1, "L": 2, "omega": 4, "m": 4, "K": 2, "sigma2_opt": 3},
            "3.84000",
            "by hand: .81 * 4 + .2 * 4 * 3/4",
        ),
    ),
    latex_name=r"E\|x_K-x^*\|^2",
)
