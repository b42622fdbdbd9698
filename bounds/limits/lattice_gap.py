"""Entropy-coded dithered lattice quantisation: its gap to the Gaussian rate.

Derivation.  As ``dithered_gaussian_rate`` with N uniform on a lattice cell of volume V in n dimensions: its entropy is
log2 V and its mean square a coordinate G V^(2/n), so the n-dimensional comparison leaves log2(2 pi e G)/2 a coordinate.
G is 1/12 for the integers and at least 1/(2 pi e) for every cell.
"""

from fractions import Fraction

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import lattice_moment

lattice_gap = Bound(
    name="lattice_gap",
    quantity="excess over the Gaussian rate of dithered lattice quantisation, bits a coordinate",
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
