"""How long a local step and an averaging take: compute-time laws, expected maxima, communication, the model."""

from .autoregressive import AutoregressiveLogNormal as AutoregressiveLogNormal
from .communication import Communication as Communication
from .communication import ParameterServer as ParameterServer
from .communication import Ring as Ring
from .communication import RingGather as RingGather
from .communication import Tree as Tree
from .communication import TreeGather as TreeGather
from .constant import Constant as Constant
from .empirical import Empirical as Empirical
from .exponential import Exponential as Exponential
from .gamma import Gamma as Gamma
from .law import Law as Law
from .law import StepTime as StepTime
from .log_normal import LogNormal as LogNormal
from .model import RuntimeModel as RuntimeModel
from .normal import approximate_expected_max as approximate_expected_max
from .normal import normal_max_moment as normal_max_moment
from .pareto import Pareto as Pareto
from .persistent import PersistentStragglers as PersistentStragglers
from .rounds import Rounds as Rounds
from .rounds import rounds_by as rounds_by
from .rounds import whole_rounds as whole_rounds
from .shifted_exponential import ShiftedExponential as ShiftedExponential
from .shifted_exponential import ShiftedGamma as ShiftedGamma
from .uniform import Uniform as Uniform
from .weibull import Weibull as Weibull
