"""Adapter from Operator to the Feedback interface."""

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
