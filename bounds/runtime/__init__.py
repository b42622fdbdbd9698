"""How long a local step and an averaging take: compute-time laws, expected maxima, communication, the model."""

from .communication import Communication as Communication
from .communication import ParameterServer as ParameterServer
from .communication import Ring as Ring
from .communication import RingGather as RingGather
from .communication import Tree as Tree
from .constant import Constant as Constant
from .exponential import Exponential as Exponential
from .gamma import Gamma as Gamma
from .law import Law as Law
from .law import StepTime as StepTime
from .model import RuntimeModel as RuntimeModel
