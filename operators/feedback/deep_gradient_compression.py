"""Deep Gradient Compression: momentum, clipping and warm-up around top-k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import torch

from ..compressors.top_k import TopK
from ..key import Key
from ..message import Message
from ..operator import Operator, Size
from .feedback import Feedback, State, beside, vector

WARM_UP = (0.25, 0.0625, 0.015625, 0.004)  # kept fractions of the first epochs in Lin et al. 2018


@dataclass(frozen=True)
class DeepGradientCompression(Feedback):
    """u <- m u + g, v <- v + u; send the top k of ``|v|``; clear u and v where sent (momentum factor masking).

    Parameters
    ----------
    fraction : float, optional
        Share of the coordinates that are kept after the warm-up.
    momentum : float, optional
        m, 0 <= m < 1.
    clip : float or None, optional
        Largest norm of the whole gradient, or None.  With n workers each local gradient is clipped to clip/sqrt(n)
        before it is accumulated (local gradient clipping).
    workers : int, optional
        Number n of workers.
    warm_up : tuple of float, optional
        Fractions of the first stages, each ``stage`` messages long; () for none.
    stage : int, optional
        Number of messages per stage of the warm-up.

    Notes
    -----
    x is the gradient.  Both ends count the messages, so the number of kept entries needs no bits.  With m = 0 it
    is error feedback on top-k; the sum of all decoded vectors plus v is then the sum of all (clipped) inputs
    (Lin et al. 2018).
    """

    fraction: float = 0.001
    momentum: float = 0.9
    clip: float | None = None
    workers: int = 1
    warm_up: tuple[float, ...] = ()
    stage: int = 1

    name = "dgc"
    sources = ("lin2018",)

    def __post_init__(self) -> None:
        for fraction in (self.fraction, *self.warm_up):
            TopK(fraction=fraction)
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must satisfy 0 <= momentum < 1; got momentum = {self.momentum}")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"clip must be positive, or None; got clip = {self.clip}")
        for name in ("workers", "stage"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; got {name} = {getattr(self, name)}")

    @property
    def operator(self) -> Operator:  # type: ignore[override]
        """Top-k after the warm-up."""
        return TopK(fraction=self.fraction)

    def operator_at(self, step: int) -> Operator:
        """Return top-k with the fraction of message number ``step``.

        Parameters
        ----------
        step : int
            Number of the message, from 0.
        """
        stage = step // self.stage
        return TopK(fraction=self.warm_up[stage]) if stage < len(self.warm_up) else self.operator

    def bits(self, d: int) -> Size:
        """Return the size of the longest message of any stage."""
        sizes = [TopK(fraction=fraction).bits(d) for fraction in (*self.warm_up, self.fraction)]
        worst = max(size.worst_case or 0 for size in sizes)
        return Size(None, worst, worst)

    def init(self, d: int) -> State:
        """Return the initial state: zero momentum, zero accumulator, message 0."""
        return {"u": torch.zeros(d), "v": torch.zeros(d), "step": torch.tensor(0)}

    def init_receiver(self, d: int) -> State:
        """Return the initial state: message 0."""
        return {"step": torch.tensor(0)}

    def encode(self, state: State, x: torch.Tensor, *, key: Key) -> tuple[State, Message]:
        """Accumulate the gradient and send the largest entries."""
        g = vector(x, state, "v")
        state = beside(state, g)
        if self.clip is not None:
            limit, norm = self.clip / math.sqrt(self.workers), float(g.double().norm())
            g = g * (limit / norm) if norm > limit else g
        u = self.momentum * state["u"] + g
        v = state["v"] + u
        operator = self.operator_at(int(state["step"]))
        message = operator.encode(v, key=key)
        sent = operator.decode(message, d=v.numel()) != 0
        return {"u": torch.where(sent, 0, u), "v": torch.where(sent, 0, v), "step": state["step"] + 1}, message

    def decode(self, state: State, message: Message, *, d: int, key: Key | None = None) -> tuple[State, torch.Tensor]:
        """Decode the transmitted entries."""
        decoded = self.operator_at(int(state["step"])).decode(message, d=d)
        return {"step": state["step"] + 1}, decoded

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(fraction=0.01, clip=1.0, workers=4, warm_up=WARM_UP, stage=2)
