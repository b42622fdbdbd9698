"""Expected bits of Spherical Compression: the published form, within 3 bits of the optimum.

The encoder sends the norm (a binary32 without its sign, 31 bits) and the index of the first of shared uniform unit
vectors v_n with ``<x/|x|, v_n>`` >= sqrt(1 - alpha); the decoder outputs ``|x| sqrt(1 - alpha) v_n``, whose squared
error is at most ``(1 - 2c^2 + c^2)|x|^2 = alpha |x|^2`` with c^2 = 1 - alpha.  The index is geometric with success
probability P(alpha, d). The geometric law has entropy at most -log2 P + log2(e), and its best Golomb code is a Huffman
code (Gallager and van Voorhis 1975), so at most 1 bit longer: log2(e) + 1 = 2.443 < 3.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.cap_probability import neg_log2_cap_of
from ..symbols import alpha, d

spherical_compression_published_bits = Bound(
    name="spherical_compression_published_bits",
    quantity="expected bits of one message of Spherical Compression, norm included",
    side=Side.UPPER,
    value=34 + neg_log2_cap_of(alpha, d),
    reference=Reference("albasyoni2020", "Spherical Compression", arxiv="2010.03246"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.SPHERICAL_COMPRESSION}), Conclusion.MEAN_MESSAGE),
    examples=(Example({"alpha": "0.1", "d": 10}, "51.83766175141111179949", "-log2 P from a 40-digit table"),),
    unit="bit",
    latex_name=r"E\,b",
)
