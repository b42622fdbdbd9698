"""Rates of one coordinate of a memoryless source: Shannon lower bounds, and what dithered quantisers add to them."""

from fractions import Fraction

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.losses import GaussianMixtureLoss, GeneralisedGaussianLoss, StudentLoss
from ..special.uniform_quantiser import UniformQuantiserEntropy, UniformQuantiserLog2Error
from ..symbols import dof, lattice_moment, mixture_weight, nmse, quantiser_step, shape, variance_ratio, zero_share

gaussian_rate = Bound(
    name="gaussian_rate",
    quantity="information rate of a Gaussian coordinate, bits",
    side=Side.TIGHT,
    value=-sp.log(nmse, 2) / 2,
    reference=Reference("shannon1959", "Gaussian source"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.GAUSSIAN_SOURCE}), Conclusion.INFORMATION_RATE),
    examples=(
        Example({"nmse": "0.25"}, "1.0000000000", "by hand"),
        Example({"nmse": "0.1"}, "1.660964047443681", "log2(10)/2 from a table"),
    ),
    unit="bit",
    latex_name=r"R(\Delta)",
)
"""The rate-distortion function of one Gaussian coordinate.

Converse: ``gaussian_bits`` at d = 1.  Attained by the backward channel X = Y + Z with independent Gaussians of
variances (1 - nmse) and nmse times Var X, for which I(X; Y) = log2(1/nmse)/2.
"""

laplace_rate = Bound(
    name="laplace_rate",
    quantity="bits per coordinate at mean square error nmse times the variance",
    side=Side.LOWER,
    value=-sp.log(nmse, 2) / 2 - sp.log(sp.pi / sp.E, 2) / 2,
    reference=Reference("shannon1959", "lower bound"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.LAPLACE_SOURCE}), Conclusion.INFORMATION_RATE),
    examples=(Example({"nmse": "0.01"}, "3.21752755060", "log2(10) = 3.321928094887 less .104400544288 by hand"),),
    unit="bit",
    latex_name=r"R",
)
"""Shannon lower bound of a Laplace coordinate.

For the information rate of one coordinate and so for any code: I(X; Y) >= h(X) - h(X - Y) >= h(X) - log2(2 pi e D)/2,
since the Gaussian law has the largest entropy at mean square D = nmse Var X.  With h = log2(2 pi e Var X)/2 - loss it
reads log2(1/nmse)/2 - loss.  Here h = log2(2 e s), Var X = 2 s^2, and loss = log2(pi/e)/2.
"""

generalised_gaussian_rate = Bound(
    name="generalised_gaussian_rate",
    quantity="bits per coordinate at mean square error nmse times the variance",
    side=Side.LOWER,
    value=-sp.log(nmse, 2) / 2 - GeneralisedGaussianLoss(shape),
    reference=Reference("shannon1959", "lower bound"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.GENERALISED_GAUSSIAN_SOURCE}), Conclusion.INFORMATION_RATE),
    examples=(
        Example(
            {"nmse": "0.0625", "shape": "0.5"}, "1.384849198793026447356", "loss .61515080120697355 with 40 digits"
        ),
        Example({"nmse": "0.25", "shape": 2}, "1.0000000000", "the Gaussian case"),
        Example({"nmse": "0.01", "shape": 1}, "3.21752755060", "the Laplace case"),
    ),
    unit="bit",
    latex_name=r"R",
)
"""Shannon lower bound of a generalised Gaussian coordinate with density proportional to ``exp(-|x/s|^shape)``.

As ``laplace_rate``; here
h = log2(2 s Gamma(1/shape)/shape) + log2(e)/shape and Var X = s^2 Gamma(3/shape)/Gamma(1/shape).
"""

