"""Bits that every worker has to receive before it knows the mean of m independent Gaussian vectors.

Setting.  Worker i holds x_i, all coordinates of all vectors independent N(0, s^2).  After any number of messages on
any network each worker states the mean within a mean square error of ``nmse`` times s^2/m, the mean's own variance.
Messages are self-delimiting; a shared key is free.

Derivation, by a cut around one worker.  Let T be the sum of the other vectors over m: independent of (x_i, key), of
variance v = (m - 1) s^2/m^2 in every coordinate.  What worker i states is a function of (x_i, key) and of the messages
R that it received, so T is known from (x_i, key, R) within nmse s^2/m a coordinate.  Then:

``E length of R >= H(R | x_i, key) >= I(T; R | x_i, key) = h(T) - h(T | x_i, key, R) >= (d/2) log2(v m/(nmse s^2))``,

the last step as in ``gaussian_bits``.  This holds for every worker, and so on average.  What is received on average is
sent.

Two workers attain it: each sends the other its vector (``gathered_rate`` at m = 2).  For more, ``mean_exchange_rate``
is a larger lower limit at small errors, nearly twice this one.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.fused_difference import FusedDifference
from ..special.log2_one_plus import Log2OnePlus
from ..symbols import m, nmse

mean_received_rate = Bound(
    name="mean_received_rate",
    quantity="bits a coordinate that a worker receives to know the mean of m independent Gaussian vectors",
    side=Side.LOWER,
    value=Log2OnePlus(FusedDifference(m - 1, m, nmse) / (m * nmse)) / 2,
    assuming=(sp.Lt(m * nmse, m - 1),),
    reference=Reference("ratedist", "cut around one worker, Gaussian source"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.GAUSSIAN_VECTORS, Property.SELF_DELIMITING}),
        Conclusion.RECEIVED_RATE,
    ),
    examples=(
        Example({"m": 4, "nmse": "0.01171875"}, "3.0000000000", "log2(.75/.01171875)/2 = log2(64)/2, by hand"),
        Example({"m": 2, "nmse": "0.125"}, "1.00000000", "log2(4)/2, by hand"),
    ),
    unit="bit",
    note="nmse is relative to the variance of the mean, s^2/m.",
    latex_name=r"\bar b_{\mathrm{received}}",
)
