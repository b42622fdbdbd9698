"""Distributed mean estimation, statistical: m clients, one Gaussian sample each, b bits each.

Derivation.  Client i holds X_i ~ N(theta, s^2 I_d) and sends b bits, independently of the others given the shared key.
The score of a message is ``S = E[X - theta | M]/s^2``, and ``E|X - theta - E[X - theta | M]|^2 >= s^2 d 4^(-b/d)`` by
``gaussian_bits``; so the trace of its Fisher information, ``E|S|^2``, is at most (d/s^2)(1 - 4^(-b/d)) at every theta.
Informations add over clients, and the van Trees inequality with an ever wider prior gives sup_theta MSE >= d^2/trace =
s^2 d/(m (1 - 4^(-b/d))).  Without the bit limit it is s^2 d/m.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.one_minus_power_of_two import OneMinusPowerOfTwo
from ..symbols import bits, d, m, sigma2

mean_estimation = Bound(
    name="mean_estimation",
    quantity="largest mean square error, over theta, of an estimate of a Gaussian mean from m messages",
    side=Side.LOWER,
    value=sigma2 * d / (m * OneMinusPowerOfTwo(2 * bits / d)),
    assuming=(sp.Gt(bits, 0),),
    reference=Reference("barnes2019", "Fisher information of messages, sharp constant", arxiv="1902.02890"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.GAUSSIAN_SAMPLES, Property.INDEPENDENT_MESSAGES, Property.SELF_DELIMITING}),
        Conclusion.MEAN_SQUARE_ERROR,
    ),
    examples=(
        Example({"bits": 100, "d": 100, "m": 100, "sigma2": 1}, "1.333333333333333", "4/3 by hand"),
        Example({"bits": 10, "d": 100, "m": 10, "sigma2": 1}, "77.25023958872575626793", "40 digits"),
    ),
    note="sigma2 is the variance of one coordinate of one sample.",
    latex_name=r"\mathrm{MSE}",
)
