"""An operator without memory as a Feedback, and the warning where that loses a biased one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import torch

from bounds.claims import Contractive

from ..key import Key
from ..message import Message
from ..operator import Operator
from .feedback import Feedback, State


@dataclass(frozen=True)
class Memoryless(Feedback):
    """Feedback interface of an operator, without state at either end.

    Parameters
    ----------
    operator : Operator
        Operator that compresses each message.
    """

    operator: Operator

    name = "memoryless"

    def init(self, d: int) -> State:
        return {}

    def encode(self, state: State, x: torch.Tensor, *, key: Key) -> tuple[State, Message]:
        """Return the operator's message."""
        return state, self.operator.encode(x, key=key)

    def decode(self, state: State, message: Message, *, d: int, key: Key | None = None) -> tuple[State, torch.Tensor]:
        """Decode with the operator."""
        return state, self.operator.decode(message, d=d, key=key)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        from ..compressors.scaled_sign import ScaledSign

        return (cls(ScaledSign()),)


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
