"""Error feedback makes any contractive compressor converge on non-convex problems.

Setting.  ``ef_memory`` at each of m workers; x+ = x - mean C_i(p_i); F L-smooth, g_i unbiased with ``E|g_i|^2 <= G^2``.

Derivation.  y = x - mean e_i makes plain SGD steps.  Descend along y; <grad F(y), ``grad F(x)> >= |grad F(x)|^2/2 - L^2
|y - x|^2/2`` and ``E|y - x|^2`` <= the bound of ``ef_memory``::

    avg E|grad F(x)|^2 <= 2 gap/(eta K) + eta L G^2 + L^2 E|e|^2.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import G, K, L, eta, gap
from .ef_memory import ef_memory

ef_sgd = Bound(
    name="ef_sgd",
    quantity="average over K steps of E|grad F(x)|^2, SGD with error feedback, non-convex",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * G**2 + L**2 * ef_memory.value,
    reference=Reference("karimireddy2019", "Theorem II; constants derived here", arxiv="1901.09847"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.SMOOTH,
                Property.BOUNDED_BELOW,
                Property.UNBIASED_GRADIENTS,
                Property.SECOND_MOMENT,
                Property.CONTRACTIVE,
                Property.MEMORY_SGD,
            }
        ),
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "K": 100, "L": 1, "G": 2, "alpha": "0.25"}, "0.640000", "by hand: .2 + .4 + .04"
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(x_k)\|^2",
)
