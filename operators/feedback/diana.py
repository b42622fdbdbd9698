"""DIANA: both ends track a shift, and messages compress the difference to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import torch

from bounds.claims import Unbiased

from ..compressors.natural_compression import NaturalCompression
from ..compressors.qsgd import QSGD
from ..compressors.random_k import RandomK
from ..key import Key
from ..message import Message
from ..operator import Operator
from .feedback import Feedback, State, beside, vector


@dataclass(frozen=True)
class DIANA(Feedback):
    """Send q = C(x - h); the receiver uses h + q, and both ends set h <- h + alpha q.

    Parameters
    ----------
    operator : Operator, optional
        Unbiased with some omega.
    alpha : float or None, optional
        None for 1/(1 + omega), or a number in (0, 1/(1 + omega)].

    Notes
    -----
    x is the gradient itself.  h + q is an unbiased estimate of x whatever h is.  On a constant x, ``E|h' - x|^2 <= (1 -
    2 alpha + alpha^2 (1 + omega)) |h - x|^2 <= (1 - alpha) |h - x|^2``, so the variance ``omega |h - x|^2`` vanishes,
    while the variance of compressed gradients stays (Mishchenko et al. 2019).  Both ends start at h = 0 and add the
    same decoded binary32 numbers in the same order, so their shifts are equal bit for bit. ``init`` raises ValueError
    for an operator that is not unbiased, or a larger alpha.
    """

    operator: Operator = field(default_factory=lambda: RandomK(fraction=0.1))
    alpha: float | None = None

    name = "diana"
    sources = ("mishchenko2019",)

    def __post_init__(self) -> None:
        if self.alpha is not None and not 0 < self.alpha <= 1:
            raise ValueError(f"alpha must satisfy 0 < alpha <= 1/(1 + omega), or be None; got alpha = {self.alpha}")

    def rate(self, d: int) -> float:
        """Return alpha at dimension d.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        claim = self.operator.claim(d)
        if not isinstance(claim, Unbiased):
            raise ValueError(f"the operator of DIANA must be unbiased at d = {d}; got {self.operator}")
        largest = 1 / (1 + claim.omega)
        if self.alpha is not None and self.alpha > largest:
            raise ValueError(f"alpha must satisfy alpha <= 1/(1 + omega) = {largest:.6g} at d = {d}; got {self.alpha}")
        return largest if self.alpha is None else self.alpha

    def init(self, d: int) -> State:
        """Return the initial state: shift 0."""
        self.rate(d)
        return {"shift": torch.zeros(d)}

    def init_receiver(self, d: int) -> State:
        """Return the initial state of the sender."""
        return self.init(d)

    def encode(self, state: State, x: torch.Tensor, *, key: Key) -> tuple[State, Message]:
        """Compress the difference to the shift."""
        flat = vector(x, state, "shift")
        state = beside(state, flat)
        message = self.operator.encode(flat - state["shift"], key=key)
        state, _ = self.decode(state, message, d=state["shift"].numel(), key=key)
        return state, message

    def decode(self, state: State, message: Message, *, d: int, key: Key | None = None) -> tuple[State, torch.Tensor]:
        """Decode the difference and add the shift."""
        difference = self.operator.decode(message, d=d, key=key)
        state = beside(state, difference)
        return {"shift": state["shift"] + self.rate(d) * difference}, state["shift"] + difference

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(QSGD()), cls(NaturalCompression(), alpha=0.5)
