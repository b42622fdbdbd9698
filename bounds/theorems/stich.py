"""Local SGD converges as fast as mini-batch SGD: strongly convex, falling learning rate (Stich).

Setting.  As in ``pasgd_iterations``, F mu-strongly convex, ``E|g|^2 <= G^2`` for every local gradient used, eta_t =
4/(mu (a + t)), t = 0..K-1, a > max(16 L/mu, tau); xhat averages xbar_t with weights w_t = (a + t)^2.

Derivation.  With g_i = grad F(x^i): strong convexity, ``|g_i|^2 <= 2 L (F(x^i) - F*)`` and Young's inequality give ::

    -2 <g_i, xbar - x*> <= -(F(x^i) - F*) - mu |x^i - x*|^2 + 2 L |x^i - xbar|^2,

and eta L <= 1/4 with Jensen's inequality the step ::

    E|xbar+ - x*|^2 <= (1 - eta mu)|xbar - x*|^2 - (eta/2)(F(xbar) - F*) + eta^2 sigma2/m + 2 eta L V.

EV <= tau^2 G^2 eta_s^2 at the last averaging s, and eta_s <= 2 eta_t since t - s <= tau <= a: V <= 4 tau^2 G^2 eta_t^2.
Multiply by w_t/eta_t: (1 - mu eta_t) w_t/eta_t <= mu (a + t - 1)^3/4, so distances telescope; sum w_t eta_t <=
2 K (K + 2a)/mu and sum w_t eta_t^2 = 16 K/mu^2.  Divide by half of S = sum w_t.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import R0, G, K, L, m, mu, shift, sigma2, tau

_weights = K * shift**2 + shift * K * (K - 1) + K * (K - 1) * (2 * K - 1) / 6

stich = Bound(
    name="stich",
    quantity="E F(weighted average of xbar) - inf F after K local steps, eta_t = 4/(mu (a + t))",
    side=Side.UPPER,
    value=(
        mu * shift**3 * R0**2 / 2 + 4 * K * (K + 2 * shift) * sigma2 / (mu * m) + 256 * K * G**2 * tau**2 * L / mu**2
    )
    / _weights,
    assuming=(sp.Gt(shift, 16 * L / mu), sp.Gt(shift, tau), sp.Le(mu, L)),
    reference=Reference("stich2019", "Theorem 2.2", arxiv="1805.09767"),
    status=Status.PROVED,
    setting=Setting(
        SAME_DATA | {Property.STRONGLY_CONVEX, Property.SECOND_MOMENT, Property.FALLING_STEP_LOCAL_SGD},
        Conclusion.GAP_OF_WEIGHTED_AVERAGE,
    ),
    examples=(
        Example(
            {"R0": 1, "L": 1, "mu": 1, "sigma2": 1, "G": 1, "tau": 2, "m": 4, "K": 2, "shift": 20},
            "7.29132",
            "by hand: (4000 + 84 + 2048)/(400 + 441) = 6132/841",
        ),
    ),
    latex_name=r"E F(\hat x_K)-F^*",
)
