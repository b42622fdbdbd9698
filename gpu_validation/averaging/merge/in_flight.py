"""Averages in flight: a message is sent while the workers make local steps, and merged some steps later.

The model may be split into P parts (fragments) with their own rounds, of equal length or cut at modules.  Part p merges
first after tau (p + 1)/P local steps, rounded up, then every tau steps.  A message is sent ``delay`` steps before its
merge; at 0 the workers wait for it.  Where that would be before the start, the first merge of the part changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from operators.ddp.collectives import Refusal
from operators.fingerprint import require_like

from ...processes.step_check import UnevenModels
from ...processes.tensors import all_finite, as_bytes, assign, first_not_finite, is_finite
from ...processes.transport import Finished, Flight, Transport
from ...records.round import Error
from ..buffers_and_states import BuffersAndStates
from ..exchange.movements import CHANGED, NOT_FINITE, MeanRefused, Payload, explanation, overflow_in_words
from ..exchange.nodes import movements_of
from ..membership.parts import Presence, Present
from ..outer import OuterOptimizer
from ..settings import Settings
from ..worker import Buffers, Worker
from .rules import Arrival, Common, Vectors, plain, restored


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
        if state["base"] is not None:
            require_like(state["base"], common.thetas[0], "base")
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
        self.flight = None if arrival is None else Finished(arrival)
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


WHOLE: Error = (0.0, float("nan"), 0.0)
SILENT: Error = (0.0, 0.0, 0.0)
# bits of all ranks' messages, errors of the workers hosted here, bits of the owners' messages in two shots
Averaged = tuple[tuple[int, ...], list[Error], tuple[int, ...]]

CHANGED_IN_FLIGHT = (
    "with overlap the parameters that require a gradient must not change: before you add, remove, "
    "freeze or unfreeze some, call average(), and make a new averaging afterwards"
)

Travel = Callable[[tuple[int, ...]], Arrival]  # from the member ranks


class Overlapped:
    """Rounds of a run whose averages overlap with local steps.

    Raises
    ------
    ValueError
        For more parts than parameters.

    Notes
    -----
    The common model and the vectors sent without an operator are in float32 or better, also for narrower parameters.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        transport: Transport,
        settings: Settings,
        outer: Callable[..., OuterOptimizer],
        beside: BuffersAndStates,
        presence: Presence,
    ) -> None:
        self.beside, self._outer, self.changed = beside, outer, False
        self.presence, self.idle = presence, False  # idle: the last round's messages had no members
        self.workers, self.transport, self.settings = workers, transport, settings
        self.rule, self.whole = settings.merge, settings.operator is None
        self.payload = Payload(0, transport.size)
        d = workers[0].anchor.numel()
        parts = self.rule.parts
        if parts > d:
            raise ValueError(f"fragments must be at most the number of parameters, {d}; got {parts}")
        ends = workers[0].ends if self.rule.modules else [d * p // parts for p in range(parts + 1)]
        self.parts = [self._part(p, (ends[p], ends[p + 1])) for p in range(parts)]
        self.accounts: list[Averaged] = []  # of what was merged in this round
        self._carried_bits = [0] * len(workers)  # of their merged messages
        self._spoken: list[bool] = []  # whether those messages had members
        self.flight_s = float("nan")  # of the last message

    def _part(self, index: int, bounds: tuple[int, int]) -> Part:
        start, stop = bounds
        theta = self.workers[0].anchor[start:stop].clone()
        copies = 1 if self.rule.is_common else len(self.workers)
        common = Common(
            [theta] * len(self.workers), [self._outer(theta, index) for _ in range(copies)], self.transport.size
        )
        key = self.settings.key if index == 0 else self.settings.key.fold_in(index)
        d, settings = stop - start, replace(self.settings, key=key)
        chosen = settings.chosen_exchange(d=d, m=self.transport.size)
        exchange = movements_of(chosen, settings.shared_key, self.transport, self.payload, d, settings.ranks_per_node)
        carried = [settings.carried_bits(d, rank) for rank in self.transport.ranks]
        return Part(index, bounds, common, exchange, carried)

    # -- steps and rounds ------------------------------------------------------------------------------------
    def begin_round(self, steps: int, tau: int) -> None:
        """Plan the messages of a round of tau steps, and send those due at its start."""
        for part in self.parts:
            if part.merge_after <= steps:
                part.plan(steps + -(-tau * (part.index + 1) // len(self.parts)), self.rule.steps_in_flight(tau))
        self._send_due(steps)

    def after_step(self, steps: int, tau: int) -> None:
        """Merge and send what is due within a round; raise the error of a failed message."""
        for part in self.parts:
            if part.flight is not None:
                part.flight.check()
        for part in self.parts[:-1]:
            if part.merge_after == steps:
                if part.send_after == steps:
                    self._send(part, steps)
                self._merge(part, steps)
                part.plan(steps + tau, self.rule.steps_in_flight(tau))
        if self.parts[-1].merge_after > steps:
            self._send_due(steps)

    def end_round(self, steps: int, changed: bool = False) -> Averaged:
        """Merge the last part, early if the round ends early; return bits and errors of the round's merges.

        ``changed`` says that a model hosted here has other parameters; its next message reports this, and all ranks
        refuse it.
        """
        self.changed = self.changed or changed
        last = self.parts[-1]
        last.merge_after = steps
        if self.rule.within_round and last.flight is None:  # the round ends before the planned send
            self._send(last, steps)
        self._merge(last, steps)
        nothing: Averaged = ((0,) * self.transport.size, [WHOLE] * len(self.workers), ())
        bits, errors, mean_bits = zip(*(self.accounts or [nothing]), strict=True)
        self.idle, self._spoken = bool(self._spoken) and not any(self._spoken), []
        self.accounts = []
        return _added(bits), [_summed(of_worker) for of_worker in zip(*errors, strict=True)], _added(mean_bits)

    def drain(self, steps: int) -> None:
        """Merge all messages in flight, and send none."""
        for part in self.parts:
            if part.flight is not None:
                self._merge(part, steps, sends=False)
            part.merge_after = steps
        self.accounts = []

    def drop(self, steps: int) -> None:
        """Drop all messages in flight, and outer optimizers whose state is not finite."""
        for part in self.parts:
            if part.flight is not None:
                part.flight.result()
                part.flight = None
            part.merge_after = steps
            part.common.outers = [
                outer if all_finite(outer.state_dict()) else self._outer(part.common.thetas[0], part.index)
                for outer in part.common.outers
            ]
        self.accounts = []

    def restart_from(self, models: Sequence[torch.Tensor]) -> None:
        """Set the common model to ``models``, one equal copy per worker, shape (d,)."""
        for part in self.parts:
            part.common.thetas = [model[part.start : part.stop].clone() for model in models]
            part.load(self.workers, part.common.thetas)

    def thetas(self) -> Vectors:
        """Return the common model of each worker hosted here, shape (d,)."""
        parts = zip(*(part.common.thetas for part in self.parts), strict=True)
        return [torch.cat(of_worker) for of_worker in parts]

    def models(self) -> Vectors:
        """Return the workers' models, shape (d,), including what rounding has dropped."""
        parts = zip(*(part.models(self.workers) for part in self.parts), strict=True)
        return [torch.cat(of_worker) for of_worker in parts]

    def record_steps(self) -> None:
        """Count a local step of the workers hosted here that make one."""
        stepping = self.presence.stepping()
        for part in self.parts:
            part.steps = [count + steps for count, steps in zip(part.steps, stepping, strict=True)]

    def take_carried_bits(self) -> list[int]:
        """Return the uncounted bits of the messages merged since the last call, one number per worker here."""
        carried, self._carried_bits = self._carried_bits, [0] * len(self.workers)
        return carried

    def _count_carried(self, part: Part, members: Sequence[int]) -> None:
        for i, rank in enumerate(self.transport.ranks):
            self._carried_bits[i] += part.carried_bits[i] if rank in members else 0

    # -- one part --------------------------------------------------------------------------------------------
    def _models(self, part: Part) -> Vectors:
        if self.changed:  # all ranks refuse the message
            return [theta.clone() for theta in part.common.thetas]
        return part.models(self.workers)

    def _send_due(self, steps: int) -> None:
        for part in self.parts if self.rule.within_round else ():
            if part.send_after == steps and part.flight is None:
                self._send(part, steps)

    def _send(self, part: Part, steps: int) -> None:
        self._launch(part, *self.rule.outgoing(part.common, self._models(part)), steps)

    def _merge(self, part: Part, steps: int, *, sends: bool = True) -> None:
        """Merge what has arrived into every worker's model."""
        arrival = None
        if part.flight is not None:
            flight, part.flight = part.flight, None
            arrival, self.flight_s = flight.result(), flight.seconds
            if arrival.refused is not None:
                raise ValueError(arrival.refused)
            self.accounts.append((arrival.bits, arrival.errors, arrival.mean_bits))
            self._spoken.append(bool(arrival.members))
            self._count_carried(part, arrival.members)
            arrival = arrival if arrival.members else None
        if self.changed:
            if sends and not self.rule.within_round:
                self._send(part, steps)
            return
        models = self._models(part)
        outgoing = self.rule.outgoing(part.common, models)
        part.load(self.workers, self.rule.merge(part.common, models, arrival))
        if arrival is not None and arrival.buffers is not None:
            part.merge_buffers(self.workers, arrival.buffers, keeps_counts=self.rule.keeps_counts)
        if sends and not self.rule.within_round:
            self._launch(part, *outgoing, steps)

    def _launch(self, part: Part, vectors: Vectors, base: torch.Tensor | None, steps: int) -> None:
        """Send vectors or compressed movements, and the buffers with the last part."""
        part.common.sent, part.common.base = vectors, base
        part.buffers = None
        looks = part is self.parts[-1] and self.beside.needed and not self.changed
        snapshots = self.beside.snapshots(copied=True) if looks else None
        if snapshots is not None:
            part.buffers = [snapshot.buffers for snapshot in snapshots]
        travel = self._of_vectors(part, vectors, base, steps) if self.whole else self._of_movements(part, base, steps)
        rows = self.presence.rows(part.steps)
        part.steps = [0] * len(self.workers)

        index, averaging = part.messages, _averaging(part.messages, steps)
        zeros = (0,) * self.transport.size
        nothing = Arrival(part.common.thetas[0], True, zeros, [SILENT] * len(self.workers), members=())

        def work() -> Arrival:
            members = self.presence.members(rows)
            if not members:
                return nothing
            try:
                arrival = travel(members)
                self._require_finite(arrival.mean, vectors, members, averaging, part.start)
                if snapshots is None:
                    return arrival
                means = self.beside.means(snapshots, Present(members), index)
            except ValueError as refused:  # all ranks raise it at the merge, after the same local step
                return replace(nothing, refused=str(refused))
            return replace(arrival, buffers=[mean.buffers for mean in means])

        part.flight = self.transport.start(work)
        part.messages += 1

    def _require_finite(
        self, mean: torch.Tensor, owns: Vectors, members: Sequence[int], averaging: str, start: int
    ) -> None:
        """Raise ValueError on all ranks unless a mean is finite."""
        if is_finite(mean):
            return
        name_of = self.workers[0].name_of
        entries = self.transport.all_gather_int([first_not_finite(vector) for vector in owns])
        for rank in members:
            if entries[rank] >= 0:
                refusal = Refusal(rank, NOT_FINITE + entries[rank])
                raise explanation(refusal, averaging, lambda entry: name_of(start + entry))
        raise ValueError(overflow_in_words(averaging, name_of(start + first_not_finite(mean))))

    def _of_vectors(self, part: Part, vectors: Vectors, base: torch.Tensor | None, steps: int) -> Travel:
        """Return a function that averages whole vectors, followed by the count of steps."""
        d, size, changed = part.stop - part.start, self.transport.size, self.changed
        tails = [self.payload.tail([], rank=r, steps=steps, changed=changed) for r in self.transport.ranks]
        owns = [torch.cat([v, tail.to(v)]) for v, tail in zip(vectors, tails, strict=True)]
        length = 8 * owns[0].element_size() * d

        def travel(members: tuple[int, ...]) -> Arrival:
            means = self.transport.means(owns, members)
            try:
                for mean in means:
                    self.payload.check(mean[d:], steps=steps, changed=False)  # also where all have changed
            except UnevenModels:
                raise ValueError(CHANGED_IN_FLIGHT) from None
            bits = tuple(length if rank in members else 0 for rank in range(size))
            return Arrival(means[0][:d], base is None, bits, [WHOLE] * len(self.workers), members=members)

        return travel

    def _of_movements(self, part: Part, base: torch.Tensor | None, steps: int) -> Travel:
        """Return a function that averages the compressed movements."""
        assert base is not None  # checked with the settings
        moved = {
            rank: (vector - base).to(torch.float32)
            for rank, vector in zip(self.transport.ranks, part.common.sent, strict=True)
        }
        averaging, index = _averaging(part.messages, steps), part.messages
        ranks, start, name_of, changed = self.transport.ranks, part.start, self.workers[0].name_of, self.changed

        def travel(members: tuple[int, ...]) -> Arrival:
            sending = None if changed else {rank: delta for rank, delta in moved.items() if rank in members}
            try:
                mean = part.exchange.mean(sending, [], members=members, round_index=index, steps=steps)
            except (Refusal, MeanRefused) as refusal:
                if refusal.reason == CHANGED:
                    raise ValueError(CHANGED_IN_FLIGHT) from None
                raise explanation(refusal, averaging, lambda entry: name_of(start + entry)) from refusal.__cause__
            errors = [mean.errors.get(rank, WHOLE if rank in members else SILENT) for rank in ranks]
            movement = mean.movement.to(base)
            return Arrival(movement, True, tuple(mean.bits), errors, tuple(mean.mean_bits), members=members)

        return travel

    # -- restart ---------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs; messages in flight are awaited."""
        parts = [part.state_dict() for part in self.parts]
        return {"parts": parts, "accounts": list(self.accounts), "carried_bits": list(self._carried_bits)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of ``state_dict``."""
        for part, part_state in zip(self.parts, state["parts"], strict=True):
            part.load_state_dict(part_state)
        self.accounts, self._carried_bits = list(state["accounts"]), list(state["carried_bits"])


def _averaging(index: int, steps: int) -> str:
    return f"averaging {index}, sent after {steps} local steps"


def _added(lengths: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the sums by rank."""
    return tuple(map(sum, zip(*lengths, strict=True)))


def _summed(errors: Sequence[Error]) -> Error:
    """Return the summed errors of all messages of a worker."""
    error2, norm2, along = map(sum, zip(*errors, strict=True))
    return float(error2), float(norm2), float(along)
