"""Models whose error is known exactly: what a convergence bound has to stay above.

One model a module: ``additive`` (model A), ``multiplicative`` (B), ``heterogeneous`` (C), ``third_order``,
``compressed``; ``looseness`` divides a bound by the exact value.
"""

from .quadratic import Quadratic as Quadratic
from .quadratic import reference_quadratic as reference_quadratic
