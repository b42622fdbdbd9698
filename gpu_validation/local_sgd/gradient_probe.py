"""Share of a worker's last local gradient that an averaging leaves, measured by one more gradient on the same batch.

h is the gradient of the last local step, read from ``p.grad``.  u is the gradient of the user's closure at the averaged
model.  The probe returns <u - h, P u> and <u, P u>, where P is the optimizer's preconditioner: the learning rates of
the parameter groups and, for Adam-like optimizers, one over the root of the second moment.  With P = S^2 these are the
plain products in the coordinates S^-1 x, in which the preconditioned step is a gradient step.  Momentum is one factor
for all coordinates and has no part in P.

A probe restores gradients, buffers (BatchNorm) and torch's generators.  Dropout uses the same mask in u as in h: the
generators' state is stored at the first call of the model in the round's last step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from operator import mul
from typing import Any

import torch

from ..distributed.learning_rates import group_rate
from .bend import bend, squared_distance
from .third_order import ThirdOrder

Closure = Callable[[], Any]
Weights = list[torch.Tensor | float]
CPU_BLOCK = 1 << 16

SECOND_MOMENTS = ("max_exp_avg_sq", "exp_avg_sq", "square_avg", "sum")  # Adam (amsgrad, plain), RMSprop, Adagrad


class Probe:
    """Gradient probe of one worker.

    Parameters
    ----------
    model : Module
        Model that the closure calls.  If it is called in another form (functional), randomness is not repeated.
    optimizer : Optimizer
        Its learning rates and second moments weight the coordinates.

    Attributes
    ----------
    place
        Parameters before the last step of the round, once that step is awaited; else empty.
    third_order
        Estimates from the probes so far.
    """

    def __init__(
        self, model: torch.nn.Module, parameters: list[torch.Tensor], optimizer: torch.optim.Optimizer
    ) -> None:
        self.model, self.parameters, self.optimizer = model, parameters, optimizer
        self._before: list[torch.Tensor] | None = None
        self.place: list[torch.Tensor] = []
        self.third_order = ThirdOrder()
        self._hook: Any = None

    def await_last_step(self) -> None:
        """Store the parameters now, and the generators' state at the model's next call (the round's last step)."""
        self._before, self.place = None, [p.detach().clone() for p in self.parameters]
        self._on_next_call(lambda: setattr(self, "_before", self._generators()))

    def forget_place(self) -> None:
        """Drop the stored parameters, because the round has ended by another step."""
        self.place = []

    def weights(self) -> Weights:
        """Return the diagonal of P up to a factor, from the optimizer's current state."""
        groups = self.optimizer.param_groups
        largest = max((rate for group in groups if 0 < (rate := group_rate(group)) < math.inf), default=1.0)
        by_parameter = {
            p: _weight(group, self.optimizer.state.get(p, {}), largest) for group in groups for p in group["params"]
        }
        return [by_parameter.get(p, 0.0) for p in self.parameters]

    def measure(self, closure: Closure, weights: Weights, loss: float = math.nan) -> tuple[float, ...]:
        """Return (<u - h, P u>, <u, P u>, jump of the loss, its bend, its curve).

        Entries are nan if they need a loss that the closure does not return, or parameters that were not stored.
        ``loss`` is that of the last local step.

        Raises
        ------
        ValueError
            If p.grad is None for all parameters, before or after the closure.
        """
        last = [p.grad for p in self.parameters]
        if all(h is None for h in last):
            raise ValueError(
                "the probe needs the gradients of the last local step in p.grad, which are None: call averaging.step "
                "after optimizer.step and before zero_grad"
            )
        with self._undisturbed(last):
            now = scalar(closure())
            again = [p.grad for p in self.parameters]
        if all(u is None for u in again):
            raise ValueError("the closure has left no gradient in p.grad: let it call backward and return the loss")
        lost, fresh = retention(last, again, weights)
        place, self.place = self.place, []
        bent = bend(loss - now, last, again, place, self.parameters) if place else (math.nan, math.nan)
        distance2 = squared_distance(place, self.parameters) if place else math.nan
        self.third_order = self.third_order.after(bend=bent[0], distance2=distance2, loss=now, norm2=fresh)
        return lost, fresh, now - loss, *bent

    @contextmanager
    def _undisturbed(self, last: list[torch.Tensor | None]) -> Iterator[None]:
        """Inside, a forward and backward pass may run; gradients, buffers and generators are restored afterwards."""
        generators = self._generators()
        buffers = [(b, b.detach().clone()) for b in self.model.buffers()]
        for p in self.parameters:
            p.grad = None
        before = self._before
        if before is not None:
            self._on_next_call(lambda: self._set_generators(before))
        try:
            with torch.enable_grad():
                yield
        finally:
            self._forget_hook()
            self._before = None
            for p, h in zip(self.parameters, last, strict=True):
                p.grad = h
            with torch.no_grad():
                for buffer, kept in buffers:
                    buffer.copy_(kept)
            self._set_generators(generators)

    # -- randomness --------------------------------------------------------------------------------------
    def _on_next_call(self, act: Callable[[], None]) -> None:
        """Call ``act`` once, before the next call of the model, and remove the hook."""
        self._forget_hook()

        def once(module: torch.nn.Module, arguments: Any) -> None:
            self._forget_hook()
            act()

        self._hook = self.model.register_forward_pre_hook(once)

    def _forget_hook(self) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def _generators(self) -> list[torch.Tensor]:
        """Return the states of the CPU generator and, for parameters on a GPU, of its generator."""
        device = self.parameters[0].device
        return [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])]

    def _set_generators(self, states: list[torch.Tensor]) -> None:
        torch.set_rng_state(states[0])
        if len(states) > 1:
            torch.cuda.set_rng_state(states[1], self.parameters[0].device)


