"""QSGD: parallel SGD with stochastically rounded gradients, convex.

Setting.  x+ = x - eta mean Q(g_i), Q with s levels and L2 normalisation, m workers, F convex and L-smooth.

Derivation.  Rounding one coordinate to multiples of ``|v|/s`` has variance at most ``(|v|/s)^2 min(1/4, s|v_j|/|v|)``;
summed, omega = min(d/s^2, sqrt(d)/s) is valid.  ``E|mean Q(g_i)|^2 <= (1 + omega/m)|grad F|^2 + (1 + omega) sigma2/m``,
and -2 <grad F, ``x - x*> <= -2 (F - F*) - |grad F|^2/L`` absorbs the first part when eta L (1 + omega/m) <= 1.  Sum the
recursion of ``|x - x*|^2``.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import R0, K, L, d, eta, levels, m, sigma2

_omega = sp.Min(d / levels**2, sp.sqrt(d) / levels)

qsgd = Bound(
    name="qsgd",
    quantity="average over K steps of E F(x) - inf F, QSGD with s levels, convex",
    side=Side.UPPER,
    value=R0**2 / (2 * eta * K) + eta * (1 + _omega) * sigma2 / (2 * m),
    assuming=(sp.Le(eta * L * (1 + _omega / m), 1),),
    reference=Reference("alistarh2017", "Theorem 3.4; constants derived here", arxiv="1610.02132"),
    status=Status.PROVED,
    setting=Setting(
        SAME_DATA | {Property.CONVEX, Property.MINIMISER, Property.INDEPENDENT_MESSAGES, Property.QUANTISED_GRADIENTS},
        Conclusion.GAP,
    ),
    examples=(
        Example(
            {"R0": 2, "eta": "0.1", "K": 100, "L": 1, "d": 100, "levels": 2, "sigma2": 1, "m": 4},
            "0.275000",
            "by hand: omega = min(25, 5); .2 + .1 * 6/8",
        ),
    ),
    latex_name=r"\frac1K\sum_k E F(x_k)-F^*",
)
