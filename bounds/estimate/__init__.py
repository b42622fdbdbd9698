"""The constants of the bounds from samples of a run: each with an interval and the bias one knows of (numpy only)."""

from .delay import DelayFit as DelayFit
from .delay import delay_by_fenced_regression as delay_by_fenced_regression
from .dispersion import deflation as deflation
from .dispersion import dispersion as dispersion
from .dispersion import momentum_spread as momentum_spread
from .dispersion import variance_from_dispersion as variance_from_dispersion
from .estimate import Estimate as Estimate
from .estimate import mean_estimate as mean_estimate
from .expected_max import batch_means as batch_means
from .expected_max import expected_max_of_samples as expected_max_of_samples
from .expected_max import worker_effect as worker_effect
from .gap import gap_from_losses as gap_from_losses
from .noise_scale import NoiseScale as NoiseScale
from .noise_scale import noise_scale as noise_scale
from .noise_scale import variance_from_half_batches as variance_from_half_batches
from .propagation import assumed as assumed
from .propagation import through as through
from .smoothness import smoothness_by_power_iteration as smoothness_by_power_iteration
from .smoothness import smoothness_by_secants as smoothness_by_secants
from .student import student_quantile as student_quantile
