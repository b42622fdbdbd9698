"""Rate-distortion limits, one per file; each exports the Bound of its name."""

from .contractive_bits import contractive_bits as contractive_bits
from .gaussian_bits import gaussian_bits as gaussian_bits
from .gaussian_unbiased_bits import gaussian_unbiased_bits as gaussian_unbiased_bits
from .unbiased_bits import unbiased_bits as unbiased_bits
from .worst_case_bits import worst_case_bits as worst_case_bits
