"""Entropy-coded uniform quantisation with subtractive dither, any source: within .7546 bits of its R(D).

Derivation.  The coded index, given the dither, has entropy I(X; X + N) with N uniform on a step h and error h^2/12 =
D.  Let U attain R(D): I(X; X+N) <= I(X; U) + ``I(X; X+N | U) <= R(D) + h(X - U + N) - h(N)``, and X - U + N has mean
square at most 2D, so the last difference is at most log2(2 pi e 2D)/2 - log2(12 D)/2 = log2(4 pi e/12)/2.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting

dithered_rate = Bound(
    name="dithered_rate",
    quantity="excess of entropy-coded dithered scalar quantisation over R(D), bits a coordinate",
    side=Side.UPPER,
    value=sp.log(sp.pi * sp.E / 3, 2) / 2,
    reference=Reference("ziv1985", "universal quantisation"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.FINITE_VARIANCE_SOURCE, Property.DITHERED_QUANTISER}), Conclusion.EXCESS_RATE),
    examples=(Example({}, "0.7546143348200630119747325", "pi e/3 with 40 digits"),),
    unit="bit",
    latex_name=r"R - R(D)",
)
