"""Entropy-coded dithered uniform quantisation with Wiener scaling: within .2546 bits of the Gaussian rate.

Derivation.  With step h, N uniform of variance D_0 = h^2/12 and X of unit variance, the index has entropy I(X; X+N) =
h(X+N) - log2 h <= log2(2 pi e (1 + D_0))/2 - log2(12 D_0)/2.  The best scaling of X + N leaves the error D = D_0/(1 +
D_0), so this is log2(1/D)/2 + log2(2 pi e/12)/2: the excess over the Gaussian rate at any step, and hence over R(D)
for a Gaussian source.  Other sources have a smaller R(D), but the rate stays below the stated value.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import nmse

dithered_gaussian_rate = Bound(
    name="dithered_gaussian_rate",
    quantity="entropy of dithered scalar quantisation with Wiener scaling, bits a coordinate, unit variance",
    side=Side.UPPER,
    value=-sp.log(nmse, 2) / 2 + sp.log(sp.pi * sp.E / 6, 2) / 2,
    reference=Reference("zamir1992", "dithered quantisation"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.FINITE_VARIANCE_SOURCE, Property.WIENER_QUANTISER}), Conclusion.CODE_RATE),
    examples=(Example({"nmse": "0.25"}, "1.254614334820063011974732", "1 + .2546.. with 40 digits"),),
    unit="bit",
    latex_name=r"R",
)