student_rate = Bound(
    name="student_rate",
    quantity="bits per coordinate at mean square error nmse times the variance",
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
"""Shannon lower bound of a Student coordinate.

As ``laplace_rate``; here, in nats with scale s,
h = (v+1)/2 [psi((v+1)/2) - psi(v/2)] + ln(sqrt(v) B(v/2, 1/2)) + ln s, Var X = s^2 v/(v - 2), v = dof > 2.
"""

gaussian_mixture_rate = Bound(
    name="gaussian_mixture_rate",
    quantity="bits per coordinate at mean square error nmse times the variance",
    side=Side.LOWER,
    value=-sp.log(nmse, 2) / 2 - GaussianMixtureLoss(mixture_weight, variance_ratio),
    reference=Reference("shannon1959", "lower bound, concavity of entropy"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.MIXTURE_SOURCE}), Conclusion.INFORMATION_RATE),
    examples=(
        Example(
            {"nmse": "0.0001", "mixture_weight": "0.9", "variance_ratio": "0.01"},
            "5.252920884319",
            "loss 1.390935305456045770517 with 40 digits",
        ),
    ),
    unit="bit",
    latex_name=r"R",
)
"""Shannon lower bound of a mixture of two zero-mean Gaussian components.

As ``laplace_rate``.  Entropy is concave, so h >= w h_1 + (1 - w) h_2; with variances r and 1 the variance is
w r + 1 - w and loss <= log2(w r + 1 - w)/2 - w log2(r)/2.
"""

sparse_source_rate = Bound(
    name="sparse_source_rate",
    quantity="bits per coordinate at mean square error nmse times the variance",
    side=Side.LOWER,
    value=-(1 - zero_share) * sp.log(nmse, 2) / 2,
    reference=Reference("berger1971", "conditional rate-distortion"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.SPARSE_SOURCE}), Conclusion.INFORMATION_RATE),
    examples=(Example({"nmse": "0.25", "zero_share": "0.75"}, "0.2500000000", "a quarter of one bit, by hand"),),
    unit="bit",
    latex_name=r"R",
)
"""Rate of a coordinate that is zero with probability p_0 and Gaussian otherwise.

Derivation.  Let S tell whether X is zero; it is a function of X, so I(X; Y) >= ``I(X; Y | S) >= (1 - p_0) I(X; Y | X !=
0)`` >= (1 - p_0) log2(s^2/D_1)/2 with s^2 the variance of the Gaussian part and D_1 its share of the error, (1 - p_0)
D_1 <= D.  The source's variance is (1 - p_0) s^2, so the ratio is at least 1/nmse.  The position of the non-zero
coordinates is treated as known, so a code has to spend more at small nmse.
"""

dithered_rate = Bound(
    name="dithered_rate",
    quantity="excess of entropy-coded dithered scalar quantisation over R(D), bits per coordinate",
    side=Side.UPPER,
    value=sp.log(sp.pi * sp.E / 3, 2) / 2,
    reference=Reference("ziv1985", "universal quantisation"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.FINITE_VARIANCE_SOURCE, Property.DITHERED_QUANTISER}), Conclusion.EXCESS_RATE),
    examples=(Example({}, "0.7546143348200630119747325", "pi e/3 with 40 digits"),),
    unit="bit",
    latex_name=r"R - R(D)",
)
"""Entropy-coded uniform quantisation with subtractive dither, any source: within .7546 bits of its R(D).

Derivation.  The coded index, given the dither, has entropy I(X; X + N) with N uniform on a step h and error h^2/12 =
D.  Let U attain R(D): I(X; X+N) <= I(X; U) + ``I(X; X+N | U) <= R(D) + h(X - U + N) - h(N)``, and X - U + N has mean
square at most 2D, so the last difference is at most log2(2 pi e 2D)/2 - log2(12 D)/2 = log2(4 pi e/12)/2.
"""

