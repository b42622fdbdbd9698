"""An operator in the clothes of a feedback method, for code that treats both alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch

from ..key import Key
from ..message import Message
from ..operator import Operator
from .feedback import Feedback, State


@dataclass(frozen=True)
class Memoryless(Feedback):
    """The operator itself: nothing is remembered on either end.

    Parameters
    ----------
    operator : Operator
        Any.
    """

    operator: Operator

    name = "memoryless"

    def init(self, d: int) -> State:
        """Return an empty state."""
        return {}

    def encode(self, state: State, x: torch.Tensor, *, key: Key) -> tuple[State, Message]:
        """Return the operator's message."""
        return state, self.operator.encode(x, key=key)

    def decode(self, state: State, message: Message, *, d: int, key: Key | None = None) -> tuple[State, torch.Tensor]:
        """Return the operator's reconstruction."""
        return state, self.operator.decode(message, d=d, key=key)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return scaled signs."""
        from ..compressors.scaled_sign import ScaledSign

        return (cls(ScaledSign()),)
