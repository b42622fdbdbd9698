"""Models whose error is known exactly: what a convergence bound has to stay above.

One model a module: ``additive`` (model A), ``multiplicative`` (B), ``heterogeneous`` (C), ``third_order``,
``compressed``, ``two_shot`` (compressed both ways), ``linear`` (any linear method).  ``outer`` has the outer optimizers
and merge rules of the DiLoCo family.  ``fluctuation`` says how far single runs of A and B scatter.  ``looseness``
divides a bound by the exact value.
"""

from . import additive as additive
from . import compressed as compressed
from . import fluctuation as fluctuation
from . import heterogeneous as heterogeneous
from . import linear as linear
from . import multiplicative as multiplicative
from . import outer as outer
from . import third_order as third_order
from . import two_shot as two_shot
from .looseness import arguments as arguments
from .looseness import looseness as looseness
from .quadratic import Quadratic as Quadratic
from .quadratic import reference_quadratic as reference_quadratic