dithered_gaussian_rate = Bound(
    name="dithered_gaussian_rate",
    quantity="entropy of dithered scalar quantisation with Wiener scaling, bits per coordinate, unit variance",
    side=Side.UPPER,
    value=-sp.log(nmse, 2) / 2 + sp.log(sp.pi * sp.E / 6, 2) / 2,
    reference=Reference("zamir1992", "dithered quantisation"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.FINITE_VARIANCE_SOURCE, Property.WIENER_QUANTISER}), Conclusion.CODE_RATE),
    examples=(Example({"nmse": "0.25"}, "1.254614334820063011974732", "1 + .2546.. with 40 digits"),),
    unit="bit",
    latex_name=r"R",
)
"""Entropy-coded dithered uniform quantisation with Wiener scaling: within .2546 bits of the Gaussian rate.

Derivation.  With step h, N uniform of variance D_0 = h^2/12 and X of unit variance, the index has entropy I(X; X+N) =
h(X+N) - log2 h <= log2(2 pi e (1 + D_0))/2 - log2(12 D_0)/2.  The best scaling of X + N leaves the error D = D_0/(1 +
D_0), so this is log2(1/D)/2 + log2(2 pi e/12)/2: the excess over the Gaussian rate at any step, and hence over R(D)
for a Gaussian source.  Other sources have a smaller R(D), but the rate stays below the stated value.
"""

lattice_gap = Bound(
    name="lattice_gap",
    quantity="excess over the Gaussian rate of dithered lattice quantisation, bits per coordinate",
    side=Side.UPPER,
    value=sp.log(2 * sp.pi * sp.E * lattice_moment, 2) / 2,
    assuming=(sp.Ge(2 * sp.pi * sp.E * lattice_moment, 1),),
    reference=Reference("zamir1992", "lattice quantisation noise"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.FINITE_VARIANCE_SOURCE, Property.WIENER_LATTICE}), Conclusion.EXCESS_OVER_GAUSSIAN
    ),
    examples=(
        Example({"lattice_moment": Fraction(1, 12)}, "0.2546143348200630", "scalar case with 40 digits"),
        Example({"lattice_moment": Fraction(929, 12960)}, "0.14597", "table value of the E8 lattice"),
    ),
    unit="bit",
    latex_name=r"R - R_G",
)
"""Entropy-coded dithered lattice quantisation: its gap to the Gaussian rate.

Derivation.  As ``dithered_gaussian_rate`` with N uniform on a lattice cell of volume V in n dimensions: its entropy is
log2 V and its mean square a coordinate G V^(2/n), so the n-dimensional comparison leaves log2(2 pi e G)/2 a coordinate.
G is 1/12 for the integers and at least 1/(2 pi e) for every cell.
"""

uniform_scalar_gap = Bound(
    name="uniform_scalar_gap",
    quantity="bits per coordinate of entropy-coded uniform quantisation above the Gaussian rate at the same error",
    side=Side.TIGHT,
    value=UniformQuantiserEntropy(quantiser_step) + UniformQuantiserLog2Error(quantiser_step) / 2,
    assuming=(sp.Ge(quantiser_step, sp.Rational(1, 100)),),
    reference=Reference("gish1968", "asymptotically efficient quantising"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.GAUSSIAN_SOURCE, Property.UNIFORM_QUANTISER}), Conclusion.EXCESS_OVER_GAUSSIAN),
    examples=(
        Example({"quantiser_step": "0.25"}, "0.254614", "published check value"),
        Example({"quantiser_step": 3}, "0.197754", "published check value"),
    ),
    unit="bit",
    latex_name="H - R",
)
"""Entropy-coded uniform scalar quantisation of a Gaussian coordinate: its exact gap to the rate-distortion function.

The index of round(X/h) has the entropy H, which an ideal entropy coder of long blocks attains, and decoding to the
cell's mean leaves the error D; the gap is H - log2(1/D)/2.  It tends to log2(2 pi e/12)/2 = .2546 as h -> 0 and to 0 as
h grows, both by the sums that define H and D.
"""
