"""ProxSkip (Scaffnew): local steps with control variates, communication skipped with probability 1 - p.

Setting.  Every F_i mu-strongly convex and L-smooth, data may differ; steps xhat_i = x_i - eta (g_i - h_i); with
probability p the x_i become the mean of xhat_i - (eta/p) h_i, otherwise xhat_i; then h_i += (p/eta)(x_i - xhat_i).  Psi
= mean over workers of ``|x_i - x*|^2 + (eta/p)^2 |h_i - grad F_i(x*)|^2``; noise of variance sigma2 is allowed.

Derivation.  Averaging is a projection, hence firmly non-expansive: ``|Pu - Pv|^2 + |(u - Pu) - (v - Pv)|^2 <= |u -
v|^2``.  At a communication Psi is the left side for u = xhat - (eta/p) h, v = x* - (eta/p) h*, so ::

    E Psi+ <= |xhat - x*|^2 - 2 eta <xhat - x*, h - h*> + (eta/p)^2 |h - h*|^2.

With w = x - eta g, w* = x* - eta h*: xhat - x* = w - w* + eta (h - h*); the cross terms cancel and ::

    E Psi+ <= E|w - w*|^2 + (1 - p^2)(eta/p)^2 |h - h*|^2,  E|w - w*|^2 <= (1 - eta mu)|x - x*|^2 + eta^2 sigma2.

Unroll with the slower of the two factors.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.geometric_decay import GeometricDecay
from ..symbols import K, L, eta, mu, psi0, sigma2
from ..symbols import sync_probability as p

_rate = sp.Min(eta * mu, p**2)

proxskip = Bound(
    name="proxskip",
    quantity="E of the Lyapunov function of ProxSkip after K local steps",
    side=Side.UPPER,
    value=sp.Max(GeometricDecay(eta, mu, K), GeometricDecay(p, p, K)) * psi0 + eta**2 * sigma2 / _rate,
    assuming=(sp.Le(eta * L, 1), sp.Le(mu, L)),
    reference=Reference("mishchenko2022", "Theorem 3.6 and its stochastic form", arxiv="2202.09357"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_STRONGLY_CONVEX,
                Property.EVERY_SMOOTH,
                Property.UNBIASED_GRADIENTS,
                Property.BOUNDED_VARIANCE,
                Property.PROXSKIP,
            }
        ),
        Conclusion.LYAPUNOV,
    ),
    examples=(
        Example(
            {"eta": "0.5", "mu": "0.5", "L": 1, "sync_probability": "0.5", "K": 2, "psi0": 16, "sigma2": 2},
            "11.00000",
            "by hand: (3/4)^2 * 16 + .5/.25",
        ),
    ),
    latex_name=r"E\Psi_K",
)
