"""Bits that two shots need for the mean of m independent vectors, at the rate-distortion limit of both stages.

Setting.  Every coordinate has variance s^2.  An owner keeps its own shard as it is; the m - 1 other shards reach it
through a code of distortion E a coordinate, relative to the variance, and the mean goes to all through one of
distortion E'.  Both codes serve vectors of any law: under a shared uniform rotation a contractive operator needs
log2(1/alpha)/2 bits a coordinate as the length of the vector grows (``spherical_compression_bits``), and scaled to the
least error its error has mean zero and is orthogonal to its output.

Derivation. q = 1 - 1/m.  Errors of different workers are uncorrelated: the owner's mean y is q E s^2/m from the mean,
orthogonal to it, and has variance (1 - q E) s^2/m; the second stage adds E' of this, orthogonally.  So:

``nmse = 1 - (1 - q E)(1 - E')``.

A worker sends and receives q (log2(1/E) + log2(1/E'))/2, least at q E = E' = 1 - sqrt(1 - nmse) =: e, which needs e <=
q.  With 1/e = (1 + sqrt(1 - nmse))/nmse this is q (log2(q)/2 + log2(1/e)).

At small errors no exchange needs less by more than 1.42 bits for three workers or more, 1.01 for a thousand
(``mean_exchange_rate``).
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.log2_one_plus import Log2OnePlus
from ..symbols import m, nmse

_root = sp.sqrt(1 - nmse)

two_shot_rate = Bound(
    name="two_shot_rate",
    quantity="bits a coordinate that a worker receives, two shots of long blocks for the mean of m independent vectors",
    side=Side.UPPER,
    value=(1 - 1 / m) * (Log2OnePlus(_root * (1 + _root) / nmse) + Log2OnePlus(-1 / m) / 2),
    assuming=(sp.Ge(m, 2), sp.Le(nmse, 1 - 1 / m**2)),
    reference=Reference("ratedist", "two stages of long blocks, the owner's shard exact"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.INDEPENDENT_VECTORS, Property.OWNED_LONG_BLOCKS, Property.TWO_SHOT_MEAN}),
        Conclusion.RECEIVED_RATE,
    ),
    examples=(
        Example(
            {"m": 4, "nmse": "0.4375"},
            "1.3443609",
            "by hand: root .75, e = 1/4: 3/4 (2 - .20751875), log2(3/4)/2 = -.20751875",
        ),
        Example({"m": 2, "nmse": "0.75"}, "0.2500000", "by hand: e = 1/2: (1 - 1/2)/2"),
    ),
    unit="bit",
    note="nmse is relative to the variance of the mean, s^2/m.",
    latex_name=r"\bar b_{\mathrm{received}}",
)
