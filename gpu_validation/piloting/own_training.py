"""A rank's training for a pilot: gradients of single batches, and a context that undoes all changes."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from ..distributed.tensors import flat

Loss = Callable[[torch.nn.Module, Any], torch.Tensor]


def again_and_again(batches: Iterable[Any]) -> Iterator[Any]:
    """Return batches, starting again at the end if the iterable allows it, as a DataLoader does.

    An iterator is used once, and an empty iterable ends immediately.
    """
    iterator = iter(batches)
    return iterator if iterator is batches else _anew(batches)


def _anew(batches: Iterable[Any]) -> Iterator[Any]:
    is_empty = False
    while not is_empty:
        is_empty = True
        for batch in batches:
            is_empty = False
            yield batch


@dataclass
class Training:
    """Model, optimizer, loss and batches of one rank.

    Parameters
    ----------
    model : Module
        Model to train.
    optimizer : Optimizer
        Optimizer of the model.
    loss : callable
        Map from (model, batch) to a scalar tensor.
    batches : iterator
        Endless, or at least as many batches as needed.
    """

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    loss: Loss
    batches: Iterator[Any]

    def __post_init__(self) -> None:
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        if not self.parameters:
            raise ValueError("a pilot needs a model with parameters that require a gradient; got none: unfreeze some")

        self._marks: tuple[Any, Any] = (0.0, 0.0)

    @property
    def d(self) -> int:
        """Number of trained parameters."""
        return sum(p.numel() for p in self.parameters)

    @property
    def device(self) -> torch.device:
        """Device of the first parameter."""
        return self.parameters[0].device

    def batch(self) -> Any:
        """Return the next batch.

        Raises
        ------
        ValueError
            If the batches have ended.
        """
        try:
            return next(self.batches)
        except StopIteration:
            raise ValueError("the batches have ended before the pilot: give more of them, or fewer steps") from None

    def step(self, batch: Any) -> float:
        """Run one optimizer step; return the loss."""
        value = self._backward(batch)
        self.optimizer.step()
        return value

    def gradient(self, batch: Any) -> torch.Tensor:
        """Return the gradient of a batch at the current parameters, float32, shape (d,).

        Raises
        ------
        ValueError
            If it is not finite.
        """
        self._backward(batch)
        gradient = self.last_gradient()
        if not bool(gradient.isfinite().all()):
            raise ValueError("a gradient of the pilot is not finite: lower the learning rate, or check the batches")
        return gradient

    def last_gradient(self) -> torch.Tensor:
        """Return a copy of p.grad of all parameters, float32, shape (d,)."""
        return flat([torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters], torch.float32)

    def point(self) -> torch.Tensor:
        """Return a copy of the parameters, float32, shape (d,)."""
        return flat(self.parameters, torch.float32)

    def _backward(self, batch: Any) -> float:
        self.optimizer.zero_grad(set_to_none=True)
        value = self.loss(self.model, batch)
        begun = self._mark()
        value.backward()
        self._marks = begun, self._mark()
        return float(value.detach())

    def backward_s(self) -> float:
        """Return the seconds of the last backward pass, which must have ended."""
        begun, ended = self._marks
        return 1e-3 * begun.elapsed_time(ended) if self.device.type == "cuda" else ended - begun

    def _mark(self) -> Any:
        """Return the current time; on a GPU an event after the queued work, without synchronising."""
        if self.device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    # -- randomness ------------------------------------------------------------------------------------------
    def randomness(self) -> list[torch.Tensor]:
        """Return the states of the CPU generator and, for a model on a GPU, of its generator."""
        return [torch.get_rng_state(), *([torch.cuda.get_rng_state(self.device)] if self.device.type == "cuda" else [])]

    def draw_again(self, states: list[torch.Tensor]) -> None:
        """Restore the generators, so that dropout repeats its mask."""
        torch.set_rng_state(states[0])
        if len(states) > 1:
            torch.cuda.set_rng_state(states[1], self.device)

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Inside, the training may run; model, optimizer, gradients, buffers and generators are restored at the end."""
        model, optimizer = copy.deepcopy(self.model.state_dict()), copy.deepcopy(self.optimizer.state_dict())
        gradients = [None if p.grad is None else p.grad.clone() for p in self.parameters]
        states = self.randomness()
        try:
            yield
        finally:
            self.model.load_state_dict(model)
            self.optimizer.load_state_dict(optimizer)
            for p, gradient in zip(self.parameters, gradients, strict=True):
                p.grad = gradient
            self.draw_again(states)
