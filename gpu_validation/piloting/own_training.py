"""A rank's training for a pilot: gradients of single batches, and a context that undoes all changes."""

from __future__ import annotations

import copy
import inspect
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np
import torch
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from ..processes.tensors import flat

Loss = Callable[[torch.nn.Module, Any], torch.Tensor]
BeforeStep = Callable[[torch.nn.Module], object]


def again_and_again(batches: Iterable[Any]) -> Iterator[Any]:
    """Return batches, starting again at the end if the iterable allows it, as a DataLoader does.

    An iterator is used once, and an empty iterable ends immediately.  Nothing is drawn before the first batch.
    """
    return batches if isinstance(batches, Iterator) else _repeated(batches)


def _repeated(batches: Iterable[Any]) -> Iterator[Any]:
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
    before_step : callable or None, optional
        What happens to the gradients of a model between backward pass and step, such as clipping.

    Attributes
    ----------
    parameters : list of Parameter
        Parameters of the model that the optimizer steps and that require a gradient.
    """

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    loss: Loss
    batches: Iterator[Any]
    before_step: BeforeStep | None = None

    def __post_init__(self) -> None:
        self.check_optimizer()
        stepped = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        self.parameters = [p for p in self.model.parameters() if p.requires_grad and id(p) in stepped]
        if not self.parameters:
            raise ValueError(
                "a pilot needs parameters of the model that the optimizer steps and that require a gradient; got none: "
                "unfreeze some, or give the optimizer of this model"
            )
        self._marks: tuple[Any, Any] = (0.0, 0.0)

    def check_optimizer(self) -> None:
        """Check that the optimizer steps without a closure, at a rate.

        Raises
        ------
        ValueError
            If it needs a closure, or all its learning rates are 0.
        """
        name = type(self.optimizer).__name__
        closure = inspect.signature(self.optimizer.step).parameters.get("closure")
        if isinstance(self.optimizer, torch.optim.LBFGS) or (closure and closure.default is inspect.Parameter.empty):
            raise ValueError(
                f"a pilot needs an optimizer that steps without a closure; got {name}: averages of its steps have no "
                "prediction"
            )
        rates = [group["lr"] for group in self.optimizer.param_groups if group.get("lr") is not None]
        if rates and all(float(rate) == 0 for rate in rates):
            raise ValueError(
                "a pilot needs a learning rate above 0; got 0 in every group, as at the start of a warm-up: set the "
                "rate that you plan with"
            )

    def rate(self) -> float:
        """Return the largest learning rate of SGD, over 1 - momentum; 0 for another optimizer."""
        if type(self.optimizer) is not torch.optim.SGD:
            return 0.0
        groups = [(float(group["lr"]), float(group["momentum"])) for group in self.optimizer.param_groups]
        return max(rate / (1 - momentum) if momentum < 1 else 0.0 for rate, momentum in groups)

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
        self.apply_gradients()
        return value

    def apply_gradients(self) -> None:
        """Step the optimizer with the present gradients."""
        if self.before_step is not None:
            self.before_step(self.model)
        self.optimizer.step()

    def backward(self, batch: Any) -> None:
        """Set the gradients to those of a batch."""
        self._backward(batch)

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

    def use_gradient(self, gradient: torch.Tensor) -> None:
        """Write a gradient, float32 of shape (d,), to p.grad; a parameter without any keeps None."""
        offset = 0
        for p in self.parameters:
            part = gradient[offset : offset + p.numel()].view(p.shape)
            offset += p.numel()
            if p.grad is not None:
                p.grad.copy_(part)
            elif bool(part.any()):
                p.grad = part.to(p.dtype)

    def point(self) -> torch.Tensor:
        """Return a copy of the parameters, float32, shape (d,)."""
        return flat(self.parameters, torch.float32)

    @contextmanager
    def placed(self, point: torch.Tensor) -> Iterator[None]:
        """Inside, the parameters are at a point, float32 of shape (d,); afterwards they are as before, bit for bit."""
        before = [p.detach().clone() for p in self.parameters]
        with torch.no_grad():
            for p, part in zip(self.parameters, point.split([p.numel() for p in self.parameters]), strict=True):
                p.copy_(part.view(p.shape))
        try:
            yield
        finally:
            with torch.no_grad():
                for p, values in zip(self.parameters, before, strict=True):
                    p.copy_(values)

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
    def randomness(self) -> Randomness:
        """Return the states of the global generators."""
        return Randomness()

    @contextmanager
    def undone(self, *, loaders: Sequence[Any] = ()) -> Iterator[None]:
        """Inside, the training may run; everything it changes is restored at the end.

        Restored are parameters, buffers, gradients, plain attributes of modules, the optimizer with its hooks, the
        global generators of torch, ``random`` and NumPy, and the generators of ``loaders``.  Step hooks of the
        optimizer do not run inside.
        """
        snapshot, randomness = Snapshot(self.model, self.optimizer), self.randomness()
        generators = [(generator, generator.get_state()) for generator in _generators(loaders)]
        try:
            with _without_hooks(self.optimizer):
                yield
        finally:
            snapshot.restore()
            randomness.restore()
            for generator, state in generators:
                generator.set_state(state)


class Randomness:
    """States of the global generators of torch, ``random`` and NumPy at the time of the call."""

    def __init__(self) -> None:
        self._cpu, self._python, self._numpy = torch.get_rng_state(), random.getstate(), np.random.get_state()  # noqa: NPY002  the user's
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []

    def restore(self) -> None:
        """Set the generators to these states, so that dropout repeats its mask."""
        torch.set_rng_state(self._cpu)
        random.setstate(self._python)
        np.random.set_state(self._numpy)  # noqa: NPY002
        if self._cuda:
            torch.cuda.set_rng_state_all(self._cuda)


class Snapshot:
    """Copies of a model and its optimizer, written back in place: every tensor and state keeps its identity and type.

    Parameters
    ----------
    model : Module
        Model with parameters, buffers, and attributes that are plain values.
    optimizer : Optimizer
        Optimizer with its states, groups and attributes.
    """

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        grouped = [p for group in optimizer.param_groups for p in group["params"]]
        parameters = {id(p): p for p in (*model.parameters(), *grouped)}.values()
        self._tensors = [(t, t.detach().clone()) for t in (*parameters, *model.buffers())]
        self._gradients = [(p, p.grad, None if p.grad is None else p.grad.clone()) for p in parameters]
        self._modules = [(m, dict(m._buffers), _plain(vars(m)), _extra(m)) for m in model.modules()]
        self._states = [(p, state, _copied(state)) for p, state in optimizer.state.items()]
        self._groups = [(group, _copied(group)) for group in optimizer.param_groups]
        self._attributes = dict(vars(optimizer))
        self._own = {
            name: copy.deepcopy(value, {id(p): p for p in parameters})
            for name, value in self._attributes.items()
            if name not in ("state", "param_groups") and not name.endswith("_hooks") and not callable(value)
        }

    @torch.no_grad()
    def restore(self) -> None:
        """Write the copies back."""
        for module, buffers, attributes, extra in self._modules:
            module._buffers.update(buffers)
            vars(module).update(attributes)
            if extra is not None:
                module.set_extra_state(copy.deepcopy(extra))
        for tensor, values in self._tensors:
            tensor.copy_(values)
        for parameter, gradient, values in self._gradients:
            if gradient is not None and values is not None:
                gradient.copy_(values)
            parameter.grad = gradient
        vars(self._optimizer).clear()
        vars(self._optimizer).update(self._attributes)
        vars(self._optimizer).update(copy.deepcopy(self._own, {id(p): p for p, *_ in self._gradients}))
        self._optimizer.state.clear()
        for parameter, state, values in self._states:
            _write(state, values)
            self._optimizer.state[parameter] = state
        for group, values in self._groups:
            _write(group, values)
        self._optimizer.param_groups[:] = [group for group, _ in self._groups]


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if isinstance(value, (bool, int, float, str, NoneType))}


def _extra(module: torch.nn.Module) -> Any:
    """Return a copy of what a module saves beside its tensors; None if it saves nothing."""
    if type(module).get_extra_state is torch.nn.Module.get_extra_state:
        return None
    return copy.deepcopy(module.get_extra_state())


def _copied(entries: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return entries with copies: of a tensor its values, of parameters nothing, of others a deep copy."""
    return {
        key: (value, value.detach().clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value))
        if key != "params"
        else (value, list(value))
        for key, value in entries.items()
    }


