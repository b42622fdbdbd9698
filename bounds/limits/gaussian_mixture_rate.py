"""Shannon lower bound of a mixture of two zero-mean Gaussian components.

Shannon lower bound, for the information rate of one coordinate and so for any code: I(X; Y) >= h(X) - h(X - Y) >=
h(X) - log2(2 pi e D)/2, since the Gaussian law has the largest entropy at mean square D = nmse Var X.  With h =
log2(2 pi e Var X)/2 - loss it reads log2(1/nmse)/2 - loss.  Entropy is concave, so h >= w h_1 + (1 - w) h_2; with
variances r and 1 the variance is w r + 1 - w and loss <= log2(w r + 1 - w)/2 - w log2(r)/2.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.gaussian_mixture_loss import GaussianMixtureLoss
from ..symbols import mixture_weight, nmse, variance_ratio

gaussian_mixture_rate = Bound(
    name="gaussian_mixture_rate",
    quantity="bits a coordinate at mean square error nmse times the variance",
    side=Side.LOWER,
    value=-sp.log(nmse, 2) / 2 - GaussianMixtureLoss(mixture_weight, variance_ratio),
    reference=Reference("shannon1959", "lower bound, concavity of entropy"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.MIXTURE_SOURCE}), Conclusion.INFORMATION_RATE),
    examples=(
        Example(
            {"nmse": "0.0001", "mixture_weight": "0.9", "variance_ratio": "0.01"},
            "5.252920884319",
            "loss 1.390935305456045770517 with 40 digits",
        ),
    ),
    unit="bit",
    latex_name=r"R",
)
