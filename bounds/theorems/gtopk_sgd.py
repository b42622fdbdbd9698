"""Global top-k SGD with memory, under the assumption that it contracts the summed message like top-k of d.

Setting.  As in ``topk_sgd``; the aggregate A(p_1..p_m) that all workers apply satisfies ``E|mean p_i - A|^2 <= (1 -
k/d) E|mean p_i|^2``.  It does not follow from the algorithm (messages may cancel): check it on the data.

Derivation.  The mean memory is mean p_i - A, so ``ef_memory`` holds for it with alpha = 1 - k/d; then as ``ef_sgd``.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import alpha, d, kept
from .ef_sgd import ef_sgd

gtopk_sgd = Bound(
    name="gtopk_sgd",
    quantity="average over K steps of E|grad F(x)|^2, global top-k SGD with memory, non-convex",
    side=Side.UPPER,
    value=ef_sgd.value.xreplace({1 - alpha: kept / d, alpha: (d - kept) / d}),
    assuming=(sp.Le(kept, d),),
    reference=Reference("shi2019", "assumption of the convergence theorem; constants derived here"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.SMOOTH,
                Property.BOUNDED_BELOW,
                Property.UNBIASED_GRADIENTS,
                Property.MEAN_SECOND_MOMENT,
                Property.AGGREGATE_CONTRACTS,
                Property.GLOBAL_TOPK_SGD,
            }
        ),
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "K": 100, "L": 1, "G": 2, "kept": 3, "d": 4}, "0.640000", "by hand: .2 + .4 + .04"
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(x_k)\|^2",
)
