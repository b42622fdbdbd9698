"""1-bit Adam: exact gradients until the variance has settled, then one bit of momentum a coordinate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import torch

from ..compressors.identity import Identity
from ..compressors.scaled_sign import ScaledSign
from ..key import Key
from ..message import Message
from ..operator import Operator, Size
from .feedback import Feedback, State, beside, vector


@dataclass(frozen=True)
class OneBitAdam(Feedback):
    """After ``warm_up`` exact messages send C(b1 m + (1 - b1) x + e); both ends set m to what is decoded.

    Parameters
    ----------
    warm_up : int, optional
        Exact messages at the beginning.
    operator : Operator, optional
        C, contractive.
    beta1 : float, optional
        b1 of the momentum, in [0, 1).
    beta2 : float, optional
        b2 of the variance, in [0, 1).
    epsilon : float, optional
        Positive floor of ``direction``.

    Raises
    ------
    ValueError
        For a parameter out of range.

    Notes
    -----
    x is the gradient; what is decoded is the momentum m.  In the warm-up a message is x itself, and both ends do m <-
    b1 m + (1 - b1) x and v <- b2 v + (1 - b2) x^2; afterwards v is frozen, and the sender keeps e <- b1 m + (1 - b1) x
    + e - decoded.  There is no bias correction; where v is 0, epsilon alone divides (Tang et al. 2021).  Both ends
    count the messages and compute alike, so m and v are equal bit for bit.  Several workers average the decoded momenta
    and ``agree`` on them at both ends of each. 32 d bits a message in the warm-up, then those of the operator, d + 32
    with ScaledSign.
    """

    warm_up: int = 100
    operator: Operator = field(default_factory=ScaledSign)
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    name = "one_bit_adam"

    def __post_init__(self) -> None:
        if self.warm_up < 1:
            raise ValueError(f"warm_up must be at least 1, or there is no variance; got warm_up = {self.warm_up}")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must satisfy 0 <= {name} < 1; got {name} = {getattr(self, name)}")
        if self.operator.carried_bits(1):
            raise ValueError(f"{self.operator} only carries its output, and the warm-up does not: give a real operator")
        if not self.epsilon > 0:
            raise ValueError(f"epsilon must be positive; got epsilon = {self.epsilon}")

    def operator_at(self, step: int) -> Operator:
        """Return what compresses message number ``step``, counted from 0.

        Parameters
        ----------
        step : int
            Number of the message, from 0.
        """
        return Identity() if step < self.warm_up else self.operator

    def bits(self, d: int) -> Size:
        """Return the longest message of the two stages."""
        sizes = Identity().bits(d), self.operator.bits(d)
        worst = None if sizes[1].worst_case is None else max(size.worst_case or 0 for size in sizes)
        return Size(None, worst, worst)

    def init(self, d: int) -> State:
        """Return the state at the start: no momentum, no variance, nothing owed, message 0."""
        return {**self.init_receiver(d), "error": torch.zeros(d)}

    def init_receiver(self, d: int) -> State:
        """Return the same momentum, variance and count as the sender's."""
        return {"momentum": torch.zeros(d), "variance": torch.zeros(d), "step": torch.tensor(0)}

    def encode(self, state: State, x: torch.Tensor, *, key: Key) -> tuple[State, Message]:
        """Send the gradient, or the momentum with what is owed."""
        g, d = vector(x, state, "momentum"), state["momentum"].numel()
        state = beside(state, g)
        operator = self.operator_at(int(state["step"]))
        if int(state["step"]) < self.warm_up:
            message = operator.encode(g, key=key)
            after, _ = self.decode(state, message, d=d, key=key)
            return {**after, "error": state["error"]}, message
        corrected = self.beta1 * state["momentum"] + (1 - self.beta1) * g + state["error"]
        message = operator.encode(corrected, key=key)
        after, momentum = self.decode(state, message, d=d, key=key)
        return {**after, "error": corrected - momentum}, message

    def decode(self, state: State, message: Message, *, d: int, key: Key | None = None) -> tuple[State, torch.Tensor]:
        """Return the momentum after this message."""
        decoded = self.operator_at(int(state["step"])).decode(message, d=d, key=key)
        state = beside(state, decoded)
        m, v = decoded, state["variance"]
        if int(state["step"]) < self.warm_up:
            m = self.beta1 * state["momentum"] + (1 - self.beta1) * decoded
            v = self.beta2 * v + (1 - self.beta2) * decoded.square()
        return {"momentum": m, "variance": v, "step": state["step"] + 1}, m

    def direction(self, state: State, momentum: torch.Tensor) -> torch.Tensor:
        """Return adam's step but for the learning rate: momentum / (sqrt(v) + epsilon), shape (d,).

        Parameters
        ----------
        state : State
            What the method remembers.
        momentum : tensor
            The momentum, shape (d,).
        """
        return momentum / (state["variance"].sqrt() + self.epsilon)

    def agree(self, state: State, momentum: torch.Tensor, variance: torch.Tensor | None = None) -> State:
        """Return the state with the workers' average momentum, and in the warm-up their variance, in place of its own.

        Parameters
        ----------
        state : State
            What the method remembers.
        momentum : tensor
            The momentum, shape (d,).
        variance : tensor or None, optional
            Of the averaged gradients, shape (d,); needed at the end of the warm-up, since each worker's own state has
            that of its own gradients.  Do the same at both ends.
        """
        return {**state, "momentum": momentum, **({} if variance is None else {"variance": variance})}

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return a warm-up of two messages, and one of a hundred."""
        return cls(warm_up=2), cls()
