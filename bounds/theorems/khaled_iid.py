"""Local SGD on identical data, convex: the bound of Khaled, Mishchenko and Richtarik.

Setting.  As in ``pasgd_gap`` with eta L <= 1/4.

Derivation.  With mu = 0 the one-step inequality proved in ``stich`` reads ::

    E|xbar+ - x*|^2 <= |xbar - x*|^2 - (eta/2)(F(xbar) - F*) + eta^2 sigma2/m + 2 eta L V,

and EV <= eta^2 sigma2 (tau - 1) by ``pasgd_convex``.  Sum and divide by eta K/2.
Term by term 4 to 16 times above ``pasgd_gap``.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import R0, K, L, eta, m, sigma2, tau

khaled_iid = Bound(
    name="khaled_iid",
    quantity="E F(mean over K local steps of xbar) - inf F, F convex, identical data",
    side=Side.UPPER,
    value=2 * R0**2 / (eta * K) + 2 * eta * sigma2 / m + 4 * eta**2 * L * sigma2 * (tau - 1),
    assuming=(sp.Le(eta * L, sp.Rational(1, 4)),),
    reference=Reference("khaled2020", "identical data, convex", arxiv="1909.04746"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.CONVEX, Property.MINIMISER, Property.LOCAL_SGD}, Conclusion.GAP_OF_AVERAGE),
    examples=(
        Example(
            {
                "R0": "3.16227766016837933199889354443",
                "eta": "0.05",
                "L": 1,
                "sigma2": 4,
                "tau": 16,
                "m": 16,
                "K": 4000,
            },
            "0.72500",
            "published check value on the reference quadratic, |x_1 - x*|^2 = 10: .1 + .025 + .6",
        ),
    ),
    latex_name=r"E F(\hat x_K)-F^*",
)
