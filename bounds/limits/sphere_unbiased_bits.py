"""Expected bits of an unbiased operator for a uniformly random direction.

Derivation.  C/(1 + omega) contracts in expectation with alpha = omega/(1 + omega) (see ``gaussian_unbiased_bits``),
and scaling at the decoder is free, so ``sphere_bits`` applies.  With shared randomness nothing is lost: a code with
centroid outputs and mean distortion D, conjugated by a shared Haar rotation and divided by 1 - D, is unbiased with
omega = D/(1 - D), because E Q^T C(Qx) is a multiple of x by invariance and the multiple is E<C(X), X> = 1 - D.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.sphere_rate_function import SphereRate
from ..symbols import d, omega

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
