"""Rules for the number of local steps, all pure: (state, observation) -> (state, tau)."""

from .adacomm import AdaComm as AdaComm
from .adacomm import AdaCommState as AdaCommState
from .candidate import Candidate as Candidate
from .fixed import Fixed as Fixed
from .gradient_retention import GradientRetention as GradientRetention
from .gradient_retention import GradientRetentionState as GradientRetentionState
from .measured import Measured as Measured
from .post_local import PostLocal as PostLocal
from .post_local import PostLocalState as PostLocalState
from .power_law import Decreasing as Decreasing
from .power_law import Increasing as Increasing
from .power_law import RoundState as RoundState
from .power_law import increasing_converges as increasing_converges
from .qsr import QSR as QSR
from .rate_and_retention import RateAndRetention as RateAndRetention
from .rate_and_retention import RateAndRetentionState as RateAndRetentionState
from .schedule import Observation as Observation
from .schedule import Schedule as Schedule
from .schedule import State as State
from .stl_sgd import StlSgd as StlSgd
from .stl_sgd import StlSgdState as StlSgdState
