"""Fixed-length codes at finite blocklength: the normal approximation for a Gaussian vector.

The dispersion of the Gaussian source is log2(e)^2/2, so the least number of bits is d/2 log2(1/nmse) +
sqrt(d/2) log2(e) Q^-1(miss) + O(log d).  Quoted; it lies between ``gaussian_block_converse`` and
``gaussian_block_miss`` inverted, which bound it rigorously.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.normal import NormalUpperQuantile
from ..symbols import d, miss, nmse

gaussian_block_normal = Bound(
    name="gaussian_block_normal",
    quantity="approximate least bits of a block code, up to O(log d)",
    side=Side.TIGHT,
    value=-d / 2 * sp.log(nmse, 2) + sp.sqrt(d / 2) / sp.log(2) * NormalUpperQuantile(miss),
    reference=Reference("kostina2012", "Gaussian dispersion", arxiv="1102.3944"),
    status=Status.RECALLED,
    setting=Setting(frozenset({Property.GAUSSIAN_SOURCE}), Conclusion.BLOCK_LENGTH, known_up_to="O(log d) bits"),
    examples=(
        Example(
            {"d": 100, "miss": "0.01", "nmse": "0.25"},
            "123.7319923281564136414652",
            "inverse error function with 40 digits",
        ),
        Example(
            {"d": 1000, "miss": "0.01", "nmse": "0.25"},
            "1075.047149170616392859342",
            "inverse error function with 40 digits",
        ),
    ),
    unit="bit",
    latex_name=r"b^*",
)
