"""Expected bits that suffice for an unbiased operator with shared randomness: scaled Spherical Compression.

Derivation.  Sender and receiver draw unit vectors v_1, v_2, ... from the shared key and the sender names the first one
whose cosine t to x is at least sqrt(1 - a).  That vector is uniform on a cap with mean cosine m(a, d), so ``|x| v/m``
is unbiased with second moment ``|x|^2/m^2``: any a with m(a, d)^2 >= 1/(1 + omega) gives a member of U(omega).  Its
index is geometric with success probability P(a, d); the best Golomb code has mean at most -log2 P + 1.4755.  That
constant is the maximum of a fine scan of the exact mean over -log2 P in (0, 60], beyond which the mean repeats with
period 1; -log2 P + log2(e) + 1 is proved (entropy of the geometric law, and the code is a Huffman code).  Here a is
``alpha``; 1 - m^2 is a/3 or more for every d >= 2, so a is never above 3 omega/(1 + omega).
"""

import sympy as sp

from ..bound import Bound, Example, Free, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.cap_probability import CapMeanCosine, CapSpread, neg_log2_cap_of
from ..symbols import alpha, d, omega

shared_unbiased_bits = Bound(
    name="shared_unbiased_bits",
    quantity="expected bits about the direction that suffice for an unbiased operator with shared randomness",
    side=Side.UPPER,
    value=neg_log2_cap_of(alpha, d) + sp.Rational(14755, 10000),
    assuming=(sp.Le(CapSpread(alpha, 1 - alpha, d), omega * CapMeanCosine(alpha, 1 - alpha, d) ** 2),),
    reference=Reference("albasyoni2020", "Spherical Compression, unbiased form", arxiv="2010.03246"),
    status=Status.VERIFIED,
    setting=Setting(frozenset({Property.SCALED_SPHERICAL_COMPRESSION}), Conclusion.MEAN_DIRECTION),
    examples=(
        Example(
            {"omega": 1, "d": 10, "alpha": "0.5"},
            "8.538596710138731337500224086",
            "-log2 P(.5, 10) from a 40-digit table, plus 1.4755",
        ),
    ),
    unit="bit",
    free=Free(alpha, sp.Integer(0), sp.Min(1, 4 * omega / (1 + omega))),
    note="The norm is not counted; alpha is the cap of the construction.",
    latex_name=r"E\,b",
)
