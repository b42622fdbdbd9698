"""One worker: its model as a vector, where its round began, and what it owes and remembers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from operators.fingerprint import require_like

from ..distributed.learning_rates import RoundRates, learning_rate
from ..distributed.reduction import precision
from ..distributed.tensors import flat
from .buffers import averaged_buffers
from .flat_parameters import FlatParameters
from .shared_memory import without_aliases
from .structure import require_averageable, require_unwrapped, trained


def follow(workers: Sequence[Worker]) -> bool:
    """Let every worker take over what was replaced in its model; returns whether all have the parameters they had.

    Parameters
    ----------
    workers : sequence of Worker
        Those hosted here.
    """
    return all([worker.follow() for worker in workers])  # noqa: C419  all follow, also after one that has changed


def deltas(workers: Sequence[Worker]) -> list[torch.Tensor]:
    """Return what the local steps of this round did to every worker's model.

    Parameters
    ----------
    workers : sequence of Worker
        Those that take part.
    """
    return [worker.delta() for worker in workers]


def begin(workers: Sequence[Worker], anchor: torch.Tensor) -> None:
    """Start every worker's next round from one model.

    Parameters
    ----------
    workers : sequence of Worker
        Those hosted here.
    anchor : tensor
        Where the round starts, shape (d,).
    """
    for worker in workers:
        worker.begin(anchor)


class Worker:
    """A model, its optimizer and its memory from round to round.

    Parameters
    ----------
    model : Module
        With floating-point parameters.
    optimizer : Optimizer or None
        None where nothing needs it.

    Attributes
    ----------
    anchor
        Where the current round began, shape (d,), in float32 (float64 for float64).
    start
        The same as the model holds it, rounded to the parameters' dtype; what the rounding left out is not lost, for it
        stays in the anchor.
    parameters
        Those that require a gradient, in the model's order; of several in the same memory, one.
    names
        Theirs.
    named_buffers
        The buffers that averagings make equal, by name; see ``buffers.averaged_buffers``.
    travelled
        What of buffers and optimizer states has travelled in the last averaging: kinds and numbers of entries.

    Raises
    ------
    ValueError
        For what ``structure.require_averageable`` refuses.
    TypeError
        For what ``structure.require_averageable`` refuses.
    """

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
        require_unwrapped(model, optimizer)
        self.model, self.optimizer = model, optimizer
        self.names: list[str] = []
        self.parameters: list[torch.nn.Parameter] = []
        self.losses: list[float | torch.Tensor] = []
        self.rates: RoundRates | None = None
        self.sender: Any
        self.mixing_state: Mapping[str, torch.Tensor] = {}
        self.keeps_anchor = True
        self.travelled: list[tuple[str, int]] = []
        self.begins = 0  # how often the averaging has written the parameters
        self.hold()

    def hold(self) -> None:
        """Take the model's parameters as they are now for those that are averaged, and begin at them."""
        require_averageable(self.model)
        parameters = trained(self.model)
        self._kinds, self.names, self._contents = _kinds(parameters), list(parameters), _contents(self.model)
        self.parameters[:] = parameters.values()  # the same list, which a probe looks at too
        self.named_buffers = averaged_buffers(self.model)
        self._has_buffers = bool(self.named_buffers)
        self._flat = FlatParameters(self.parameters)
        vector = self.vector()
        self.dtype, self.device = vector.dtype, vector.device
        self.full_precision = all(p.dtype == precision(vector.dtype) for p in self.parameters)
        self.anchor = self.start = vector.to(precision(vector.dtype))

    def follow(self) -> bool:
        """Take over parameters and buffers that were replaced by others.

        Returns False, and takes no parameters, if their names or kinds are others, or which of them are frozen.
        """
        contents = _contents(self.model)
        if contents == self._contents:
            return True
        self.named_buffers = averaged_buffers(self.model)
        first_buffer = bool(self.named_buffers) and not self._has_buffers  # which the other ranks do not expect
        try:
            parameters = trained(self.model)
        except ValueError:  # raised by ``require_averageable`` when all ranks have been told
            parameters = {}
        if _kinds(parameters) != self._kinds or first_buffer:
            self._contents = []
            return False
        self.parameters[:] = parameters.values()
        self._contents = contents
        return True

    @property
    def buffers(self) -> list[torch.Tensor]:
        """The buffers that averagings make equal."""
        return list(self.named_buffers.values())

    def once_averaged(self) -> list[torch.nn.Parameter]:
        """Return the parameters that are to be averaged from now on, or were until now: ranks may differ in any of
        them.
        """
        named = self.model.named_parameters()
        return [*without_aliases({name: p for name, p in named if p.requires_grad or name in self.names}).values()]

    def vector(self) -> torch.Tensor:
        """Return all parameters as they are now, as one new vector in the parameters' dtype."""
        return flat(self.parameters)

    def outgoing(self, *behind: torch.Tensor) -> torch.Tensor:
        """Return the same, and further values behind it, in memory that the next call uses again.

        Parameters
        ----------
        *behind : tensor
            Values that follow the parameters.
        """
        return self._flat.vector(*behind)

    def nothing(self, *behind: torch.Tensor) -> torch.Tensor:
        """Return zeros in the place of the parameters, and further values behind them.

        Parameters
        ----------
        *behind : tensor
            Values that follow the parameters.
        """
        return torch.cat([torch.zeros(self.anchor.numel(), dtype=self.dtype, device=self.device), *behind])

    def delta(self) -> torch.Tensor:
        """Return what the local steps of this round did, as float32, shape (d,); whoever encodes it checks it."""
        return self.movement().to(torch.float32)

    def movement(self) -> torch.Tensor:
        """Return what the local steps of this round did, shape (d,)."""
        return self.outgoing().to(self.start.dtype) - self.start

    def name_of(self, entry: int) -> str:
        """Return entry and name of a parameter for an entry of the vector.

        Parameters
        ----------
        entry : int
            Position in the vector.
        """
        for name, p in zip(self.names, self.parameters, strict=True):
            if entry < p.numel():
                return f"entry {entry} of {name}"
            entry -= p.numel()
        return f"entry {entry} behind the parameters"

    def begin(self, anchor: torch.Tensor) -> None:
        """Start the next round from ``anchor``; the vector is kept, never changed, if the anchor is needed.

        Parameters
        ----------
        anchor : tensor
            Where the round starts, shape (d,).
        """
        self.begins += 1
        overwritten = self._flat.load(anchor)
        if self.keeps_anchor:
            self.anchor = anchor.clone() if overwritten else anchor
            self.start = self.anchor if self.full_precision else self.vector().to(anchor.dtype)

    def part(self, start: int, stop: int) -> torch.Tensor:
        """Return a part of the parameters' vector, as a new one.

        Parameters
        ----------
        start : int
            Its first entry.
        stop : int
            The first one behind it.
        """
        return self._flat.part(start, stop)

    def load_part(self, start: int, values: torch.Tensor) -> None:
        """Write to a part of the parameters.

        Parameters
        ----------
        start : int
            Its first entry.
        values : tensor
            What is written.
        """
        self._flat.load_part(start, values)

    def unrounded(self, mixed: torch.Tensor) -> torch.Tensor:
        """Return the next anchor from the mixed models: they miss what rounding this rank's start has left out.

        Parameters
        ----------
        mixed : tensor
            The mixed models, shape (d,).
        """
        return mixed if self.full_precision else mixed + (self.anchor - self.start)

    def record_loss(self, loss: torch.Tensor | float) -> None:
        """Remember the loss of one step, without waiting for the device that computes it.

        Parameters
        ----------
        loss : tensor or float
            The loss, a number or a scalar tensor.
        """
        if isinstance(loss, torch.Tensor):
            loss = loss.item() if loss.device.type == "cpu" else loss.detach()
        self.losses.append(loss)

    def drop_states_not_finite(self) -> None:
        """Drop the optimizer's state of every parameter of which an entry is not finite."""
        state = self.optimizer.state if self.optimizer is not None else {}
        for parameter, entries in list(state.items()):
            tensors = [v for v in entries.values() if isinstance(v, torch.Tensor) and v.is_floating_point()]
            if not all(torch.isfinite(tensor).all() for tensor in tensors):
                del state[parameter]

    def round_losses(self) -> list[float]:
        """Return the losses of this round so far."""
        if not any(isinstance(loss, torch.Tensor) for loss in self.losses):
            return [float(loss) for loss in self.losses]
        values = [torch.as_tensor(loss, dtype=torch.float64).reshape(()) for loss in self.losses]
        return torch.stack(values).tolist()

    def eta(self) -> float:
        """Return the largest learning rate of the optimizer's groups, as ``learning_rate`` does."""
        assert self.optimizer is not None  # checked at the start
        return learning_rate(self.optimizer.param_groups)

    def watch_rates(self) -> None:
        """Read the learning rate after every local step from now on."""
        assert self.optimizer is not None  # checked at the start
        self.rates = RoundRates(self.optimizer)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs beside model and optimizer; tensors and plain values only."""
        return {
            "d": self.anchor.numel(),
            "anchor": self.anchor if self.keeps_anchor else None,
            "start": self.start if self.keeps_anchor else None,
            "sender": self.sender.state,
            "mixing": dict(self.mixing_state),
            "losses": [float(loss) for loss in self.losses],
            "rates": None if self.rates is None else self.rates.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken.

        Parameters
        ----------
        state : mapping
            What ``state_dict`` gave.

        Raises
        ------
        ValueError
            If it belongs to a model of another size or to another operator.
        """
        if state["d"] != self.anchor.numel():
            raise ValueError(
                f"the state is for d = {state['d']} parameters that require a gradient; this model has "
                f"d = {self.anchor.numel()}: build and freeze it as it was before it is averaged"
            )
        require_like(state["sender"], self.sender.state, "sender")
        if self.keeps_anchor:
            self.anchor, self.start = state["anchor"].to(self.anchor), state["start"].to(self.anchor)
        self.sender.state, self.mixing_state = state["sender"], dict(state["mixing"])
        self.losses = list(state["losses"])
        if self.rates is not None and state.get("rates") is not None:
            self.rates.load_state_dict(state["rates"])


def _kinds(parameters: Mapping[str, torch.nn.Parameter]) -> list[Any]:
    """Return what must be the same for one vector to serve these parameters and those that take their places."""
    return [(name, type(p), p.shape, p.dtype, p.device) for name, p in parameters.items()]


def _address(p: torch.Tensor) -> int:
    try:
        return p.data_ptr()
    except RuntimeError:  # of one that only wraps others, as DTensor does
        return 0


def _contents(model: torch.nn.Module) -> list[Any]:
    """Return what tells quickly that nothing has changed: names and identities in every module, and what may change of
    a tensor that stays the same object, its place in memory included.
    """
    contents: list[Any] = []
    for module in model.modules():
        contents += module._modules
        for name, p in module._parameters.items():
            if p is not None:
                contents += name, id(p), p.requires_grad, p.shape, p.dtype, p.device, _address(p)
        for name, b in module._buffers.items():
            if b is not None:
                kept = name in module._non_persistent_buffers_set
                contents += name, id(b), b.dtype, b.shape, b.stride(), b.data_ptr(), kept
    return contents
