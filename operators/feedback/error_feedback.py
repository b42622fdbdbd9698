"""Error feedback: add the error of the last message to the next vector."""

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
class ErrorFeedback(Feedback):
    """Send C(x + e) and keep e <- x + e - decoded; with ScaledSign this is EF-signSGD.

    Parameters
    ----------
    operator : Operator, optional
        Any operator; convergence needs a contractive one.  x is the step itself (learning rate times gradient).

    Notes
    -----
    The sum of all decoded vectors plus e is the sum of all inputs, up to binary32 rounding of e.  If ``E|x|^2 <= G^2``
    and ``E|C(p) - p|^2 <= alpha |p|^2``, then ``E|e|^2 <= 4 alpha/(1 - alpha)^2 G^2`` (Stich et al. 2018; Karimireddy
    et al. 2019).
    """

    operator: Operator = field(default_factory=ScaledSign)

    name = "ef"
    sources = ("stich2018", "karimireddy2019")

    def init(self, d: int) -> State:
        """Return the initial state: residual 0."""
        return {"residual": torch.zeros(d)}

    def encode(self, state: State, x: torch.Tensor, *, key: Key) -> tuple[State, Message]:
        """Compress x plus the residual."""
        flat = vector(x, state, "residual")
        corrected = flat + beside(state, flat)["residual"]
        message = self.operator.encode(corrected, key=key)
        decoded = self.operator.decode(message, d=corrected.numel(), key=key)
        return {"residual": corrected - decoded}, message

    def decode(self, state: State, message: Message, *, d: int, key: Key | None = None) -> tuple[State, torch.Tensor]:
        """Decode the message; the receiver has no state."""
        return state, self.operator.decode(message, d=d, key=key)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(ScaledSign()), cls(TopK(fraction=0.01))
