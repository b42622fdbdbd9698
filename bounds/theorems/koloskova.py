"""A unified theory of decentralised SGD, for periodic full averaging: the number of steps up to a constant."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..symbols import L, epsilon, gap, heterogeneity, m, sigma2, tau

koloskova = Bound(
    name="koloskova",
    quantity="steps until the average of E|grad F(xbar)|^2 is at most epsilon, up to a constant",
    side=Side.UPPER,
    value=L
    * gap
    * (
        sigma2 / (m * epsilon**2)
        + (heterogeneity * tau + sp.sqrt(sigma2 * tau)) / epsilon ** sp.Rational(3, 2)
        + tau / epsilon
    ),
    reference=Reference("koloskova2020", "non-convex case, all-reduce", arxiv="2003.10422"),
    status=Status.RECALLED,
    examples=(
        Example(
            {"L": 1, "gap": 1, "sigma2": 1, "m": 4, "epsilon": "0.25", "tau": 4, "heterogeneity": "0.5"},
            "52.0000",
            "by hand: 4 + (2 + 2) * 8 + 16",
        ),
    ),
    unit="step",
    note="Recalled, and known up to an absolute constant only: compare growth, not values.",
)
