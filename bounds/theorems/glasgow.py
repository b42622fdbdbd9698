"""Sharp bounds for federated averaging: local SGD itself cannot beat its known upper bound, up to a constant."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import R0, L, m, rounds, sigma2, tau

glasgow = Bound(
    name="glasgow",
    quantity="E F - inf F of local SGD with tuned step size on the worst convex homogeneous problem, up to a constant",
    side=Side.LOWER,
    value=L * R0**2 / (tau * rounds)
    + sp.Min(L * R0**2, sp.sqrt(sigma2) * R0 / sp.sqrt(m * tau * rounds))
    + sp.Min(L * R0**2, sp.cbrt(L * sigma2 * R0**4) / (sp.cbrt(tau) * rounds ** sp.Rational(2, 3))),
    assuming=(sp.Ge(tau, 2), sp.Ge(m, 2)),
    reference=Reference("glasgow2022", "homogeneous convex case", arxiv="2111.03741"),
    status=Status.RECALLED,
    setting=Setting(
        frozenset({Property.HARDEST_CONVEX, Property.LOCAL_SGD}),
        Conclusion.GAP_OF_OUTPUT,
        known_up_to="an absolute constant factor",
    ),
    examples=(
        Example(
            {"L": 1, "R0": 1, "sigma2": 1, "m": 2, "tau": 8, "rounds": 64},
            "0.064453125",
            "by hand: 1/512 + 1/32 + 1/32",
        ),
    ),
    note="Recalled, and known up to an absolute constant only.  At tau = 1 and at m = 1 the last term would contradict "
    "the proved pasgd_gap.  Third-order smoothness of F improves the rate.",
)
