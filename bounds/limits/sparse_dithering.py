"""Bits of one message of Sparse Dithering: deterministic, arithmetic-coded and randomised.

A message holds the norm ``r = |x|``, the support of the levels that are not 0, their signs, and the levels themselves.
"""

from __future__ import annotations

from functools import partial

import sympy as sp

from ..bound import Bound, Example, Free, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.elementary import Log2OnePlus, ThetaTwo
from ..special.sparse_dithering_rate import SparseDitheringIntegerRate, SparseDitheringRate
from ..symbols import d, nu, omega, tilt

DETERMINISTIC = "bits of one message of deterministic Sparse Dithering"
RANDOMISED = "expected bits of randomised Sparse Dithering"
FRACTIONAL, WHOLE = "fields of fractional length", "fields of whole bits"
RANDOM_RATE = sp.log(3, 2) + 1 / (2 * sp.sqrt(omega))
COARSE_ENTROPY = (sp.log(1 + omega, 2) + omega * Log2OnePlus(1 / omega)) / (1 + omega)  # H(1/(1 + omega))


def _longest(sent: Property) -> Setting:
    return Setting(frozenset({sent}), Conclusion.LONGEST_MESSAGE)


def _mean(sent: Property) -> Setting:
    return Setting(frozenset({sent}), Conclusion.MEAN_MESSAGE)


def _published(where: str) -> Reference:
    return Reference("albasyoni2020", where, arxiv="2010.03246")


_upper = partial(Bound, side=Side.UPPER, status=Status.PROVED, unit="bit")

sparse_dithering_bits = _upper(
    name="sparse_dithering_bits",
    quantity=f"{DETERMINISTIC}, {FRACTIONAL}",
    value=31 + sp.log(d, 2) + SparseDitheringRate(nu) * d,
    reference=_published("Sparse Dithering"),
    setting=_longest(Property.SPARSE_DITHERING),
    examples=(
        Example({"nu": "0.1", "d": 1}, "34.343486699241945600640", "stationary q by 40-digit root finding"),
        Example({"nu": "0.5", "d": 1024}, "2657.303080169", "1024 times c(.5) = 2.5549834767275527 plus 41"),
    ),
    latex_name="b",
)
"""Deterministic Sparse Dithering: Cauchy-Schwarz under the budget of the levels.

The step is h = 2 sqrt(nu/d), the levels are ``n_i = floor(|x_i|/(r h) + 1/2)``, k of them non-zero with sum T.  The
fields are a scale (31 bits), k - 1 (log2 d), the support (log2 binomial(d, k)), k signs and the levels in unary (T
bits).  The error is the squared sine of the angle to a vector within sqrt(nu) of x/r: at most ``nu |x|^2``, surely.
n_i >= 1 means ``|x_i|/(r h) >= n_i - 1/2``, so sum (n_i - 1/2)^2 <= d/(4 nu) over the support: the budget.

Derivation.  Cauchy-Schwarz gives T <= sqrt(k d/(4 nu)) + k/2, and log2 binomial(d, k) <= d H(k/d); maximise over q =
k/d.
"""

sparse_dithering_tight_bits = _upper(
    name="sparse_dithering_tight_bits",
    quantity=f"{DETERMINISTIC}, {FRACTIONAL}",
    value=31 + sp.log(d, 2) + SparseDitheringIntegerRate(nu) * d,
    reference=_published("Sparse Dithering, sharpened"),
    setting=_longest(Property.SPARSE_DITHERING),
    examples=(Example({"nu": "0.1", "d": 1}, "34.3069", "maximum over a fine grid of q"),),
    latex_name="b",
)
"""Deterministic Sparse Dithering: the largest unary length that whole levels can have.

Derivation.  As ``sparse_dithering_bits``.  T is a sum of integers, so its largest mean under the mean budget is the
concave polygon l of ``SparseDitheringIntegerRate``.
"""

sparse_dithering_whole_bits = _upper(
    name="sparse_dithering_whole_bits",
    quantity=f"{DETERMINISTIC}, {WHOLE}",
    value=33 + sp.log(d, 2) + SparseDitheringRate(nu) * d,
    reference=_published("Sparse Dithering"),
    setting=_longest(Property.WHOLE_SPARSE_DITHERING),
    examples=(Example({"nu": "0.1", "d": 1}, "36.343486699241945600640", "stationary q by 40-digit root finding"),),
    latex_name="b",
)
"""Deterministic Sparse Dithering with fields of whole bits.

Derivation.  As ``sparse_dithering_bits``; rounding the count and the rank up to whole bits adds less than 2 bits.
"""

sparse_dithering_tenth_bits = _upper(
    name="sparse_dithering_tenth_bits",
    quantity=f"{DETERMINISTIC} at nu = 1/10, {FRACTIONAL}",
    value=30 + sp.log(d, 2) + sp.Rational(335, 100) * d,
    assuming=(sp.Ge(d, 3),),
    reference=_published("Sparse Dithering, nu = 1/10"),
    setting=_longest(Property.TENTH_SPARSE_DITHERING),
    examples=(Example({"d": 1024}, "3470.4000000", "30 + 10 + 3430.4 by hand"),),
    latex_name="b",
)
"""Deterministic Sparse Dithering at nu = 1/10: the headline 30 + log2 d + 3.35 d.

Derivation.  As ``sparse_dithering_bits``.  For k < d and d >= 3, log2 binomial(d, k) <= d H(k/d) - 1 (Stirling:
binomial <= 2^(dH)/sqrt(2 pi k (d-k)/d), and that root exceeds 2); c(1/10) = 3.3435 < 3.35.  For k = d the sum is 31 +
log2 d + (3/2 + sqrt(5/2)) d, below the claim for d >= 4; d = 3 is settled by its largest T = 6.  It is false at d = 1
and 2, and with whole-bit fields at d = 3, 9 and 10 too.
"""

