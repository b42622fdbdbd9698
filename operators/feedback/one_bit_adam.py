"""1-bit Adam: exact gradients during a warm-up, then one bit of momentum per coordinate."""

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
    """Send C(b1 m + (1 - b1) x + e) after ``warm_up`` exact messages; both ends set m to the decoded vector.

    Parameters
    ----------
    warm_up : int, optional
        Number of exact messages at the start, at least 1.
    operator : Operator, optional
        C, contractive.
    beta1 : float, optional
        b1 of the momentum, in [0, 1).
    beta2 : float, optional
        b2 of the variance, in [0, 1).
    epsilon : float, optional
        Positive constant in the denominator of ``direction``.

    Raises
    ------
    ValueError
        For a parameter out of range.

    Notes
    -----
    x is the gradient; the decoded vector is the momentum m.  In the warm-up a message is x itself, and both ends set
    m <- b1 m + (1 - b1) x and v <- b2 v + (1 - b2) x^2.  Afterwards v is frozen, and the sender keeps
    e <- b1 m + (1 - b1) x + e - decoded.  There is no bias correction; where v is 0, only epsilon divides
    (Tang et al. 2021).  Both ends do the same computation, so m and v are equal bit for bit.  Several workers average
    the decoded momenta and pass them to ``agree`` at both ends.  A message has 32 d bits in the warm-up, then those of
    the operator, d + 32 with ScaledSign.
    """

    warm_up: int = 100
    operator: Operator = field(default_factory=ScaledSign)
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    name = "one_bit_adam"
    sources = ("tang2021",)

    def __post_init__(self) -> None:
        if self.warm_up < 1:
            raise ValueError(f"warm_up must be at least 1; got warm_up = {self.warm_up}: send one exact message")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must satisfy 0 <= {name} < 1; got {name} = {getattr(self, name)}")
        if self.operator.carried_bits(1):
            raise ValueError(f"operator must have a wire format; got {self.operator}: take one of the catalogue")
        if not self.epsilon > 0:
            raise ValueError(f"epsilon must be positive; got epsilon = {self.epsilon}")

    def operator_at(self, step: int) -> Operator:
        """Return the operator of message number ``step``.

        Parameters
        ----------
        step : int
            Number of the message, from 0.
        """
        return Identity() if step < self.warm_up else self.operator

    def bits(self, d: int) -> Size:
        """Return the size of the longest message of the two stages."""
        sizes = Identity().bits(d), self.operator.bits(d)
        worst = None if sizes[1].worst_case is None else max(size.worst_case or 0 for size in sizes)
        return Size(None, worst, worst)

    def init(self, d: int) -> State:
        """Return the initial state: zero momentum, variance and residual, message 0."""
        return {**self.init_receiver(d), "error": torch.zeros(d)}

    def init_receiver(self, d: int) -> State:
        """Return the initial state without the residual."""
        return {"momentum": torch.zeros(d), "variance": torch.zeros(d), "step": torch.tensor(0)}

    def encode(self, state: State, x: torch.Tensor, *, key: Key) -> tuple[State, Message]:
        """Send the gradient in the warm-up, then the momentum plus the residual."""
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
        """Return the new state and the momentum after this message."""
        decoded = self.operator_at(int(state["step"])).decode(message, d=d, key=key)
        state = beside(state, decoded)
        m, v = decoded, state["variance"]
        if int(state["step"]) < self.warm_up:
            m = self.beta1 * state["momentum"] + (1 - self.beta1) * decoded
            v = self.beta2 * v + (1 - self.beta2) * decoded.square()
        return {"momentum": m, "variance": v, "step": state["step"] + 1}, m

    def direction(self, state: State, momentum: torch.Tensor) -> torch.Tensor:
        """Return Adam's step without the learning rate: momentum / (sqrt(v) + epsilon), shape (d,).

        Parameters
        ----------
        state : State
            State of this end.
        momentum : tensor
            The momentum, shape (d,).
        """
        return momentum / (state["variance"].sqrt() + self.epsilon)

    def agree(self, state: State, momentum: torch.Tensor, variance: torch.Tensor | None = None) -> State:
        """Replace the momentum, and in the warm-up the variance, by the average of all workers.

        Parameters
        ----------
        state : State
            State of this end.
        momentum : tensor
            The momentum, shape (d,).
        variance : tensor or None, optional
            Of the averaged gradients, shape (d,); needed at the end of the warm-up, since each worker's own state has
            that of its own gradients.  Do the same at both ends.
        """
        return {**state, "momentum": momentum, **({} if variance is None else {"variance": variance})}

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(warm_up=2), cls()
