"""Bits of an unbiased operator: every x, a Gaussian x, a uniform direction, and what a shared key attains."""

from __future__ import annotations

import sympy as sp

from ..bound import Bound, Example, Free, Reference, Side, Status
from ..interval import Interval
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.cap_probability import CapMeanCosine, CapSpread, neg_log2_cap_of
from ..special.elementary import Log2OnePlus
from ..special.sphere_rate import SphereRate
from ..symbols import alpha, d, omega
from .worst_case import covering_bits, worst_case_bits

unbiased_bits = Bound(
    name="unbiased_bits",
    quantity="bits of the longest message of an unbiased operator, all bits counted",
    side=Side.LOWER,
    value=d / 2 * Log2OnePlus(1 / omega),
    reference=Reference("safaryan2020", "uncertainty principle", arxiv="2002.08958"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.UNBIASED, Property.SELF_DELIMITING}), Conclusion.LONGEST_MESSAGE),
    examples=(
        Example({"d": 1000, "omega": 1}, "500.000", "1 bit doubles 1 + 1/omega = 2: half a bit per coordinate"),
        Example({"d": 2, "omega": "0.3333333333333333333333"}, "2.0000000000", "log2(4) by hand"),
    ),
    unit="bit",
    latex_name="b",
)
"""The uncertainty principle for unbiased operators.

Derivation.  If C is unbiased with ``E|C(x) - x|^2 <= omega |x|^2``, then C/(1 + omega) contracts with alpha = omega/(1
+ omega): expand the square.  For a contractive operator with b bits, take X uniform in the unit ball ``(E|X|^2 =
d/(d+2))``.  A decoding cell of volume fraction p contributes at least d/(d+2) p^(1 + 2/d) to the distortion; convexity
over at most 2^b cells gives alpha >= 2^(-2b/d).  Shared randomness only averages such codes.  All bits count, those of
the norm included.
"""

gaussian_unbiased_bits = Bound(
    name="gaussian_unbiased_bits",
    quantity="expected bits of one message of an unbiased operator about a Gaussian vector",
    side=Side.LOWER,
    value=d / 2 * Log2OnePlus(1 / omega),
    reference=Reference("safaryan2020", "class inclusion", arxiv="2002.08958"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.UNBIASED, Property.SELF_DELIMITING}), Conclusion.GAUSSIAN_MEAN_MESSAGE),
    examples=(
        Example({"d": 1000, "omega": 1}, "500.00000", "half a bit per coordinate, by hand"),
        Example({"d": 2, "omega": "0.3333333333333333333333"}, "2.00000000000", "log2(4) by hand"),
        Example({"d": 1, "omega": "0.0039215686274509803921568627451"}, "4.0000000000", "omega = 1/255: 4 bits"),
    ),
    unit="bit",
    latex_name=r"E\,b",
)
"""The rate-distortion limit of unbiased operators on an isotropic Gaussian vector.

Derivation.  Let C be unbiased with ``E|C(x) - x|^2 <= omega |x|^2``.  Expanding the square, ``E|C(x)/(1+omega) - x|^2
<= (omega + 1)/(1+omega)^2 |x|^2 - 2/(1+omega) |x|^2 + |x|^2 = omega/(1+omega) |x|^2``.  Scaling at the decoder costs no
bits, so ``gaussian_bits`` holds with alpha = omega/(1+omega).
"""

sphere_unbiased_bits = Bound(
    name="sphere_unbiased_bits",
    quantity="expected bits of an unbiased operator about a uniform direction",
    side=Side.LOWER,
    value=SphereRate(omega / (1 + omega), 1 / (1 + omega), d),
    assuming=(sp.Ge(d, 2),),
    reference=Reference("dytso2024", "rate of the uniform law on the sphere", arxiv="2401.04248"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.UNBIASED, Property.SELF_DELIMITING}), Conclusion.SPHERE_MEAN_DIRECTION),
    examples=(
        Example({"omega": 1, "d": 1000}, "499.792570383482512983272233", "Bessel functions with 40 digits"),
        Example(
            {"omega": "0.1111111111111111111111111111111111111111", "d": 10},
            "15.42488856633673761882956455",
            "Bessel functions with 40 digits",
        ),
    ),
    unit="bit",
    note="The norm is not counted.",
    latex_name=r"E\,b",
)
"""Expected bits of an unbiased operator for a uniformly random direction.

Derivation.  C/(1 + omega) contracts in expectation with alpha = omega/(1 + omega) (see ``gaussian_unbiased_bits``),
and scaling at the decoder is free, so ``sphere_bits`` applies.  With shared randomness nothing is lost: a code with
centroid outputs and mean distortion D, conjugated by a shared Haar rotation and divided by 1 - D, is unbiased with
omega = D/(1 - D), because E Q^T C(Qx) is a multiple of x by invariance and the multiple is E<C(X), X> = 1 - D.
"""

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
"""Expected bits that suffice for an unbiased operator with shared randomness: scaled Spherical Compression.

Derivation.  Sender and receiver draw unit vectors v_1, v_2, ... from the shared key and the sender names the first one
whose cosine t to x is at least sqrt(1 - a).  That vector is uniform on a cap with mean cosine m(a, d), so ``|x| v/m``
is unbiased with second moment ``|x|^2/m^2``: any a with m(a, d)^2 >= 1/(1 + omega) gives a member of U(omega).  Its
index is geometric with success probability P(a, d); the best Golomb code has mean at most -log2 P + 1.4755.  That
constant is the maximum of a fine scan of the exact mean over -log2 P in (0, 60], beyond which the mean repeats with
period 1; -log2 P + log2(e) + 1 is proved (entropy of the geometric law, and the code is a Huffman code).  Here a is
``alpha``; 1 - m^2 is a/3 or more for every d >= 2, so a is never above 3 omega/(1 + omega).
"""


def fixed_length_bracket(alpha: float, d: int) -> Interval:
    """Return bits of the best fixed-length code for the direction with ``|C(x)-x|^2 <= alpha |x|^2`` surely; d >= 2.

    log2 of the least number of outputs lies inside; float64, not certified.

    Parameters
    ----------
    alpha : float
        Contraction constant: ``E|C(x)-x|^2 <= alpha |x|^2``; 0 < alpha < 1.
    d : int
        Dimension: number of coordinates; 1 <= d, an integer.

    Raises
    ------
    AssumptionViolated
        For arguments outside 0 < alpha < 1, d >= 2.
    """
    return Interval(worst_case_bits(alpha=alpha, d=d), covering_bits.best(alpha=alpha, d=d).value)


def unbiased_bracket(omega: float, d: int) -> Interval:
    """Return expected bits of the best unbiased operator with shared randomness, for the direction; d >= 2.

    Float64, not certified.

    Parameters
    ----------
    omega : float
        Variance constant of an unbiased operator; 0 < omega.
    d : int
        Dimension: number of coordinates; 1 <= d, an integer.

    Raises
    ------
    AssumptionViolated
        For arguments outside omega > 0, d >= 2.
    """
    return Interval(sphere_unbiased_bits(omega=omega, d=d), shared_unbiased_bits.best(omega=omega, d=d).value)
