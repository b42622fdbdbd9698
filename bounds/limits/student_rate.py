"""Shannon lower bound of a Student coordinate.

Shannon lower bound, for the information rate of one coordinate and so for any code: I(X; Y) >= h(X) - h(X - Y)
>= h(X) - log2(2 pi e D)/2, since the Gaussian law has the largest entropy at mean square D = nmse Var X.  With
h = log2(2 pi e Var X)/2 - loss it reads log2(1/nmse)/2 - loss.  Here, in nats with scale s,
h = (v+1)/2 [psi((v+1)/2) - psi(v/2)] + ln(sqrt(v) B(v/2, 1/2)) + ln s, Var X = s^2 v/(v - 2), v = dof > 2.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.student_loss import StudentLoss
from ..symbols import dof, nmse

student_rate = Bound(
    name="student_rate",
    quantity="bits a coordinate at mean square error nmse times the variance",
    side=Side.LOWER,
    value=-sp.log(nmse, 2) / 2 - StudentLoss(dof),
    reference=Reference("shannon1959", "lower bound"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.STUDENT_SOURCE}), Conclusion.INFORMATION_RATE),
    examples=(
        Example({"nmse": "0.0625", "dof": 3}, "1.719010462513750880621945", "loss .28098953748624912 with 40 digits"),
        Example({"nmse": "0.0625", "dof": 5}, "1.9324116522620400426", "loss .06758834773795996 with 40 digits"),
    ),
    unit="bit",
    latex_name=r"R",
)
