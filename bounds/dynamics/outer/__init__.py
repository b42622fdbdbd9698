"""Outer optimizers and averaging in flight (DiLoCo and its kin) on quadratics, exactly.

A round has tau local steps at every worker; the mean of the workers' models moves a global model theta by an outer step
(``optimizer``).  A merge rule says when that mean arrives and what happens to the steps done meanwhile (``merge``).
Every rule is an affine map of a few numbers per eigen-direction (``forms``).  From it follow the moments of theta
(``moments``), the largest stable outer rate (``stability``) and the stationary variance (``stationary``).  ``optimum``
is the best rate and momentum of a blocking Nesterov step, and ``search`` that of any rule.
"""

from .forms import AffineRound as AffineRound
from .forms import Forms as Forms
from .merge import Merge as Merge
from .merge import blended as blended
from .merge import merge_of as merge_of
from .moments import expected_loss as expected_loss
from .moments import mean_model as mean_model
from .moments import second_moments as second_moments
from .optimizer import AVERAGING as AVERAGING
from .optimizer import OuterStep as OuterStep
from .optimum import Optimum as Optimum
from .optimum import best_nesterov as best_nesterov
from .probe import ProbedRound as ProbedRound
from .probe import probe as probe
from .probe import probe_of_products as probe_of_products
from .probe import share_of as share_of
from .search import best_outer as best_outer
from .search import eigenvalues as eigenvalues
from .search import worst_factor as worst_factor
from .stability import largest_lr as largest_lr
from .stationary import stationary_variance as stationary_variance
from .stationary import variance_of as variance_of
from .workers import Workers as Workers
