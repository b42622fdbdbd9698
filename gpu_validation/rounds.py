"""The rounds of local-update SGD, for all workers that a process hosts: its own one, or many virtual ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from bounds.schedules import Measured
from operators import Identity, Message
from operators.gather import Refusal

from . import in_step, notes
from .clock import Clock
from .deltas import CHANGED, SILENT, WHOLE, Error, Receiver, Round, Sender, decoding_error, in_words, why_not
from .joining import Joining
from .mixing import Full, Mixing
from .probe import Closure
from .rhythm import Rhythm
from .sensing import NEEDED, NUMBERS, Sensing
from .settings import Settings
from .structure import require_averageable
from .telemetry import Observer
from .tensors import flat, floating_state, load
from .worker import Worker


class Rounds:
    """Counts local steps and ends rounds.

    workers : those hosted here, in the order of ``transport.ranks``.
    A model whose parameters are others at an averaging than before (added, removed, frozen or not) is joined again.
    Raises ValueError for a mode that does not fit the number of ranks, or ranks that are configured differently.
    """

    def __init__(self, workers: Sequence[Worker], transport: Joining, settings: Settings, clock: Clock) -> None:
        self.workers, self.transport, self.settings, self.clock = workers, transport, settings, clock
        self.rhythm, self.mixing = Rhythm(settings.rule, settings.steps), settings.mode
        self.mixing.check(transport.size)
        self._require_equal_ranks()
        self.sensing = Sensing(workers, self.rhythm) if settings.measures else None
        self.telemetry = Observer()
        self._rows: list[list[float]] = []
        self._failure: Exception | None = None
        transport.broadcast([[*w.model.parameters(), *w.model.buffers()] for w in workers])
        self._begin_together()
        if self.sensing is not None:
            self._warm_up()

    def _require_equal_ranks(self) -> None:
        """Others would wait for each other for ever."""
        numbers = self.transport.agree([self.settings.fingerprint(worker.model) for worker in self.workers])
        for rank, number in enumerate(numbers):
            if number != numbers[0]:
                raise ValueError(
                    f"ranks 0 and {rank} differ in the model's shapes, in what is frozen, or in a setting of the "
                    "averaging: give all ranks the same ones"
                )

    def _begin_together(self) -> None:
        """All workers hold the same model: the first round, or the first with these parameters, begins there."""
        settings, size = self.settings, self.transport.size
        anchor = self.workers[0].vector().to(self.workers[0].anchor)
        for rank, worker in zip(self.transport.ranks, self.workers, strict=True):
            worker.anchor = worker.start = anchor
            worker.sender = Sender(settings.operator, settings.shared_key, rank=rank, d=anchor.numel())
            worker.mixing_state = self.mixing.init(anchor)
        self.receiver = Receiver(settings.operator, settings.shared_key, m=size, d=anchor.numel())
        self.momentum = torch.zeros_like(anchor)
        exact = all(worker.full_precision for worker in self.workers)
        # what Identity would send of every movement are the same 32 d bits, but through a codec
        self.whole = settings.operator is None or (
            isinstance(settings.operator, Identity) and exact and anchor.dtype == torch.float32
        )
        alone = self.whole and exact and self.mixing.common and not settings.block_momentum
        for worker in self.workers:
            worker.keeps_anchor = not alone
            if self.sensing is not None:
                worker.make_room(notes.values(NUMBERS, size=size))

    def _join_again(self) -> tuple[tuple[int, ...], list[Error]]:
        """All models have other parameters than before: average them whole, old and new, and begin anew.

        Frozen by now or not, whatever ranks may differ in becomes the exact mean; what operators remember is dropped.
        """
        self.telemetry.change()
        self._require_equal_ranks()
        for worker in self.workers:
            require_averageable(worker.model)
        everyone = range(self.transport.size)
        parts = [worker.once_averaged() for worker in self.workers]
        means = self.transport.means([flat(own) for own in parts], everyone)
        for worker, own, mean in zip(self.workers, parts, means, strict=True):
            load(mean, own)
            worker.hold()
        size = sum(8 * p.element_size() * p.numel() for p in parts[0])
        if self.sensing is not None and not self.whole:
            self._rows = self.transport.numbers(self.sensing.rows(self.clock))
        self._begin_together()
        return (size,) * self.transport.size, [WHOLE] * len(self.workers)

    def _warm_up(self) -> None:
        """One averaging of what is equal everywhere: the first one that is timed finds memory and compiled code."""
        everyone = range(self.transport.size)
        with self._explaining(), self.transport.uncounted():
            if self.whole:
                self.transport.means([w.outgoing(place) for w, place in self._tailed()], everyone)
                return
            senders, receivers = [w.sender.state for w in self.workers], list(self.receiver.states)
            zeros = [w.sender.encode(np.zeros(self.receiver.d, np.float32), 0) for w in self.workers]
            self.receiver.mean(self._gathered(zeros, everyone), everyone, 0, keep=())
            for worker, state in zip(self.workers, senders, strict=True):
                worker.sender.state = state
            self.receiver.states = receivers

    def _tailed(self, changed: bool = False) -> Iterator[tuple[Worker, torch.Tensor]]:
        return zip(self.workers, self._places(changed), strict=True)

    # -- stepping ----------------------------------------------------------------------------------------
    def count(
        self, losses: Sequence[torch.Tensor | float | None], closures: Sequence[Closure | None] | None = None
    ) -> list[Round] | None:
        """Count one local step of every worker; end the round after every tau-th."""
        if self.sensing is not None:
            given = closures if closures is not None else [None] * len(self.workers)
            silent = [rank for rank, own in zip(self.transport.ranks, given, strict=True) if own is None]
            if silent and not set(silent).isdisjoint(self.participants):
                raise ValueError(NEEDED)
            self.sensing.hear(losses, given)
            if not self.rhythm.tau:  # nothing is measured yet, so that nothing need be shared
                self.rhythm.decide_by(time_s=0.0, eta=self.workers[0].eta(), measured=Measured())
        elif self.rhythm.adapts:
            for worker, loss in zip(self.workers, losses, strict=True):
                if loss is not None:
                    worker.hear(loss)
            if not self.rhythm.tau:
                self._decide(self.participants)
        if self.rhythm.count():
            return self.end_round()
        if self.sensing is not None:
            self.sensing.counted()
        return None

    def end_round(self) -> list[Round]:
        """Average now, and start the next round; one account for each worker hosted here."""
        turn, steps = self.rhythm.rounds, self.rhythm.local_steps
        members = self.mixing.members(turn, self.transport.size)
        followed = [worker.follow() for worker in self.workers]
        changed = not all(followed)
        self.telemetry.arrive(turn)
        if self.sensing is not None:
            self.sensing.arrive(self.clock, self.transport.ranks)
        with self._explaining():
            average = self._average_models if self.whole else self._average_deltas
            bits, errors = average(turn, members, changed)
            self._average_rest(turn)
            self.clock.pass_round(steps, bits, members)
            self.rhythm.end_round()
            if self.sensing is not None:
                self._decide_by_rows()
            elif self.rhythm.adapts:
                self._decide(members)
        for worker in self.workers:
            worker.losses = []
        if self.sensing is not None:
            self.sensing.leave(self.clock, self.transport.ranks, members)
        accounts = [Round(turn, steps, bits, *error) for error in errors]
        self.telemetry.depart(accounts[0], self.rhythm.total_steps, self.rhythm.rule)
        return accounts

    @property
    def participants(self) -> Sequence[int]:
        """The ranks whose models count in the coming averaging; a rank that is not among them may idle."""
        return self.mixing.members(self.rhythm.rounds, self.transport.size)

    def unite(self) -> None:
        """Give every rank the exact mean of all models and buffers, as at the end of a run by gossip."""
        with self._explaining():
            models = [w.unrounded(w.vector().to(w.anchor)) for w in self.workers]
            means = self.transport.means(models, range(self.transport.size))
            self._blend([w.buffers for w in self.workers], torch.float64, Full())
        for worker, mean in zip(self.workers, means, strict=True):
            worker.begin(mean)

    # -- one averaging -----------------------------------------------------------------------------------
    def _average_models(self, turn: int, members: Sequence[int], changed: bool) -> tuple[tuple[int, ...], list[Error]]:
        """Whole models, in the parameters' dtype, with the count of steps behind them: one collective.

        changed : the models have other parameters; zeros are sent in their place, to learn whether all have.
        """
        d = self.receiver.d
        if self.mixing.common and not changed:
            owns = [w.outgoing(place) for w, place in self._tailed()]
            self.telemetry.keep(owns[0][:d])
        else:  # the models are needed once more
            owns = [w.nothing(place) if changed else flat([*w.parameters, place]) for w, place in self._tailed(changed)]
        blended = self.mixing.blend(self.transport, owns, turn)
        for arrived in blended:
            in_step.require(arrived[d : d + in_step.VALUES], self.rhythm.total_steps, changed)
        if self.sensing is not None:
            noted = blended[0][d + in_step.VALUES :]
            self._rows = notes.collect(noted, members=members, size=self.transport.size)
        if changed:
            return self._join_again()
        if self.mixing.common:
            first, mean = self.workers[0], blended[0][:d]
            self.telemetry.meet(mean)
            self._begin(
                self._with_momentum(mean - first.start) if self.settings.block_momentum else first.unrounded(mean)
            )
        else:
            for worker, arrived in zip(self.workers, blended, strict=True):
                worker.mixing_state, mixed = self.mixing.update(
                    worker.mixing_state, worker.vector(), arrived[:d], self.transport.size
                )
                worker.begin(worker.unrounded(mixed))
        size = 8 * owns[0].element_size() * d
        bits = tuple(size if rank in members else 0 for rank in range(self.transport.size))
        return bits, [WHOLE] * len(self.workers)

    def _places(self, changed: bool = False) -> list[torch.Tensor]:
        """What goes behind each worker's model: the count of its steps, and what it has measured."""
        place = in_step.encode(self.rhythm.total_steps, changed)
        tails = [place] * len(self.workers)
        if self.sensing is not None:
            rows = zip(self.transport.ranks, self.sensing.rows(self.clock), strict=True)
            tails = [torch.cat([place, notes.spread(row, rank=r, size=self.transport.size)]) for r, row in rows]
        return [tail.to(worker.device, worker.dtype) for worker, tail in zip(self.workers, tails, strict=True)]

    def _average_deltas(self, turn: int, members: Sequence[int], changed: bool) -> tuple[tuple[int, ...], list[Error]]:
        """Compressed movements of the members, decoded and folded alike by all ranks.

        changed : the models have other parameters; that is said in place of a message.
        """
        here = list(zip(self.transport.ranks, self.workers, strict=True))
        deltas: dict[int, np.ndarray] = {}
        self._failure = None
        own: list[Message | int | None] = [CHANGED if changed else None for _ in here]
        for i, (rank, worker) in enumerate(here):
            if rank in members and not changed:
                try:
                    deltas[rank] = worker.delta()
                    own[i] = worker.sender.encode(deltas[rank], turn)
                except Exception as error:  # the other ranks must hear of it, whatever it is
                    own[i], self._failure = why_not(worker.movement()), error
        try:
            messages = self._gathered(own, members)
        except Refusal as refusal:
            if refusal.reason == CHANGED:
                return self._join_again()
            at = f"averaging {turn}, after {self.rhythm.total_steps} local steps"
            raise ValueError(in_words(refusal, at, self.workers[0].name_of, self._failure)) from self._failure
        mean, decoded = self.receiver.mean(messages, members, turn, keep=self.transport.ranks)
        anchor = self.workers[0].anchor
        movement = torch.from_numpy(mean).to(anchor)
        if here[0][0] in deltas:
            self.telemetry.meet_movements(movement, deltas[here[0][0]], decoded[here[0][0]], len(members))
        self._begin(self._with_momentum(movement) if self.settings.block_momentum else anchor + movement)
        bits = tuple(messages[rank].bits if rank in members else 0 for rank in range(self.transport.size))
        return bits, [decoding_error(decoded[rank], deltas[rank]) if rank in members else SILENT for rank, _ in here]

    def _gathered(self, own: Sequence[Message | int | None], members: Sequence[int]) -> dict[int, Message]:
        """All ranks' messages; what the members have measured travels before theirs."""
        if self.sensing is None:
            return self.transport.gather(own, position=self.rhythm.total_steps)
        rows = self.sensing.rows(self.clock)
        noted = [
            notes.attach(row, message) if isinstance(message, Message) else message
            for row, message in zip(rows, own, strict=True)
        ]
        messages = self.transport.gather(noted, position=self.rhythm.total_steps)
        self._rows = []
        for rank in members:
            row, messages[rank] = notes.detach(messages[rank], numbers=NUMBERS)
            self._rows.append(row)
        return messages

    def _begin(self, anchor: torch.Tensor) -> None:
        for worker in self.workers:
            worker.begin(anchor)

    def _with_momentum(self, movement: torch.Tensor) -> torch.Tensor:
        """u <- beta u + G, x <- anchor - eta u, where -eta G is the mean movement and eta is rank 0's."""
        eta = self.transport.numbers([[w.eta()] for w in self.workers])[0][0]
        self.momentum = self.settings.block_momentum * self.momentum - movement / eta
        return self.workers[0].anchor - eta * self.momentum

    def _average_rest(self, turn: int) -> None:
        """Buffers, in float64 so that counters stay exact, and what the policy wants of the optimizers."""
        self._blend([w.buffers for w in self.workers], torch.float64, self.mixing, turn)
        if self.settings.optimizer_state == "average":
            states = [floating_state(w.optimizer) for w in self.workers if w.optimizer]
            self._blend(states, None, self.mixing, turn)
        elif self.settings.optimizer_state == "reset":
            for worker in self.workers:
                if worker.optimizer:
                    worker.optimizer.state.clear()

    def _blend(
        self, tensors: Sequence[Sequence[torch.Tensor]], dtype: torch.dtype | None, mixing: Mixing, turn: int = 0
    ) -> None:
        if tensors[0]:
            blended = mixing.blend(self.transport, [flat(own, dtype) for own in tensors], turn)
            for own, arrived in zip(tensors, blended, strict=True):
                load(arrived, own)

    def _decide_by_rows(self) -> None:
        """All ranks hold the rows that came with the averaging, and choose the same tau."""
        time_s, eta = self._rows[0][:2]
        self.rhythm.decide_by(time_s=time_s, eta=eta, measured=Sensing.shared(self._rows))

    def _decide(self, members: Sequence[int]) -> None:
        """All ranks give their losses, clock and learning rate, and choose the same tau."""
        now = self.clock.seconds()
        rows = [self.rhythm.row(worker.heard(), now, worker.eta()) for worker in self.workers]
        self.rhythm.decide(self.transport.numbers(rows), members)

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """A collective that fails does not say why."""
        try:
            yield
        except RuntimeError as error:
            if not isinstance(error, dist.DistError) and "gloo" not in str(error):
                raise
            raise RuntimeError(
                f"averaging {self.rhythm.rounds} after {self.rhythm.total_steps} local steps failed, because another "
                f"rank has ended, died or stopped; all ranks must make equally many steps ({error})"
            ) from error

    # -- restart -----------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed run needs beside model and optimizer; tensors and plain values only."""
        return {
            "workers": [worker.state_dict() for worker in self.workers],
            "momentum": self.momentum,
            "receivers": list(self.receiver.states),
            "rhythm": self.rhythm.state_dict(),
            "clock": self.clock.state_dict(),
            "sensing": None if self.sensing is None else self.sensing.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken; model and optimizer are restored by their own methods.

        Raises ValueError if the state belongs to a model of another size.
        """
        for worker, own in zip(self.workers, state["workers"], strict=True):
            worker.load_state_dict(own)
        self.momentum = state["momentum"].to(self.momentum)
        self.receiver.states = list(state["receivers"])
        self.rhythm.load_state_dict(state["rhythm"])
        self.clock.load_state_dict(state["clock"])
        if self.sensing is not None:
            self.sensing.load_state_dict(state["sensing"])