sparse_dithering_coded_bits = _upper(
    name="sparse_dithering_coded_bits",
    quantity="bits of one message of arithmetic-coded Sparse Dithering",
    value=33 + d * (sp.log(1 + ThetaTwo(tilt), 2) + tilt / (4 * nu * sp.log(2))),
    reference=_published("Sparse Dithering, arithmetic-coded (own)"),
    setting=_longest(Property.CODED_SPARSE_DITHERING),
    examples=(
        Example(
            {"nu": "0.1", "d": 1000, "tilt": "0.16"}, "3051.331641664941780384", "the sum over levels with 25 digits"
        ),
    ),
    free=Free(tilt, sp.Integer(0), 10 * nu),
    latex_name="b",
)
"""Sparse Dithering with one static arithmetic code for all coordinates.

Derivation.  Budget and levels are those of ``sparse_dithering_bits``.  Code each with the law p(0) = 1/Z, p(+-n) =
e^(-l (n - 1/2)^2)/Z, Z = 1 + theta_2(e^-l).  By the budget the ideal length is at most d log2 Z + l log2(e) d/(4 nu);
an arithmetic coder adds at most 2 bits.  Any l > 0 is valid.
"""

sparse_dithering_random_bits = _upper(
    name="sparse_dithering_random_bits",
    quantity=f"{RANDOMISED}, {FRACTIONAL}",
    value=30 + sp.log(d + 1, 2) + RANDOM_RATE * d,
    assuming=(sp.Ge(d, 2),),
    reference=_published("Sparse Dithering, randomised"),
    setting=_mean(Property.RANDOM_SPARSE_DITHERING),
    examples=(Example({"omega": "0.1", "d": 1000}, "3206.06855706418184097722", "logarithms with 40 digits"),),
    latex_name=r"E\,b",
)
"""Randomised Sparse Dithering: unbiased, with levels that are stochastic roundings.

The levels are the stochastic rounding of ``|x_i|/(r h)``, and the decoder outputs r h sign_i n_i: unbiased.  The fields
are r (31 bits), k (log2(d + 1)), the support, k signs and the levels in unary.

Derivation.  h = 2 sqrt(omega/d).  A rounding has variance at most 1/4, so the error is at most ``d h^2/4 = omega
|x|^2``, and ``E T = sum |x_i|/(r h) <= d/(2 sqrt(omega))``.  H(q) + q <= log2 3, and for 0 < k < d the support costs at
most d H(k/d) - 1; at k = 0 and k = d, H + q is below log2 3 by 1.58 and .58, which is at least 1/d for d >= 2.
"""

sparse_dithering_random_whole_bits = _upper(
    name="sparse_dithering_random_whole_bits",
    quantity=f"{RANDOMISED}, {WHOLE}",
    value=32 + sp.log(d + 1, 2) + RANDOM_RATE * d,
    assuming=(sp.Ge(d, 2),),
    reference=_published("Sparse Dithering, randomised"),
    setting=_mean(Property.WHOLE_RANDOM_SPARSE_DITHERING),
    examples=(Example({"omega": "0.1", "d": 1000}, "3208.06855706418184097722", "logarithms with 40 digits"),),
    latex_name=r"E\,b",
)
"""Randomised Sparse Dithering with fields of whole bits.

Derivation.  As ``sparse_dithering_random_bits``; rounding the count and the rank up adds less than 2 bits.
"""

sparse_dithering_random_coarse_bits = _upper(
    name="sparse_dithering_random_coarse_bits",
    quantity=f"{RANDOMISED}, omega >= 1, {FRACTIONAL}",
    value=31 + sp.log(d + 1, 2) + d * (COARSE_ENTROPY + 2 / (1 + omega)),
    assuming=(sp.Ge(omega, 1),),
    reference=_published("Sparse Dithering, randomised, own step"),
    setting=_mean(Property.COARSE_SPARSE_DITHERING),
    examples=(
        Example({"omega": 1, "d": 1000}, "2040.967226258835993524038", "logarithms with 40 digits"),
        Example({"omega": 3, "d": 1023}, "1382.4375", "H(1/4) = .811278 by hand: 41 + 1023 * 1.311278"),
    ),
    latex_name=r"E\,b",
)
"""Randomised Sparse Dithering for omega >= 1, with a coarser step.

Derivation.  The fields are those of ``sparse_dithering_random_bits``.  With ``s = |x_i|^2/r^2`` the rounding variance
h^2 p(1-p) is at most h sqrt(s) - s up to s = h^2/4 (its concave envelope), so equal coordinates are worst and the error
is h sqrt(d) - 1 for h sqrt(d) >= 2: h = (1 + omega)/sqrt(d) makes it omega.  Then E k <= E T <= d/(1 + omega) <= d/2,
and H(q) + q is concave and increasing there.
"""
