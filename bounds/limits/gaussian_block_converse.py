"""Fixed-length codes at finite blocklength: the volume converse for a Gaussian vector.

Derivation.  X ~ N(0, s^2 I_d); a b-bit code errs, ``|X - C(X)|^2 > nmse s^2 d``, with probability at most ``miss``.
The set of good x lies in 2^b balls of radius sqrt(nmse s^2 d) and has probability at least 1 - miss.  Among sets of
that probability a centred ball has the least volume, of squared radius s^2 q with P(chi^2_d > q) = miss; comparing
volumes, 2^b >= (q/(d nmse))^(d/2).  A random key only averages such codes.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.normal import ChiSquareLog2Ratio
from ..symbols import d, miss, nmse

gaussian_block_converse = Bound(
    name="gaussian_block_converse",
    quantity="bits of a block code whose distortion exceeds nmse with probability at most miss",
    side=Side.LOWER,
    value=d / 2 * (ChiSquareLog2Ratio(d, miss) - sp.log(nmse, 2)),
    reference=Reference("kostina2012", "converse by volumes", arxiv="1102.3944"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.GAUSSIAN_SOURCE}), Conclusion.BLOCK_LENGTH),
    examples=(
        Example(
            {"d": 100, "miss": "0.01", "nmse": "0.25"},
            "122.07774512987111562287432",
            "incomplete gamma root with 40 digits",
        ),
        Example(
            {"d": 1000, "miss": "0.01", "nmse": "0.25"},
            "1073.3074067594860235206582",
            "incomplete gamma root with 40 digits",
        ),
    ),
    unit="bit",
    latex_name=r"b",
)
