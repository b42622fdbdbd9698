"""Lower bound on the total number of bits that m workers must exchange to minimise a sum of quadratics."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.fused_difference import FusedDifference
from ..special.log2_one_plus import Log2OnePlus
from ..symbols import d, epsilon, m

lower_total_bits = Bound(
    name="lower_total_bits",
    quantity="bits exchanged by all workers until F - inf F <= epsilon on the unit cube, up to a constant",
    side=Side.LOWER,
    value=m * d * Log2OnePlus(FusedDifference(d, m, epsilon) / (m * epsilon)),
    assuming=(sp.Gt(d, m * epsilon),),
    reference=Reference("korhonen2021", "randomised protocols", arxiv="2010.08222"),
    status=Status.RECALLED,
    setting=Setting(
        frozenset({Property.QUADRATIC_SUM}), Conclusion.ALL_WORKERS_BITS, known_up_to="an absolute constant factor"
    ),
    examples=(Example({"m": 4, "d": 1024, "epsilon": "0.25"}, "40960.0", "by hand: 4 * 1024 * log2(1024)"),),
    unit="bit",
    note="Recalled, and known up to an absolute constant only.",
)
