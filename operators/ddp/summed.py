"""Gradients that are summed on the way, as a communication hook of DistributedDataParallel. ::

    model = DistributedDataParallel(network)
    hook = register_summed(model, SummedPowerSGD(rank=4))

What a rank sends does not grow with the number of ranks, and all ranks get the same gradient, bit for bit.  A bucket's
rounds follow one another while the backward pass waits; nothing is computed meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ..feedback.feedback import State
from ..fingerprint import fingerprint, require_like, require_own_state
from ..inputs import canonical
from ..key import Key
from ..message import Message
from ..summed.end import Exchange
from ..summed.summed import Rounds, Summed, together
from .bucket import Bucket, first_not_finite, joined
from .collectives import Counters, Gather, Refusal, Scatter
from .comm_hook import Copies, compress_hook
from .equal_settings import connected, device_of, kinds, require_equal_settings
from .failures import explaining, not_a_number, raise_after_backward
from .hook import Scope
from .phases import COMPRESS, MERGE, RankFailed


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
    group = group or model.process_group
    make = partial(SummedGradients, model, method, scope, key, group)
    hook = connected(make, group=group, device=device_of(group, dict(model.module.named_parameters())))
    model.register_comm_hook(hook, compress_hook)
    return hook


class SummedGradients(Copies, Counters):
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
    exchange : str
        "sum".
    """

    exchange = "sum"

    def __init__(self, model: DistributedDataParallel, method: Summed, scope: str, key: Key, group: Any) -> None:
        super().__init__()
        if not isinstance(method, Summed):
            raise TypeError(f"method must be summed on the way, as SharedScale is; got {method!r}: use register")
        if scope not in ("bucket", "layer"):
            raise ValueError(f'scope must be "bucket" or "layer"; got {scope!r}')
        if scope == "bucket" and not method.coordinatewise:
            raise ValueError(f'{method.name} keeps a state that no bucket can share: pass scope="layer"')
        self.method, self.scope, self.key, self.group = method, scope, key, group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        parameters = {name: p for name, p in model.module.named_parameters() if p.requires_grad}
        self._names = {id(p): name for name, p in parameters.items()}
        self._numbers = {name: number for number, name in enumerate(parameters)}
        self._device = device_of(group, parameters)
        settings = {
            "operator": method,
            "scope": scope,
            "exchange": self.exchange,
            "second": None,
            "ranks_per_node": 1,
            "key": replace(key, step=0, rank=0),
            "model": kinds(parameters),
        }
        self._fingerprint = fingerprint(settings)
        self._methods = {name: _shaped(method, p.shape) for name, p in parameters.items()}
        self._states: dict[str, State] = {name: self._methods[name].init(p.numel()) for name, p in parameters.items()}
        self._before: dict[str, State] = {}  # this pass
        self._refused = False  # this pass, by all ranks

    def connect(self) -> None:
        """Compare the settings with those of the other ranks.

        Raises
        ------
        ValueError
            On every rank, if one's arguments were refused or ranks differ.
        """
        require_equal_settings(self._fingerprint, group=self.group, device=self._device)

    # -- one bucket --------------------------------------------------------------------------------------
    def reduce(self, gradients: Any) -> torch.futures.Future[torch.Tensor]:
        """Return a bucket's mean; called by the model for every bucket, in the same order on all ranks.

        Parameters
        ----------
        gradients : GradBucket
            What the model hands to its hook; the exchange is over when the call returns.

        Raises
        ------
        ValueError
            On every rank, for a gradient that is not finite, or that a rank could not compress.
        RuntimeError
            If a rank has gone.
        """
        if gradients.index() == 0:
            self._before, self._refused = dict(self._states), False
        bucket = Bucket(gradients, self._names, self._numbers, self.steps)
        try:
            if not self._refused:
                with explaining(f"the gradients of step {self.steps}"):
                    self._exchange(bucket)
        except RankFailed as refused:
            self._refused, self._states = True, dict(self._before)
            raise_after_backward(refused)
        if self._refused:
            not_a_number(bucket.buffer)
        self.steps += bool(gradients.is_last())
        result: Any = torch.futures.Future(devices=[bucket.buffer.device] if bucket.buffer.is_cuda else None)
        result.set_result(bucket.buffer)
        return result

    def _units(self, bucket: Bucket) -> list[list[str]]:
        """Return what is compressed as one vector: the names of its parameters, in the order of the model."""
        return [[name] for name in bucket.names] if self.scope == "layer" else [bucket.names] if bucket.names else []

    def _exchange(self, bucket: Bucket) -> None:
        """Go through the rounds of a bucket and write the means."""
        error: Exception | None = None
        exchange: Exchange | None = None
        units = self._units(bucket)
        try:
            rounds = [self._rounds(names, bucket) for names in units]
            exchange = Exchange(together(rounds), m=self.size, rank=self.rank)
        except Exception as failure:  # the other ranks must hear of it, whatever it is
            error = failure
        while exchange is None or not exchange.over:
            arrived = self._terms(exchange, bucket, error)
            assert exchange is not None  # else this rank has refused
            self._sums(exchange, arrived)
        for names, (state, _) in zip(units, exchange.result, strict=True):
            self._states[names[0]] = state
        means = joined([torch.from_numpy(mean) for _, mean in exchange.result])
        bucket.write(means.split(bucket.sizes) if bucket.names else [])

    def _rounds(self, names: Sequence[str], bucket: Bucket) -> Rounds:
        x = joined([bucket.gradients[name].reshape(-1).to(torch.float32) for name in names])
        key = replace(self.key, step=self.steps, rank=self.rank).fold_in(self._numbers[names[0]])
        return self._methods[names[0]].rounds(self._states[names[0]], canonical(x), key=key, m=self.size, member=True)

    def _terms(self, exchange: Exchange | None, bucket: Bucket, error: Exception | None) -> list[Message]:
        """Scatter the terms of a round; returns those that have come for this rank, by sender."""
        outgoing = first_not_finite(bucket.flat()) if exchange is None else exchange.outgoing
        scatter = Scatter(outgoing, note=self.steps, group=self.group, device=self._device)
        try:
            scatter.send()
        except Refusal as refusal:
            raise RankFailed(bucket.words(refusal), refusal.rank, COMPRESS) from error
        arrived = scatter.wait()
        self.count(scatter)
        return arrived

    def _sums(self, exchange: Exchange, arrived: Sequence[Message]) -> None:
        """Gather the sums of a round and go on."""
        error: Exception | None = None
        sums: Message | int = 0
        try:
            sums = exchange.merge(dict(enumerate(arrived)), range(self.size))
        except Exception as failure:  # the other ranks must hear of it, whatever it is
            error = failure
        gather = Gather(sums, group=self.group, device=self._device)
        try:
            gather.send()
        except Refusal as refusal:
            why = f": {error}" if refusal.rank == self.rank else "; its error says why"
            words = f"rank {refusal.rank} could not form the sum of its shard at step {self.steps}{why}"
            raise RankFailed(words, refusal.rank, MERGE) from error
        exchange.receive(gather.wait(), self.size)
        self.count(gather, coded=False)

    # -- restart -----------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Return states and counters of this rank: tensors and plain values only.  Call it between steps."""
        states = {name: {entry: value.clone() for entry, value in s.items()} for name, s in self._states.items()}
        return {
            "fingerprint": dict(self._fingerprint),
            "place": [self.rank, self.size],
            "counters": self.counted,
            "states": states,
        }

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
        state = require_own_state(state, self._fingerprint, of="this hook")
        if list(state["place"]) != [self.rank, self.size]:
            rank, size = state["place"]
            raise ValueError(
                f"the state is of rank {rank} of {size}; this is rank {self.rank} of {self.size}: "
                "states cannot be moved, start without one"
            )
        require_like(state["states"], self._states, "the parameters")
        self._states = {name: dict(saved) for name, saved in state["states"].items()}
        self.counted = state["counters"]


def _shaped(method: Summed, shape: torch.Size) -> Summed:
    """Return the method for one parameter: a matrix method without a shape takes the parameter's."""
    rows = shape[0] if len(shape) else 1
    if not shape.numel() or getattr(method, "shape", rows) is not None:
        return method
    return cast(Summed, replace(cast(Any, method), shape=(rows, shape.numel() // rows)))
