"""One part of a model whose averages overlap with local steps: its plan, its message in flight, its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from operators.fingerprint import require_like

from ..distributed.in_flight import Flight, Landed
from ..distributed.tensors import as_bytes, assign
from .buffers import Buffers
from .merge_rules import Arrival, Common, Vectors, plain, restored
from .worker import Worker


class Part:
    """A part of the model with its own rounds."""

    def __init__(
        self, index: int, bounds: tuple[int, int], common: Common, exchange: Any, carried_bits: Sequence[int]
    ) -> None:
        self.carried_bits = carried_bits
        self.index, (self.start, self.stop), self.common, self.exchange = index, bounds, common, exchange
        self.flight: Flight[Arrival] | None = None
        self.send_after = self.merge_after = 0  # local steps of the run
        self.messages = 0
        self.buffers: list[Buffers] | None = None  # as they were sent
        self.steps = [0] * len(common.thetas)  # local steps of the workers hosted here since the last message
        self.rests: Vectors | None = None  # rounding errors of the workers' models in the parameters' dtype

    def plan(self, merge_after: int, delay: int) -> None:
        """Set the local steps of the next send and merge; ``delay`` steps lie between them."""
        self.merge_after, self.send_after = merge_after, merge_after - delay

    def models(self, workers: Sequence[Worker]) -> Vectors:
        """Return the workers' models in the common model's precision, including what rounding has dropped."""
        shown = [worker.part(self.start, self.stop) for worker in workers]
        if self.rests is None:
            return [model.to(self.common.thetas[0]) for model in shown]
        return [model.to(rest) + rest for model, rest in zip(shown, self.rests, strict=True)]

    def load(self, workers: Sequence[Worker], models: Vectors) -> None:
        """Write models to the workers' parameters, and store the rounding errors."""
        for worker, model in zip(workers, models, strict=True):
            worker.load_part(self.start, model)
        if not all(worker.full_precision for worker in workers):
            pairs = zip(workers, models, strict=True)
            self.rests = [model - worker.part(self.start, self.stop).to(model) for worker, model in pairs]

    def merge_buffers(self, workers: Sequence[Worker], means: Sequence[Buffers], *, keeps_counts: bool) -> None:
        """Set statistics to the mean that arrived, and counters to that mean plus the counts since the send.

        A buffer that was equal on all ranks at the send is its own mean.  Without ``keeps_counts`` counters become the
        mean.
        """
        assert self.buffers is not None  # they have travelled
        for worker, of_worker, sent in zip(workers, means, self.buffers, strict=True):
            for name, buffer in worker.named_buffers.items():
                if name not in sent or sent[name].shape != buffer.shape or sent[name].dtype != buffer.dtype:
                    continue  # replaced in flight: the next message averages it
                if name not in of_worker and torch.equal(as_bytes(sent[name]), as_bytes(buffer)):
                    continue
                value = of_worker.get(name, sent[name])
                if keeps_counts and not buffer.is_floating_point():
                    value = _plus(value, buffer, sent[name])
                assign(buffer, value)

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs; a message in flight is awaited and stored unmerged."""
        common = self.common
        return {
            "thetas": list(common.thetas),
            "outers": [outer.state_dict() for outer in common.outers],
            "sent": list(common.sent),
            "base": common.base,
            "base_is_theta": common.base is common.thetas[0],
            "arrival": None if self.flight is None else plain(self.flight.result()),
            "plan": [self.send_after, self.merge_after, self.messages],
            "buffers": self.buffers,
            "steps": list(self.steps),
            "rests": self.rests,
            "senders": [sender.state for sender in self.exchange.senders],
            "receivers": self.exchange.states,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of ``state_dict``; raises ValueError for tensors of other shapes."""
        if self.flight is not None:
            self.flight.result()  # wait for the message of the abandoned round, which would still write here
        common = self.common
        require_like(state["thetas"], common.thetas, "thetas")
        for name in ("sent", "rests"):
            for vector in state.get(name) or ():
                require_like(vector, common.thetas[0], name)
        require_like(state["senders"], [sender.state for sender in self.exchange.senders], "senders")
        require_like(state["receivers"], self.exchange.states, "receivers")
        like = common.thetas[0]
        common.thetas = [theta.to(like) for theta in state["thetas"]]
        common.sent = [vector.to(like) for vector in state["sent"]]
        base = None if state["base"] is None else state["base"].to(like)
        common.base = common.thetas[0] if state["base_is_theta"] else base
        for outer, outer_state in zip(common.outers, state["outers"], strict=True):
            outer.load_state_dict(outer_state)
        arrival = state["arrival"]
        if arrival is not None:
            require_like(arrival["mean"].to(like), like, "in_flight")
            arrival = restored(arrival, like)
        self.flight = None if arrival is None else Landed(arrival)
        self.send_after, self.merge_after, self.messages = state["plan"]
        self.buffers, self.steps = state["buffers"], list(state["steps"])
        rests = state.get("rests")
        self.rests = None if rests is None else [rest.to(like) for rest in rests]
        for sender, sender_state in zip(self.exchange.senders, state["senders"], strict=True):
            sender.state = sender_state
        self.exchange.states = list(state["receivers"])


def _plus(mean: torch.Tensor, now: torch.Tensor, sent: torch.Tensor) -> torch.Tensor:
    """Return the integers mean + now - sent, exact wherever the result fits in their dtype."""
    signed = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[now.element_size()]
    parts = [part.contiguous().view(signed) for part in (mean.to(now.device), now, sent)]
    return (parts[0] + parts[1] - parts[2]).view(now.dtype)