def scalar(loss: Any) -> float:
    """Return a loss as a float; nan for None."""
    if loss is None:
        return math.nan
    return float(loss.detach() if isinstance(loss, torch.Tensor) else loss)


def retention(
    last: list[torch.Tensor | None], again: list[torch.Tensor | None], weights: Weights
) -> tuple[float, float]:
    """Return (<u - h, P u>, <u, P u>), accumulated per tensor in float32 or better; a gradient of None counts as zero.

    The difference precedes the product, which limits cancellation.  All products leave the device in one transfer.
    """
    factors, products = [], []
    for h, u, weight in zip(last, again, weights, strict=True):
        if u is None:
            continue
        new = _dense(u)
        old = torch.zeros_like(new) if h is None else _dense(h)
        factor, diagonal = (1.0, _blocks(weight.flatten())) if isinstance(weight, torch.Tensor) else (weight, ())
        for a, b, p in zip_longest(_blocks(new), _blocks(old), diagonal):
            weighed = a if p is None else p * a
            factors.append(factor)
            products += [(a - b) @ weighed, a @ weighed]
    values = torch.stack(products).tolist()
    return sum(map(mul, factors, values[::2])), sum(map(mul, factors, values[1::2]))


def _blocks(vector: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Split a vector on a CPU into blocks that fit into its cache."""
    return vector.split(CPU_BLOCK) if vector.device.type == "cpu" else (vector,)


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    detached = gradient.detach()
    detached = detached.to_dense() if detached.layout is not torch.strided else detached
    return (detached if detached.dtype == torch.float64 else detached.float()).flatten()


def _weight(group: dict[str, Any], state: dict[str, Any], largest: float) -> torch.Tensor | float:
    """Return the factor by which the optimizer multiplies a gradient, over the largest learning rate."""
    rate = group_rate(group)
    rate = 1.0 if math.isnan(rate) else rate / largest if 0 <= rate < math.inf else 0.0
    second = next((state[name] for name in SECOND_MOMENTS if name in state), None)
    if second is None:
        return rate
    unbiased = 1 - group["betas"][1] ** float(state["step"]) if "betas" in group else 1.0
    eps = group.get("eps", 0.0)
    least = eps[0] if isinstance(eps, tuple | list) else eps  # Adafactor has two
    return rate / ((second / unbiased).sqrt() + (least or 0.0))
