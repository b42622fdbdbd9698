"""Fixed-length codes at finite blocklength: an achievable probability of exceeding the distortion.

Derivation.  Draw M = floor(2^b) codewords uniformly on the sphere of radius r s sqrt(d): a fraction of a codeword does
not exist.  Given ``|x|^2 = z s^2 d`` each is within the allowed distance independently with probability p(z), so all
fail with probability (1 - p)^M <= exp(-M p); average over z.  Some codebook is at least as good as the average, and any
r is valid.  Inverting the value in b gives a length that suffices; ``gaussian_block_converse`` gives one that is
necessary.
"""

import sympy as sp

from ..bound import Bound, Example, Free, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.random_code_miss import RandomCodeMiss
from ..symbols import bits, d, nmse, radius

gaussian_block_miss = Bound(
    name="gaussian_block_miss",
    quantity="probability that the best b-bit block code exceeds the distortion nmse on a Gaussian vector",
    side=Side.UPPER,
    value=RandomCodeMiss(bits, d, nmse, radius),
    assuming=(sp.Ge(d, 2),),
    reference=Reference("kostina2012", "random coding on a sphere", arxiv="1102.3944"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.GAUSSIAN_SOURCE, Property.RANDOM_BLOCK_CODE}), Conclusion.BLOCK_MISS),
    examples=(
        Example(
            {"bits": 125, "d": 100, "nmse": "0.25", "radius": "0.87"},
            "0.04382329068",
            "mpmath quadrature of the incomplete beta function",
        ),
    ),
    free=Free(radius, sp.Integer(0), sp.Integer(2)),
    note="The value is not certifiable: it is an integral over an integral, evaluated in float64.",
    latex_name=r"\varepsilon",
)
