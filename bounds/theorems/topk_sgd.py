"""Top-k SGD with memory, under the assumption that the top-k of the mean is close to the mean of the top-k.

Setting.  m workers with memory e_i send T(p_i), p_i = eta g_i + e_i, T = top-k of d; x+ = x - mean T(p_i). ``|T(mean
p_i) - mean T(p_i)| <= xi eta |mean g_i|`` (``topk_gap``), ``E|mean g_i|^2 <= G^2``, F L-smooth.

Derivation.  The mean memory obeys ``|e+|`` <= ``|pbar - T(pbar)| + xi eta`` ``|gbar| <= sqrt(1 - k/d)|e| + (sqrt(1 -
k/d) + xi) eta`` ``|gbar|``, so by Minkowski's inequality ::

    sqrt(E|e|^2) <= eta G (sqrt(1 - k/d) + xi)/(1 - sqrt(1 - k/d)).

Continue as in ``ef_sgd``.  Unlike there, G bounds the mean gradient, which is smaller with many workers.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import G, K, L, d, eta, gap, kept, topk_gap

_rest = sp.sqrt((d - kept) / d)

topk_sgd = Bound(
    name="topk_sgd",
    quantity="average over K steps of E|grad F(x)|^2, top-k SGD with memory, non-convex",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * G**2 + (eta * L * G * (_rest + topk_gap) * (1 + _rest) * d / kept) ** 2,
    assuming=(sp.Le(kept, d),),
    reference=Reference("alistarh2018", "Assumption 1; constants derived here", arxiv="1809.10505"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.SMOOTH,
                Property.BOUNDED_BELOW,
                Property.UNBIASED_GRADIENTS,
                Property.MEAN_SECOND_MOMENT,
                Property.TOPK_NEAR_MEAN,
                Property.TOPK_MEMORY_SGD,
            }
        ),
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "K": 100, "L": 1, "G": 2, "kept": 3, "d": 4, "topk_gap": "0.5"},
            "0.760000",
            "by hand: .2 + .4 + (.2 * 1/.5)^2",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(x_k)\|^2",
)
