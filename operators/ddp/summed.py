"""Gradients that are summed on the way, as a communication hook of DistributedDataParallel. ::

    model = DistributedDataParallel(network)
    hook = register_summed(model, SummedPowerSGD(rank=4))

What a rank sends does not grow with the number of ranks, and all ranks get the same gradient, bit for bit.  A bucket's
rounds follow one another while the backward pass waits; nothing is computed meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ..feedback.feedback import State
from ..key import Key
from ..message import Message
from ..operator import canonical
from ..summed.end import Exchange
from ..summed.summed import Rounds, Summed
from ..summed.together import together
from .gather import Gather, Refusal, predicted_payload_bytes
from .hook import Scope
from .lost_rank import explaining
from .scatter import Scatter, predicted_scatter_bytes


def register_summed(
    model: DistributedDataParallel,
    method: Summed,
    *,
    scope: Scope = "layer",
    key: Key = Key(0),  # noqa: B008  frozen
    group: dist.ProcessGroup | None = None,
) -> SummedGradients:
    """Let the model sum compressed gradients from its next backward pass on; returns the hook.

    Parameters
    ----------
    model : DistributedDataParallel
        The model.
    method : Summed
        Compresses; a matrix method without a shape takes every parameter's own.
    scope : Scope, optional
        "layer" compresses each parameter by itself, "bucket" each of the model's buckets as one vector.
    key : Key, optional
        Of the method's randomness; step and rank are filled in, and the parameter is folded in.
    group : ProcessGroup or None, optional
        Of the ranks that exchange gradients; the model's own if None.

    Raises
    ------
    TypeError
        For a method that is not summed on the way.
    ValueError
        For an unknown scope, and for a method with memory and scope="bucket".

    Notes
    -----
    All ranks must call it, with the same arguments.
    """
    hook = SummedGradients(model, method, scope, key, group or model.process_group)
    model.register_comm_hook(hook, lambda state, bucket: state._reduce(bucket))
    return hook


@dataclass(frozen=True)
class _Unit:
    """What is compressed as one vector: the names of its parameters, and their gradients to read and to write."""

    names: list[str]
    gradients: list[torch.Tensor]

    @property
    def d(self) -> int:
        return sum(gradient.numel() for gradient in self.gradients)


class SummedGradients:
    """The hook of a model, made by ``register_summed``: what it has sent, and what the method remembers.

    Parameters
    ----------
    model : DistributedDataParallel
        The model.
    method : Summed
        The compressor.
    scope : str
        What part of the gradients is compressed at once.
    key : Key
        Stream of random numbers.
    group
        The processes that exchange.

    Attributes
    ----------
    steps
        Backward passes with communication.
    codec_bits : bits
        Lengths of this rank's terms.
    payload_bytes : bytes
        What this rank has handed to the transport, headers and receivers counted.
    predicted_bytes : bytes
        What all ranks together should have handed over, from the lengths of the messages alone.
    """

    def __init__(self, model: DistributedDataParallel, method: Summed, scope: str, key: Key, group: Any) -> None:
        if not isinstance(method, Summed):
            raise TypeError(f"method must be summed on the way, as SharedScale is; got {method!r}: use register")
        if scope not in ("bucket", "layer"):
            raise ValueError(f'scope must be "bucket" or "layer"; got {scope!r}')
        if scope == "bucket" and not method.coordinatewise:
            raise ValueError(f'{method.name} keeps a state that no bucket can share: pass scope="layer"')
        self.method, self.scope, self.key, self.group = method, scope, key, group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.steps = self.codec_bits = self.payload_bytes = self.predicted_bytes = 0
        parameters = {name: p for name, p in model.module.named_parameters() if p.requires_grad}
        self._names = {id(p): name for name, p in parameters.items()}
        self._numbers = {name: number for number, name in enumerate(parameters)}
        nccl = dist.get_backend(group) == "nccl"
        self._device = next(iter(parameters.values())).device if nccl else torch.device("cpu")
        self._methods = {name: _shaped(method, p.shape) for name, p in parameters.items()}
        self._states: dict[str, State] = {name: self._methods[name].init(p.numel()) for name, p in parameters.items()}

    # -- one bucket --------------------------------------------------------------------------------------
    def _reduce(self, bucket: Any) -> torch.futures.Future[torch.Tensor]:
        """Return called by the model for every bucket, in the same order on all ranks: the exchange is over by then."""
        buffer = bucket.buffer()
        units = self._units(bucket)
        with explaining(f"the gradients of step {self.steps}"):
            self._exchange(units)
        self.steps += bool(bucket.is_last())
        result: Any = torch.futures.Future(devices=[buffer.device] if buffer.is_cuda else None)
        result.set_result(buffer)
        return result

    def _units(self, bucket: Any) -> list[_Unit]:
        """Return what is compressed as one vector, in the order of the model."""
        named = {self._names[id(p)]: g for p, g in zip(bucket.parameters(), bucket.gradients(), strict=True)}
        names = sorted((name for name, g in named.items() if g.numel()), key=self._numbers.__getitem__)
        groups = [[name] for name in names] if self.scope == "layer" else [names] if names else []
        return [_Unit(group, [named[name] for name in group]) for group in groups]

    def _exchange(self, units: Sequence[_Unit]) -> None:
        """Go through the rounds of a bucket and write the means."""
        error: Exception | None = None
        exchange: Exchange | None = None
        try:
            exchange = Exchange(together([self._rounds(unit) for unit in units]), m=self.size, rank=self.rank)
        except Exception as failure:  # the other ranks must hear of it, whatever it is
            error = failure
        while exchange is None or not exchange.over:
            exchange = self._round(exchange, units, error)
        for unit, (state, mean) in zip(units, exchange.result, strict=True):
            self._states[unit.names[0]] = state
            parts = torch.from_numpy(mean).split([gradient.numel() for gradient in unit.gradients])
            for gradient, part in zip(unit.gradients, parts, strict=True):
                gradient.copy_(part.view(gradient.shape))

    def _rounds(self, unit: _Unit) -> Rounds:
        flat = [gradient.reshape(-1).to(device="cpu", dtype=torch.float32) for gradient in unit.gradients]
        name = unit.names[0]
        key = replace(self.key, step=self.steps, rank=self.rank).fold_in(self._numbers[name])
        x = canonical(torch.cat(flat))
        return self._methods[name].rounds(self._states[name], x, key=key, m=self.size, member=True)

    def _round(self, exchange: Exchange | None, units: Sequence[_Unit], error: Exception | None) -> Exchange:
        """Scatter the terms of a round, gather their sums, and go on."""
        reason = self._where(units) if exchange is None else 0
        scatter = Scatter(
            reason if exchange is None else exchange.outgoing, note=self.steps, group=self.group, device=self._device
        )
        try:
            scatter.send()
        except Refusal as refusal:
            raise ValueError(self._words(refusal, units)) from error
        assert exchange is not None  # else this rank has refused
        sums: Message | int = 0
        arrived = scatter.wait()
        try:
            sums = exchange.merge(dict(enumerate(arrived)), range(self.size))
        except Exception as failure:  # the other ranks must hear of it, whatever it is
            error = failure
        gather = Gather(sums, group=self.group, device=self._device)
        try:
            gather.send()
        except Refusal as refusal:
            why = f": {error}" if refusal.rank == self.rank else "; its error says why"
            raise ValueError(
                f"rank {refusal.rank} could not form the sum of its shard at step {self.steps}{why}"
            ) from error
        exchange.receive(gather.wait(), self.size)
        self.codec_bits += scatter.lengths[self.rank]
        self.payload_bytes += scatter.payload_bytes + gather.payload_bytes
        self.predicted_bytes += predicted_scatter_bytes(scatter.sent_bytes, self.size)
        self.predicted_bytes += predicted_payload_bytes(gather.lengths, self.size)
        return exchange

    @staticmethod
    def _where(units: Sequence[_Unit]) -> int:
        """Return the number of the first entry that is not finite; that of all entries if there is none."""
        flat = [gradient.reshape(-1).float().cpu() for unit in units for gradient in unit.gradients]
        finite = np.isfinite(np.concatenate([part.detach().numpy() for part in flat]))
        return finite.size if finite.all() else int(finite.argmin())

    def _words(self, refusal: Refusal, units: Sequence[_Unit]) -> str:
        start = 0
        for unit in units:
            for name, gradient in zip(unit.names, unit.gradients, strict=True):
                stop = start + gradient.numel()
                if start <= refusal.reason < stop:
                    return (
                        f"the gradient of {name} on rank {refusal.rank} is not finite in binary32: entry "
                        f"{refusal.reason - start} at step {self.steps}; look for an overflow in the loss, or clip"
                    )
                start = stop
        return f"rank {refusal.rank} could not compress its gradient at step {self.steps}; its error says why"

    # -- restart -----------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Return states and counters of this rank: tensors and plain values only.  Call it between steps."""
        states = {name: {entry: value.clone() for entry, value in s.items()} for name, s in self._states.items()}
        counters = [self.steps, self.codec_bits, self.payload_bytes, self.predicted_bytes]
        return {"place": [self.rank, self.size], "counters": counters, "states": states}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken.

        Parameters
        ----------
        state : mapping
            What it gave.

        Raises
        ------
        ValueError
            For the state of another rank or number of ranks, or of another model.
        """
        if list(state["place"]) != [self.rank, self.size] or set(state["states"]) != set(self._states):
            rank, size = state["place"]
            raise ValueError(
                f"the state is of rank {rank} of {size} and has {len(state['states'])} parameters; this is rank "
                f"{self.rank} of {self.size} with {len(self._states)}: states cannot be moved, start without one"
            )
        self._states = {name: dict(saved) for name, saved in state["states"].items()}
        self.steps, self.codec_bits, self.payload_bytes, self.predicted_bytes = state["counters"]


def _shaped(method: Summed, shape: torch.Size) -> Summed:
    """Return the method for one parameter: a matrix method without a shape takes the parameter's."""
    rows = shape[0] if len(shape) else 1
    if not shape.numel() or getattr(method, "shape", rows) is not None:
        return method
    return cast(Summed, replace(cast(Any, method), shape=(rows, shape.numel() // rows)))
