"""Honest, fast subjects, cut so that a wrong one differs in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bounds.claims import Claim, Unbiased
from operators import CorruptMessage, Key, Operator, Size
from operators.random import uniform

Change = Callable[[np.ndarray, np.ndarray], np.ndarray]
ONE = Unbiased(1.0)


@dataclass(frozen=True)
class Half(Operator):
    """Every coordinate is doubled or dropped, by a fair coin; the vector is sent as it is."""

    name = "half"
    randomness = "private"

    def claim(self, d: int) -> Claim:
        return ONE

    def bits(self, d: int) -> Size:
        return Size.fixed(32 * d)

    def coins(self, key: Key, d: int) -> np.ndarray:
        return uniform(key, d)

    def change(self, y: np.ndarray, x: np.ndarray) -> np.ndarray:
        return y

    def compressed(self, x: np.ndarray, key: Key) -> np.ndarray:
        return self.change(np.where(self.coins(key, x.size) < 0.5, 2 * x, np.float32(0)), x)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        y = np.ascontiguousarray(self.compressed(x, key), np.float32)
        return y.view(np.uint8).copy(), 32 * x.size

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        if bits != 32 * d:
            raise CorruptMessage(f"32 d = {32 * d} bits are sent; got {bits}")
        y = payload[: 4 * d].copy().view(np.float32)
        if not np.isfinite(y).all():
            raise CorruptMessage("a value is not finite")
        return y

    @classmethod
    def examples(cls) -> tuple[Operator, ...]:
        return (cls(),)


def operator(parent: type[Operator] = Half, **methods: Any) -> Operator:
    """Return the parent with some methods replaced."""
    return type("Wrong", (parent,), methods)()


def changed(change: Change) -> Operator:
    """Return ``Half`` with the vector that it sends changed by ``change(y, x)``."""
    return operator(change=lambda self, y, x: change(y.copy(), x))


def half(x: torch.Tensor) -> torch.Tensor:
    """The same as a plain function, with torch's global stream."""
    return 2 * x * (torch.rand(x.shape) < 0.5)


def function(change: Change) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return ``half`` with its output changed by ``change(y, x)``."""

    def wrong(x: torch.Tensor) -> torch.Tensor:
        y = change(half(x).numpy().copy(), x.numpy().copy())
        return torch.from_numpy(np.asarray(y, np.float32))

    return wrong


@dataclass(frozen=True)
class Wrong:
    """A wrong subject: what a user would hand to ``check``, and what is claimed of it."""

    kind: str
    what: str
    subject: Any
    claim: Any = None

    @property
    def form(self) -> str:
        return "Operator" if isinstance(self.subject, Operator) else "function"


def both(kind: str, changes: dict[str, Change]) -> list[Wrong]:
    """Return each change as an Operator and as a function."""
    return [
        Wrong(kind, what, subject, claim)
        for what, change in changes.items()
        for subject, claim in ((changed(change), None), (function(change), ONE))
    ]
