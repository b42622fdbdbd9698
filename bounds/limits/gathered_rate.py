"""Bits that gathering needs for the mean of m independent vectors, at the rate-distortion limit.

Setting.  Every coordinate has variance s^2; every worker receives the m - 1 other vectors through a code of distortion
E, as in ``two_shot_rate``, and uses its own as it is (so the workers' results differ).

Derivation.  The error is (m - 1) E s^2/m^2: nmse = (1 - 1/m) E, at (m - 1) log2(1/E)/2 bits.  That is m - 1 times
``mean_received_rate``: gathering is optimal for two workers.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import m
from .mean_received_rate import mean_received_rate

gathered_rate = Bound(
    name="gathered_rate",
    quantity="bits a coordinate that a worker receives, gathering long blocks for the mean of m independent vectors",
    side=Side.UPPER,
    value=(m - 1) * mean_received_rate.value,
    assuming=mean_received_rate.assuming,
    reference=Reference("ratedist", "one stage of long blocks, the own vector exact"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.INDEPENDENT_VECTORS, Property.GATHERED_LONG_BLOCKS, Property.GATHERED_MEAN}),
        Conclusion.RECEIVED_RATE,
    ),
    examples=(
        Example({"m": 4, "nmse": "0.01171875"}, "9.0000000000", "three vectors of three bits, by hand"),
        Example({"m": 2, "nmse": "0.125"}, "1.00000000", "log2(4)/2, by hand"),
    ),
    unit="bit",
    note="nmse is relative to the variance of the mean, s^2/m.",
    latex_name=r"\bar b_{\mathrm{received}}",
)
