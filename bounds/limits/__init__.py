"""Rate-distortion limits, a family in a file; every Bound is exported under its name."""

from .inner_products import eden_inner_product as eden_inner_product
from .inner_products import eden_inner_product_limit as eden_inner_product_limit
from .inner_products import inner_product_limit as inner_product_limit
from .inner_products import rabitq_inner_product as rabitq_inner_product
from .inner_products import rabitq_inner_product_worst as rabitq_inner_product_worst
from .inner_products import turboquant_inner_product as turboquant_inner_product
from .inner_products import turboquant_inner_product_limit as turboquant_inner_product_limit
from .inner_products import turboquant_inner_product_worst as turboquant_inner_product_worst
from .inner_products import turboquant_mse as turboquant_mse
from .layers import Allocation as Allocation
from .layers import WaterFilling as WaterFilling
from .layers import feedback_water_filling as feedback_water_filling
from .layers import layer_bits as layer_bits
from .layers import unbiased_water_filling as unbiased_water_filling
from .layers import water_filling as water_filling
from .means import exact_sum_rate as exact_sum_rate
from .means import gathered_rate as gathered_rate
from .means import mean_estimation as mean_estimation
from .means import mean_estimation_bits as mean_estimation_bits
from .means import mean_exchange_rate as mean_exchange_rate
from .means import mean_received_rate as mean_received_rate
from .means import shared_scale_rate as shared_scale_rate
from .means import two_shot_rate as two_shot_rate
from .random_vectors import gaussian_bits as gaussian_bits
from .random_vectors import gaussian_block_converse as gaussian_block_converse
from .random_vectors import gaussian_block_miss as gaussian_block_miss
from .random_vectors import gaussian_block_normal as gaussian_block_normal
from .random_vectors import sphere_bits as sphere_bits
from .runs import total_bits as total_bits
from .runs import total_bits_in_expectation as total_bits_in_expectation
from .sources import dithered_gaussian_rate as dithered_gaussian_rate
from .sources import dithered_rate as dithered_rate
from .sources import gaussian_mixture_rate as gaussian_mixture_rate
from .sources import gaussian_rate as gaussian_rate
from .sources import generalised_gaussian_rate as generalised_gaussian_rate
from .sources import laplace_rate as laplace_rate
from .sources import lattice_gap as lattice_gap
from .sources import sparse_source_rate as sparse_source_rate
from .sources import student_rate as student_rate
from .sources import uniform_scalar_gap as uniform_scalar_gap
from .sparse_dithering import sparse_dithering_bits as sparse_dithering_bits
from .sparse_dithering import sparse_dithering_coded_bits as sparse_dithering_coded_bits
from .sparse_dithering import sparse_dithering_random_bits as sparse_dithering_random_bits
from .sparse_dithering import (
    sparse_dithering_random_coarse_bits as sparse_dithering_random_coarse_bits,
)
from .sparse_dithering import sparse_dithering_random_whole_bits as sparse_dithering_random_whole_bits
from .sparse_dithering import sparse_dithering_tenth_bits as sparse_dithering_tenth_bits
from .sparse_dithering import sparse_dithering_tight_bits as sparse_dithering_tight_bits
from .sparse_dithering import sparse_dithering_whole_bits as sparse_dithering_whole_bits
from .spherical_compression import spherical_compression_bits as spherical_compression_bits
from .spherical_compression import (
    spherical_compression_published_bits as spherical_compression_published_bits,
)
from .spherical_compression import spherical_compression_simple_bits as spherical_compression_simple_bits
from .unbiased import fixed_length_bracket as fixed_length_bracket
from .unbiased import gaussian_unbiased_bits as gaussian_unbiased_bits
from .unbiased import shared_unbiased_bits as shared_unbiased_bits
from .unbiased import sphere_unbiased_bits as sphere_unbiased_bits
from .unbiased import unbiased_bits as unbiased_bits
from .unbiased import unbiased_bracket as unbiased_bracket
from .worst_case import average_strict_bits as average_strict_bits
from .worst_case import contractive_bits as contractive_bits
from .worst_case import covering_bits as covering_bits
from .worst_case import covering_midpoint_bits as covering_midpoint_bits
from .worst_case import sparse_worst_case_bits as sparse_worst_case_bits
from .worst_case import topk_index_bits as topk_index_bits
from .worst_case import worst_case_bits as worst_case_bits
