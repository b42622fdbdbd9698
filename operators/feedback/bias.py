"""A warning where messages of a biased operator are averaged without error feedback."""

from __future__ import annotations

import warnings

from bounds.claims import Contractive

from ..operator import Operator
from .feedback import Feedback
from .memoryless import Memoryless

ROUNDING = 0.02  # largest alpha of a rounding to 8 bits or more, whose bias is that of a smaller dtype


class BiasWarning(UserWarning):
    """Warns that the mean of biased messages keeps an error, whatever the number of ranks and steps."""


def warn_of_bias(*methods: object, d: int) -> None:
    """Warn of each operator that claims only a contraction and has no memory.

    An unbiased operator, a method with memory, signs without a scale and a rounding to 8 bits or more cause no warning.

    Parameters
    ----------
    *methods : Operator or Feedback or Summed or None
        What compresses each stage of an exchange.
    d : int
        Number of coordinates, >= 1.
    """
    for method in dict.fromkeys(method.operator if isinstance(method, Memoryless) else method for method in methods):
        if isinstance(method, Operator) and not isinstance(method, Feedback):
            claim = method.claim(d)
            if isinstance(claim, Contractive) and claim.alpha > ROUNDING:
                warnings.warn(
                    f"the mean of messages of {method!r} keeps an error, because the operator is biased and nothing "
                    f"corrects it: use ErrorFeedback({method!r})",
                    BiasWarning,
                    stacklevel=3,
                )
