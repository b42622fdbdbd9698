"""Averages in flight: a message leaves while the workers go on, and is merged some local steps later.

The model may be cut into parts of equal length, each with rounds of its own, which end one after the other: part p of P
merges p + 1 P-ths of a period after the start, then every tau steps.  A message is sent ``delay`` steps before it is
merged; in the first round a part sends nothing if it would have to before the start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from operators.ddp.gather import Refusal

from ..distributed.in_flight import Flight, Landed
from ..distributed.tensors import flat
from ..distributed.transport import Transport
from .attendance import RollCall
from .config import Settings
from .exchanges import movements
from .merge_rules import RULES, Arrival, Common, Vectors, plain, restored
from .movements import Error
from .outer import OuterOptimizer
from .payload import Payload
from .refusals import CHANGED, MeanRefused, explanation
from .worker import Worker

WHOLE: Error = (0.0, float("nan"), 0.0)
SILENT: Error = (0.0, 0.0, 0.0)
# bits of all ranks' messages, errors of the workers hosted here, bits of the owners' messages in two shots
Account = tuple[tuple[int, ...], list[Error], tuple[int, ...]]


Travel = Callable[[tuple[int, ...]], Arrival]  # from the ranks that a message is of


class Part:
    """One part of the model: when it travels next, and what is under way.

    Parameters
    ----------
    index : int
        Number of the part.
    bounds : tuple of int
        Its first entry and the first one behind it.
    common : Common
        Its common model.
    exchange : Movements
        What carries its compressed movements.
    """

    def __init__(self, index: int, bounds: tuple[int, int], common: Common, exchange: Any) -> None:
        self.index, (self.start, self.stop), self.common, self.exchange = index, bounds, common, exchange
        self.flight: Flight[Arrival] | None = None
        self.send_after = self.merge_after = 0  # local steps of the run
        self.messages = 0
        self.buffers: Vectors | None = None  # as they were sent
        self.steps = [0] * len(common.thetas)  # local steps of the workers hosted here since the last message

    def plan(self, merge_after: int, delay: int) -> None:
        """Set when the next message is sent and merged.

        Parameters
        ----------
        merge_after : int
            Local steps of the run at its merge.
        delay : int
            Local steps in flight.
        """
        self.merge_after, self.send_after = merge_after, merge_after - delay

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs; a message in flight is awaited, and stored as it arrived."""
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
            "senders": [sender.state for sender in self.exchange.senders],
            "receivers": self.exchange.states,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken.

        Parameters
        ----------
        state : mapping
            What ``state_dict`` gave.
        """
        if self.flight is not None:
            self.flight.result()  # sent at the start of a round that is not gone on with: it would still write here
        common = self.common
        like = common.thetas[0]
        common.thetas = [theta.to(like) for theta in state["thetas"]]
        common.sent = [vector.to(like) for vector in state["sent"]]
        base = None if state["base"] is None else state["base"].to(like)
        common.base = common.thetas[0] if state["base_is_theta"] else base
        for outer, outer_state in zip(common.outers, state["outers"], strict=True):
            outer.load_state_dict(outer_state)
        arrival = state["arrival"]
        if arrival is not None:
            arrival = restored(arrival, like)
        self.flight = None if arrival is None else Landed(arrival)
        self.send_after, self.merge_after, self.messages = state["plan"]
        self.buffers, self.steps = state["buffers"], list(state["steps"])
        for sender, sender_state in zip(self.exchange.senders, state["senders"], strict=True):
            sender.state = sender_state
        self.exchange.states = list(state["receivers"])


class Overlapped:
    """The rounds of a run whose averages are in flight.

    Parameters
    ----------
    workers : sequence of Worker
        Those hosted here.
    transport : Transport
        How messages travel.
    settings : Settings
        Merge rule, delay, parts and operators.
    outer : callable
        Makes the outer optimizer of a vector.
    roll_call : RollCall or None, optional
        Called by every message, where ranks may run out of data.

    Raises
    ------
    ValueError
        For parameters below float32, whose steps in flight rounding would lose, and for more parts than parameters.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        transport: Transport,
        settings: Settings,
        outer: Callable[[torch.Tensor], OuterOptimizer],
        roll_call: RollCall | None = None,
    ) -> None:
        self.roll_call, self.idle = roll_call, False  # whether nobody had anything to say in the last round
        self.workers, self.transport, self.settings = workers, transport, settings
        self.rule = RULES[settings.overlap]
        self.whole = settings.operator is None
        self.payload = Payload(0, transport.size)
        if not all(worker.full_precision for worker in workers):
            raise ValueError(
                f'overlap="{settings.overlap}" needs all parameters in float32, or all in float64; got '
                f"{workers[0].dtype}: keep them there, and compute in less by torch.autocast"
            )
        d = workers[0].anchor.numel()
        if settings.fragments > d:
            raise ValueError(f"fragments must be at most the number of parameters, {d}; got {settings.fragments}")
        ends = [d * p // settings.fragments for p in range(settings.fragments + 1)]
        self.parts = [self._part(p, (ends[p], ends[p + 1]), outer) for p in range(settings.fragments)]
        self.accounts: list[Account] = []  # of what was merged in this round
        self._spoken: list[bool] = []  # whether anybody had something to say in those messages
        self.flight_s = float("nan")  # of the last message

    def _part(self, index: int, bounds: tuple[int, int], outer: Callable[[torch.Tensor], OuterOptimizer]) -> Part:
        start, stop = bounds
        theta = self.workers[0].anchor[start:stop].clone()
        copies = 1 if self.rule.is_common else len(self.workers)
        common = Common([theta] * len(self.workers), [outer(theta) for _ in range(copies)], self.transport.size)
        settings = self.settings if index == 0 else replace(self.settings, key=self.settings.key.fold_in(index))
        kind = settings.chosen_exchange(d=stop - start, m=self.transport.size)
        return Part(index, bounds, common, movements(kind, settings, self.transport, self.payload, stop - start))

    # -- when ------------------------------------------------------------------------------------------------
    def begin_round(self, steps: int, tau: int) -> None:
        """Plan the messages of a round of tau steps, and send what leaves at its start.

        Parameters
        ----------
        steps : int
            Local steps so far.
        tau : int
            Of the round.
        """
        for part in self.parts:
            if part.merge_after <= steps:
                part.plan(steps + -(-tau * (part.index + 1) // len(self.parts)), self.delay(tau))
        self._send_due(steps)

    def after_step(self, steps: int, tau: int) -> None:
        """Merge and send what is due within a round; raise if a message has failed.

        Parameters
        ----------
        steps : int
            Local steps so far.
        tau : int
            Of the round.
        """
        for part in self.parts:
            if part.flight is not None:
                part.flight.check()
        for part in self.parts[:-1]:
            if part.merge_after == steps:
                self._merge(part, steps)
                part.plan(steps + tau, self.delay(tau))
        if self.parts[-1].merge_after > steps:
            self._send_due(steps)

    def end_round(self, steps: int) -> Account:
        """Merge the last part, at once if the round ends early; return bits and errors of what was merged in the round.

        Parameters
        ----------
        steps : int
            Local steps so far.
        """
        last = self.parts[-1]
        last.merge_after = steps
        if self.rule.within_round and last.flight is None:  # the round ends before it was due
            self._send(last, steps)
        self._merge(last, steps)
        nothing: Account = ((0,) * self.transport.size, [WHOLE] * len(self.workers), ())
        bits, errors, mean_bits = zip(*(self.accounts or [nothing]), strict=True)
        self.idle, self._spoken = bool(self._spoken) and not any(self._spoken), []
        self.accounts = []
        return _added(bits), [_summed(of_worker) for of_worker in zip(*errors, strict=True)], _added(mean_bits)

    def drain(self, steps: int) -> None:
        """Merge all that is under way, and send nothing.

        Parameters
        ----------
        steps : int
            Local steps so far.
        """
        for part in self.parts:
            if part.flight is not None:
                self._merge(part, steps, sends=False)
            part.merge_after = steps
        self.accounts = []

    def meet(self, models: Sequence[torch.Tensor]) -> None:
        """Take models, one for each worker and the same everywhere, for the common one.

        Parameters
        ----------
        models : sequence of tensor, shape (d,)
            Theirs.
        """
        for part in self.parts:
            part.common.thetas = [model[part.start : part.stop].clone() for model in models]

    def thetas(self) -> Vectors:
        """Return the common model, one for each worker hosted here, shape (d,)."""
        parts = zip(*(part.common.thetas for part in self.parts), strict=True)
        return [torch.cat(of_worker) for of_worker in parts]

    def delay(self, tau: int) -> int:
        """Return the local steps that a message is in flight.

        Parameters
        ----------
        tau : int
            Local steps of the round.
        """
        delay = self.settings.delay
        return tau if delay is None else min(delay, tau)

    def record_steps(self, stepping: Sequence[bool]) -> None:
        """Note who has made a local step.

        Parameters
        ----------
        stepping : sequence of bool
            Of the workers hosted here.
        """
        for part in self.parts:
            part.steps = [count + steps for count, steps in zip(part.steps, stepping, strict=True)]

    # -- one part --------------------------------------------------------------------------------------------
    def _models(self, part: Part) -> Vectors:
        return [worker.part(part.start, part.stop) for worker in self.workers]

    def _send_due(self, steps: int) -> None:
        for part in self.parts if self.rule.within_round else ():
            if part.send_after == steps and part.flight is None:
                self._send(part, steps)

    def _send(self, part: Part, steps: int) -> None:
        self._launch(part, *self.rule.outgoing(part.common, self._models(part)), steps)

    def _merge(self, part: Part, steps: int, *, sends: bool = True) -> None:
        """Let every worker go on from what has arrived."""
        arrival = None
        if part.flight is not None:
            arrival, self.flight_s = part.flight.result(), part.flight.seconds
            self.accounts.append((arrival.bits, arrival.errors, arrival.mean_bits))
            self._spoken.append(bool(arrival.members))
            part.flight = None
            arrival = arrival if arrival.members else None
        models = self._models(part)
        outgoing = self.rule.outgoing(part.common, models)
        for worker, model in zip(self.workers, self.rule.merge(part.common, models, arrival), strict=True):
            worker.load_part(part.start, model)
        if arrival is not None and arrival.buffers is not None:
            self._merge_buffers(part, arrival.buffers)
        if sends and not self.rule.within_round:
            self._launch(part, *outgoing, steps)

    def _launch(self, part: Part, vectors: Vectors, base: torch.Tensor | None, steps: int) -> None:
        """Send vectors, or compressed movements, and the buffers with the last part."""
        part.common.sent, part.common.base = vectors, base
        part.buffers = None
        if part is self.parts[-1] and self.workers[0].buffers:
            part.buffers = [flat(worker.buffers, torch.float64) for worker in self.workers]
        buffers = None if part.buffers is None else [vector.clone() for vector in part.buffers]
        travel = self._of_vectors(part, vectors, base, steps) if self.whole else self._of_movements(part, base, steps)
        rows = None if self.roll_call is None else self.roll_call.rows(part.steps)
        part.steps = [0] * len(self.workers)

        def work() -> Arrival:
            members = self._members(rows)
            if not members:
                return Arrival(
                    part.common.thetas[0], True, (0,) * self.transport.size, [SILENT] * len(self.workers), members=()
                )
            arrival = travel(members)
            if buffers is None:
                return arrival
            return replace(arrival, buffers=self.transport.means(buffers, members))

        part.flight = self.transport.start(work)
        part.messages += 1

    def _members(self, rows: Sequence[Sequence[float]] | None) -> tuple[int, ...]:
        """Return the ranks that a message is of."""
        if self.roll_call is None or rows is None:
            return tuple(range(self.transport.size))
        return self.roll_call.call(rows).members

    def _of_vectors(self, part: Part, vectors: Vectors, base: torch.Tensor | None, steps: int) -> Travel:
        """Return what sends vectors as they are, with the count of steps behind them."""
        d, size = part.stop - part.start, self.transport.size
        tails = [self.payload.tail([], rank=r, steps=steps, changed=False) for r in self.transport.ranks]
        owns = [torch.cat([v, tail.to(v)]) for v, tail in zip(vectors, tails, strict=True)]
        length = 8 * owns[0].element_size() * d

        def travel(members: tuple[int, ...]) -> Arrival:
            means = self.transport.means(owns, members)
            for mean in means:
                self.payload.check(mean[d:], steps=steps, changed=False)
            bits = tuple(length if rank in members else 0 for rank in range(size))
            return Arrival(means[0][:d], base is None, bits, [WHOLE] * len(self.workers), members=members)

        return travel

    def _of_movements(self, part: Part, base: torch.Tensor | None, steps: int) -> Travel:
        """Return what sends the compressed movements."""
        assert base is not None  # checked with the settings
        moved = {
            rank: (vector - base).to(torch.float32)
            for rank, vector in zip(self.transport.ranks, part.common.sent, strict=True)
        }
        averaging, index = f"averaging {part.messages}, sent after {steps} local steps", part.messages
        ranks, start, name_of = self.transport.ranks, part.start, self.workers[0].name_of

        def travel(members: tuple[int, ...]) -> Arrival:
            sending = {rank: delta for rank, delta in moved.items() if rank in members}
            try:
                mean = part.exchange.mean(sending, [], members=members, round_index=index, steps=steps)
            except (Refusal, MeanRefused) as refusal:
                if refusal.reason == CHANGED:
                    raise
                raise explanation(refusal, averaging, lambda entry: name_of(start + entry)) from refusal.__cause__
            errors = [mean.errors.get(rank, WHOLE if rank in members else SILENT) for rank in ranks]
            movement = mean.movement.to(base)
            return Arrival(movement, True, tuple(mean.bits), errors, tuple(mean.mean_bits), members=members)

        return travel

    def _merge_buffers(self, part: Part, means: Vectors) -> None:
        """Statistics become the mean as it was sent; counters also count what was done since, where steps are kept."""
        assert part.buffers is not None  # they have travelled
        for worker, mean, sent in zip(self.workers, means, part.buffers, strict=True):
            entry = 0
            for buffer in worker.buffers:
                place = slice(entry, entry + buffer.numel())
                value = mean[place].view_as(buffer)
                if not buffer.is_floating_point():
                    since = buffer.double() - sent[place].view_as(buffer) if self.rule.name != "overwrite" else 0.0
                    value = value.round() + since
                buffer.copy_(value)
                entry += buffer.numel()

    # -- restart ---------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs; what is in flight is awaited."""
        return {"parts": [part.state_dict() for part in self.parts], "accounts": list(self.accounts)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken.

        Parameters
        ----------
        state : mapping
            What ``state_dict`` gave.
        """
        for part, part_state in zip(self.parts, state["parts"], strict=True):
            part.load_state_dict(part_state)
        self.accounts = list(state["accounts"])


def _added(lengths: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the sums by rank."""
    return tuple(map(sum, zip(*lengths, strict=True)))


def _summed(errors: Sequence[Error]) -> Error:
    """Return the errors of all messages of a worker together."""
    error2, norm2, along = map(sum, zip(*errors, strict=True))
    return float(error2), float(norm2), float(along)
