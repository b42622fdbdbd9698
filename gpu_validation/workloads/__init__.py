"""Problems to train on, one file each."""

from .digits import LogisticRegression as LogisticRegression
from .digits import SmallNetwork as SmallNetwork
from .quadratic import Quadratic as Quadratic
from .workload import Constants as Constants
from .workload import Description as Description
from .workload import Draw as Draw
from .workload import Workload as Workload
