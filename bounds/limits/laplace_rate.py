"""Shannon lower bound of a Laplace coordinate.

Shannon lower bound, for the information rate of one coordinate and so for any code: I(X; Y) >= h(X) - h(X - Y)
>= h(X) - log2(2 pi e D)/2, since the Gaussian law has the largest entropy at mean square D = nmse Var X.  With
h = log2(2 pi e Var X)/2 - loss it reads log2(1/nmse)/2 - loss.  Here h = log2(2 e s), Var X = 2 s^2,
and loss = log2(pi/e)/2.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import nmse

laplace_rate = Bound(
    name="laplace_rate",
    quantity="bits a coordinate at mean square error nmse times the variance",
    side=Side.LOWER,
    value=-sp.log(nmse, 2) / 2 - sp.log(sp.pi / sp.E, 2) / 2,
    reference=Reference("shannon1959", "lower bound"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.LAPLACE_SOURCE}), Conclusion.INFORMATION_RATE),
    examples=(Example({"nmse": "0.01"}, "3.21752755060", "log2(10) = 3.321928094887 less .104400544288 by hand"),),
    unit="bit",
    latex_name=r"R",
)
