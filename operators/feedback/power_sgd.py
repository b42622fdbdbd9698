"""PowerSGD: low-rank factors with a warm-started power iteration and error feedback."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from ..compressors.identity import Identity
from ..compressors.low_rank import LowRank
from ..compressors.random_k import pack_values
from ..inputs import canonical
from ..key import Key
from ..message import Message
from ..operator import Size
from ..quantisers.thin_products import unit_columns
from ..random import normal
from .feedback import Feedback, State, vector

NUDGE = 0.01  # costs at most 1e-4 of the captured energy; removes a bad start within some hundred messages


@dataclass(frozen=True)
class PowerSGD(Feedback):
    """Send P = orth(M Q) and Q' = M^T P for M = x + e read as a matrix; keep e <- M - P Q'^T and Q <- Q'.

    Parameters
    ----------
    rank : int, optional
        r >= 1.
    shape : tuple of int or None, optional
        (m, n) with m n = d, or None for a near-square matrix.  The messages are those of ``LowRank``.  x is the step
        itself (learning rate times gradient).
    exact_steps : int, optional
        Number of first messages that send x itself, >= 0: ``start_powerSGD_iter`` of torch's ``PowerSGDState``.

    Raises
    ------
    ValueError
        For parameters that ``LowRank`` rejects, and exact_steps < 0.

    Notes
    -----
    Q is the warm start: over a slowly changing M the factors tend to the leading singular vectors.  Its columns are
    kept at length 1, redrawn where they are zero (at first, and where M had a smaller rank).  The warm start alone
    contracts nothing: with M = diag(1, h) and Q = e_2, P stays e_2 and the error ``1/(1 + h^2) |M|^2`` stays.  Error
    feedback is therefore part of the method.  It does not suffice either: the residual then grows along e_1 without
    bound, because M e_2 stays along e_2.  So ``NUDGE`` times a new Gaussian direction is added to Q, which the grown
    residual turns towards itself.  The sum of all decoded vectors plus e is the sum of all inputs (Vogels et al. 2019,
    without the nudge). 32 r (m + n) bits.
    """

    rank: int = 1
    shape: tuple[int, int] | None = None
    exact_steps: int = 0

    name = "powersgd"
    sources = ("vogels2019",)

    def __post_init__(self) -> None:
        LowRank(self.rank, self.shape)
        if self.exact_steps < 0:
            raise ValueError(f"exact_steps must be >= 0; got exact_steps = {self.exact_steps}: give 0 for none")

    @property
    def operator(self) -> LowRank:  # type: ignore[override]
        """Stateless operator with the same messages."""
        return LowRank(self.rank, self.shape)

    def bits(self, d: int) -> Size:
        """Return the size of the factors; with exact steps, that of the longest message."""
        size = self.operator.bits(d)
        return size if not self.exact_steps or size == Size.fixed(32 * d) else Size(None, 32 * d, 32 * d)

    def init(self, d: int) -> State:
        """Return the initial state: zero residual, zero start, and message 0 if the first ones are exact."""
        state = {"residual": torch.zeros(d), "start": torch.zeros(self.operator.matrix_shape(d)[1], self.rank)}
        return state | ({"step": torch.tensor(0)} if self.exact_steps else {})

    def encode(self, state: State, x: torch.Tensor, *, key: Key) -> tuple[State, Message]:
        """Send one power iteration on x plus the residual."""
        gradient = vector(x, state, "residual")
        corrected = gradient + state["residual"].to(gradient.device)
        flat, d, operator = canonical(corrected), corrected.numel(), self.operator
        counted = counted_step(state)
        if operator.is_exact(d) or is_exact_step(state, self.exact_steps):
            message, start = Identity().encode(corrected, key=key), state["start"]
        else:
            p, q = operator.factors(flat, nudged(state["start"].double().numpy(), key))
            payload, bits = pack_values(np.concatenate([p.reshape(-1), q.reshape(-1)]))
            message = Message(torch.from_numpy(payload).to(corrected.device), bits)
            start = torch.from_numpy(unit_columns(q.astype(np.float64)))  # used by the step on the CPU
        return {"residual": corrected - self._decoded(message, d), "start": start, **counted}, message

    def decode(self, state: State, message: Message, *, d: int, key: Key | None = None) -> tuple[State, torch.Tensor]:
        """Decode the product of the factors, or x itself; the receiver has no state."""
        return state, self._decoded(message, d)

    def _decoded(self, message: Message, d: int) -> torch.Tensor:
        """Decode by the length: factors are shorter than x itself."""
        exact = self.exact_steps > 0 and message.bits == 32 * d
        return (Identity() if exact else self.operator).decode(message, d=d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(4), cls(exact_steps=2)


def is_exact_step(state: State, exact_steps: int) -> bool:
    """Return whether the next message of this state sends the vector itself."""
    return exact_steps > 0 and int(state["step"]) < exact_steps


def counted_step(state: State) -> State:
    """Return the count of messages after one more; empty where a state counts none."""
    return {"step": state["step"] + 1} if "step" in state else {}


def nudged(start: np.ndarray, key: Key) -> np.ndarray:
    """Perturb the warm start, shape (n, r), by a small Gaussian direction; redraw columns that are zero."""
    fresh = normal(key, start.size).reshape(start.shape) / math.sqrt(len(start))
    return np.where(start.any(axis=0), start + NUDGE * fresh, fresh)
