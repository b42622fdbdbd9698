"""Which compressor and how many local steps: ``plan`` ranks candidates under a runtime model."""

from .choose import plan as plan
from .coverage import coverage as coverage
from .records import Candidate as Candidate
from .records import Conditioned as Conditioned
from .records import Infeasible as Infeasible
from .records import Option as Option
from .records import Plan as Plan
from .records import Smooth as Smooth