def _write(entries: dict[str, Any], values: dict[str, tuple[Any, Any]]) -> None:
    """Write copies back into the entries, tensors in place."""
    entries.clear()
    for key, (value, copied) in values.items():
        if isinstance(value, torch.Tensor):
            value.copy_(copied)
            entries[key] = value
        elif key == "params":
            value[:] = copied
            entries[key] = value
        else:
            entries[key] = copy.deepcopy(copied)


@contextmanager
def _without_hooks(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Inside, no step hook of the optimizer or of all optimizers runs."""
    all_hooks = [
        getattr(optimizer, "_optimizer_step_pre_hooks", {}),
        getattr(optimizer, "_optimizer_step_post_hooks", {}),
        _global_optimizer_pre_hooks,
        _global_optimizer_post_hooks,
    ]
    kept = [dict(hooks) for hooks in all_hooks]
    for hooks in all_hooks:
        hooks.clear()
    try:
        yield
    finally:
        for hooks, before in zip(all_hooks, kept, strict=True):
            hooks.clear()
            hooks.update(before)


def _generators(loaders: Sequence[Any]) -> list[torch.Generator]:
    """Return the generators that data loaders and their samplers hold."""
    generators: dict[int, torch.Generator] = {}
    for loader in loaders:
        batch_sampler = getattr(loader, "batch_sampler", None)
        for each in (loader, getattr(loader, "sampler", None), batch_sampler, getattr(batch_sampler, "sampler", None)):
            generator = getattr(each, "generator", None)
            if isinstance(generator, torch.Generator):
                generators[id(generator)] = generator
    return list(generators.values())
