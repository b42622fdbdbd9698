"""Rate-distortion limits, one per file; each exports the Bound of its name."""

from .unbiased_bits import unbiased_bits as unbiased_bits
