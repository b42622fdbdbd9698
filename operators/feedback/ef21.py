"""EF21: both ends track an estimate, and messages compress the change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import torch

from ..compressors.scaled_sign import ScaledSign
from ..compressors.top_k import TopK
from ..key import Key
from ..message import Message
from ..operator import Operator
from .feedback import Feedback, State, beside, vector


@dataclass(frozen=True)
class EF21(Feedback):
    """Send C(x - g); both ends set g <- g + decoded, and the receiver uses g.

    Parameters
    ----------
    operator : Operator, optional
        Contractive.  x is the gradient itself.  Both ends start at g = 0 and add the same decoded binary32 numbers in
        the same order, so their estimates are equal bit for bit.  On a constant x the error ``|g - x|^2`` shrinks by
        the factor alpha per message (Richtarik et al. 2021).
    """

    operator: Operator = field(default_factory=lambda: TopK(fraction=0.01))

    name = "ef21"
    sources = ("richtarik2021",)

    def init(self, d: int) -> State:
        """Return the initial state: estimate 0."""
        return {"estimate": torch.zeros(d)}

    def init_receiver(self, d: int) -> State:
        """Return the initial state of the sender."""
        return self.init(d)

    def encode(self, state: State, x: torch.Tensor, *, key: Key) -> tuple[State, Message]:
        """Compress the difference to the estimate."""
        flat = vector(x, state, "estimate")
        state = beside(state, flat)
        message = self.operator.encode(flat - state["estimate"], key=key)
        state, _ = self.decode(state, message, d=state["estimate"].numel(), key=key)
        return state, message

    def decode(self, state: State, message: Message, *, d: int, key: Key | None = None) -> tuple[State, torch.Tensor]:
        """Return the new state and the new estimate."""
        difference = self.operator.decode(message, d=d, key=key)
        estimate = beside(state, difference)["estimate"] + difference
        return {"estimate": estimate}, estimate

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(TopK(fraction=0.01)), cls(ScaledSign())
