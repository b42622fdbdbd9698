from .counters import Counters as Counters
from .gather import Gather as Gather
from .gather import Refusal as Refusal
from .hook import CompressedGradients as CompressedGradients
from .register import register as register
from .scatter import Scatter as Scatter
from .summed import SummedGradients as SummedGradients
from .summed import register_summed as register_summed
