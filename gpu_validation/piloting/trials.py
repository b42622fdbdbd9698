"""Trials of operators on the gradients of a run: single messages, and error feedback over consecutive steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist

from bounds.claims import Contractive, Unbiased
from operators import ErrorFeedback, Feedback, Key, Operator, compressor, specification
from ratedist.pilots.timings import OperatorTrial

from .timings import codec_of_ranks

CARRIED, SINGLE = 0, 1  # folded into the key


class Trials:
    """Operators and their results so far; the operators have no memory."""

    def __init__(self, operators: Sequence[str | Operator], d: int, key: Key) -> None:
        self.operators = [_memoryless(each) for each in operators]
        self.d, self.key = d, key
        self.bits: list[list[float]] = [[] for _ in self.operators]
        self.nmse: list[list[float]] = [[] for _ in self.operators]
        self.residuals: list[list[float]] = [[] for _ in self.operators]
        self._methods = [ErrorFeedback(each) if _may_be_fed_back(each, d) else None for each in self.operators]
        self._states = [None if method is None else method.init(d) for method in self._methods]
        self._calls = 0
        self._last = torch.zeros(d)

    def send(self, gradient: torch.Tensor) -> None:
        """Compress one gradient, float32 of shape (d,) and not zero, by every operator, and keep the error."""
        key = self._next_key(SINGLE)
        energy = float(gradient.double().square().sum())
        for operator, nmse in zip(self.operators, self.nmse, strict=True):
            decoded = operator.decode(operator.encode(gradient, key=key), d=self.d, key=key)
            nmse.append(float((decoded.double() - gradient.double()).square().sum()) / energy)

    def send_movement(self, movement: torch.Tensor) -> None:
        """Compress the movement of a worker, which is what it sends, by every operator, and keep the bits."""
        key = self._next_key(SINGLE)
        self._last = movement
        for operator, bits in zip(self.operators, self.bits, strict=True):
            message = operator.encode(movement, key=key)
            bits.append((message.bits - operator.carried_bits(self.d)) / self.d)

    def feed(self, gradient: torch.Tensor) -> None:
        """Compress the next of consecutive gradients with error feedback by every operator."""
        key = self._next_key(CARRIED)
        norm = float(gradient.double().norm())
        for i, (method, state) in enumerate(zip(self._methods, self._states, strict=True)):
            if method is not None and state is not None:
                self._states[i], _ = method.encode(state, gradient, key=key)
                left = self._states[i]
                assert left is not None
                self.residuals[i].append(float(left["residual"].double().norm()) / norm)

    def done(self, device: str, group: dist.ProcessGroup | None = None) -> tuple[OperatorTrial, ...]:
        """Return the results, with coding times measured now on all ranks at once."""
        return tuple(
            OperatorTrial(
                specification(operator),
                tuple(self.bits[i]),
                tuple(self.nmse[i]),
                tuple(self.residuals[i]),
                codec_of_ranks(operator, self._last, device=device, group=group),
            )
            for i, operator in enumerate(self.operators)
        )

    def _next_key(self, fold: int) -> Key:
        self._calls += 1
        return Key(self.key.seed, step=self._calls, rank=self.key.rank).fold_in(fold)


def _memoryless(given: str | Operator) -> Operator:
    chosen = compressor(given) if isinstance(given, str) else given
    if isinstance(chosen, Feedback) or not isinstance(chosen, Operator):
        raise ValueError(f"a pilot tries operators without memory; got {given!r}: it adds error feedback itself")
    return chosen


def _may_be_fed_back(operator: Operator, d: int) -> bool:
    claim = operator.claim(d)
    return isinstance(claim, Contractive) or (isinstance(claim, Unbiased) and claim.omega < 1)
