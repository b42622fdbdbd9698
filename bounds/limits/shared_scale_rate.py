"""Bits of the sum of m workers' integers on one shared scale, with an ideal entropy coder.

Setting.  Every coordinate of every vector has variance s^2, independently over workers.  Worker i rounds x_i/h + u_i
to the nearest integer n_i, with a dither u_i uniform in (-1/2, 1/2) that everybody knows and subtracts at the end.
Then n_i - u_i - x_i/h is uniform in (-1/2, 1/2) and independent of x_i; the mean has error h^2/(12 m) a coordinate, so
that ``nmse``, relative to the mean's variance s^2/m, is h^2/(12 s^2).

Derivation.  Given the dither, N = sum n_i is an integer whose variance is, on average over the dither, at most sum
Var(n_i - u_i) = m (s^2/h^2 + 1/12).  A uniform variable on (0, 1) added to N makes a density of the entropy of N; the
Gaussian law has the largest entropy at a given variance, and the logarithm is concave, so that
``H(N | u) <= log2(2 pi e (m (s^2/h^2 + 1/12) + 1/12))/2``.  Insert s^2/h^2 = 1/(12 nmse).

Against one vector at the same nmse the sum costs log2(m)/2 more bits, and pi e/6 = 1.42 is the price of rounding one
coordinate at a time.  Words of fixed length pay for the peak instead: ``shared_scale_error``.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import m, nmse

shared_scale_rate = Bound(
    name="shared_scale_rate",
    quantity="bits a coordinate of the coded sum of m workers' dithered integers of one scale",
    side=Side.UPPER,
    value=sp.log(sp.pi * sp.E / 6 * (m * (1 + 1 / nmse) + 1), 2) / 2,
    reference=Reference("ratedist", "largest entropy of an integer with a given variance"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.INDEPENDENT_VECTORS, Property.DITHERED_SHARED_SCALE, Property.WORD_MEAN}),
        Conclusion.SUM_RATE,
    ),
    examples=(
        Example({"m": 1, "nmse": "0.5"}, "1.25461", "log2(pi e/6 * 4)/2 = 1 + .25461, by hand"),
        Example({"m": 16, "nmse": "0.0625"}, "4.30099", "log2(pi e/6 * 273)/2 = 4.04638 + .25461, by hand"),
    ),
    unit="bit",
    note="nmse is relative to the variance of the mean, s^2/m.",
    latex_name=r"\bar b_{\mathrm{sum}}",
)
