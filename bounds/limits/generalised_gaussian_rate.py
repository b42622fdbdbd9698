"""Shannon lower bound of a generalised Gaussian coordinate with density proportional to ``exp(-|x/s|^shape)``.

Shannon lower bound, for the information rate of one coordinate and so for any code: I(X; Y) >= h(X) - h(X - Y)
>= h(X) - log2(2 pi e D)/2, since the Gaussian law has the largest entropy at mean square D = nmse Var X.  With
h = log2(2 pi e Var X)/2 - loss it reads log2(1/nmse)/2 - loss.  Here
h = log2(2 s Gamma(1/shape)/shape) + log2(e)/shape and Var X = s^2 Gamma(3/shape)/Gamma(1/shape).
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.generalised_gaussian_loss import GeneralisedGaussianLoss
from ..symbols import nmse, shape

generalised_gaussian_rate = Bound(
    name="generalised_gaussian_rate",
    quantity="bits a coordinate at mean square error nmse times the variance",
    side=Side.LOWER,
    value=-sp.log(nmse, 2) / 2 - GeneralisedGaussianLoss(shape),
    reference=Reference("shannon1959", "lower bound"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.GENERALISED_GAUSSIAN_SOURCE}), Conclusion.INFORMATION_RATE),
    examples=(
        Example(
            {"nmse": "0.0625", "shape": "0.5"}, "1.384849198793026447356", "loss .61515080120697355 with 40 digits"
        ),
        Example({"nmse": "0.25", "shape": 2}, "1.0000000000", "the Gaussian case"),
        Example({"nmse": "0.01", "shape": 1}, "3.21752755060", "the Laplace case"),
    ),
    unit="bit",
    latex_name=r"R",
)
