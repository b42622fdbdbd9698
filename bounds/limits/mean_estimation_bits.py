"""Distributed mean estimation, empirical: bits each client needs for the mean of m independent uniform directions.

Derivation.  Given all messages and the key the X_i stay independent, so the error of any estimate of their mean is at
least ``(1/m^2) sum E|X_i - E[X_i | M_i]|^2``, an average of the clients' distortions divided by m.  R_S, the
information rate-distortion function of one direction (see ``sphere_bits``), is convex in the distortion, so the average
number of bits is at least R_S of the average distortion, which is at most m MSE.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.fused_difference import FusedDifference
from ..special.sphere_rate_function import SphereRate
from ..symbols import d, m, mse

mean_estimation_bits = Bound(
    name="mean_estimation_bits",
    quantity="expected bits of one client in estimating the mean of m uniform directions",
    side=Side.LOWER,
    value=SphereRate(m * mse, FusedDifference(1, m, mse), d),
    assuming=(sp.Ge(d, 2), sp.Lt(m * mse, 1)),
    reference=Reference("isik2023", "empirical mean estimation", arxiv="2306.04924"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.RANDOM_DIRECTIONS, Property.INDEPENDENT_MESSAGES, Property.SELF_DELIMITING}),
        Conclusion.CLIENT_MEAN_MESSAGE,
    ),
    examples=(Example({"d": 3, "m": 10, "mse": "0.01"}, "3.84173269541091515936938521", "R_S(.1, 3) with 40 digits"),),
    unit="bit",
    latex_name=r"E\,b",
)
