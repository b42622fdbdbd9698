"""Error feedback: the memory of what was not sent stays bounded.

Setting.  p = eta g + e, C(p) is sent, e+ = p - C(p), e_1 = 0; ``E|C(p) - p|^2 <= alpha |p|^2`` and ``E|g|^2 <= G^2``.

Derivation.  In the norm ``|v| = sqrt(E|v|^2)``, ``|e+| <= sqrt(alpha) |eta g + e| <= sqrt(alpha)(eta G + |e|)``, hence
``|e| <= eta G sqrt(alpha)/(1 - sqrt(alpha))`` at every step.  Never above the usual 4 alpha/(1 - alpha)^2 eta^2 G^2,
since 1 + sqrt(alpha) <= 2; four times below it for small alpha.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import G, alpha, eta

ef_memory = Bound(
    name="ef_memory",
    quantity="E|e|^2, the squared memory of error feedback at any step",
    side=Side.UPPER,
    value=eta**2 * G**2 * alpha * (1 + sp.sqrt(alpha)) ** 2 / (1 - alpha) ** 2,
    reference=Reference("karimireddy2019", "Lemma 3, sharpened", arxiv="1901.09847"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.SECOND_MOMENT, Property.CONTRACTIVE, Property.MEMORY}), Conclusion.ERROR_MEMORY
    ),
    examples=(Example({"alpha": "0.25", "eta": "0.1", "G": 2}, "0.0400000", "by hand: .04 * .25/.25"),),
    latex_name=r"E\|e\|^2",
)
