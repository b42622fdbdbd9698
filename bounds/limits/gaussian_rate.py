"""The rate-distortion function of one Gaussian coordinate.

Converse: ``gaussian_bits`` at d = 1.  Attained by the backward channel X = Y + Z with independent Gaussians of
variances (1 - nmse) and nmse times Var X, for which I(X; Y) = log2(1/nmse)/2.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import nmse

gaussian_rate = Bound(
    name="gaussian_rate",
    quantity="information rate of a Gaussian coordinate, bits",
    side=Side.TIGHT,
    value=-sp.log(nmse, 2) / 2,
    reference=Reference("shannon1959", "Gaussian source"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.GAUSSIAN_SOURCE}), Conclusion.INFORMATION_RATE),
    examples=(
        Example({"nmse": "0.25"}, "1.0000000000", "by hand"),
        Example({"nmse": "0.1"}, "1.660964047443681", "log2(10)/2 from a table"),
    ),
    unit="bit",
    latex_name=r"R(\Delta)",
)
