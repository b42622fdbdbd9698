"""Engine of an averaging: counts local steps, ends rounds, and starts all workers from one common model.

``PeriodicAveraging`` has an engine with one worker, ``SimulatedWorkers`` one with many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from bounds.schedules import State
from operators import Identity
from operators.ddp.collectives import Refusal
from operators.exchange.nodes import check_nodes
from operators.fingerprint import (
    Fingerprint,
    combined,
    fingerprint,
    require_equal_ranks,
    require_finite,
    require_like,
    require_own_state,
)

from ..processes.learning_rates import require_rates
from ..processes.quorum import Quorum
from ..processes.step_check import UnevenModels
from ..processes.tensors import all_finite, first_not_finite, flat, is_finite, load
from ..processes.transport import Transport
from ..records.round import Error, Round
from ..telemetry import Observer
from .buffers_and_states import BuffersAndStates, NotFiniteModel, Snapshot
from .exchange.choices import Choices, Option
from .exchange.movements import (
    CHANGED,
    NOT_FINITE,
    Deltas,
    MeanMovement,
    MeanRefused,
    Payload,
    explanation,
    outer_in_words,
    overflow_in_words,
)
from .exchange.nodes import movements_of
from .exchange.parts import Gather
from .membership.parts import Presence, Present, UnevenPresence
from .membership.survival import Survival
from .merge.in_flight import CHANGED_IN_FLIGHT, SILENT, WHOLE, Averaged, Overlapped
from .mixing import Full, Gossip
from .outer import Averaging, BlockMomentum, HeavyBall, OuterOptimizer, TorchOuter
from .pacing.clock import Clock, InFlight
from .pacing.inputs import Closure, LossInputs, NoInputs, PeriodController
from .pacing.probing import ChoosingInputs, MeasuredInputs
from .settings import Settings
from .structure import layout, local, require_same_layout, warn_of_replaced_models
from .worker import Worker, begin, deltas, refresh

FREE = ("steps", "least", "candidates")  # settings that may change when a run is resumed
STATE_VERSION = "0.2.0"  # the first version whose states have these entries and fingerprints
FIRST_VERSION = "0.1.0"  # its states do not name their version
Pending = tuple[Averaged, Callable[[], None]]  # the record, and a function that writes the models of the next round


class Engine:
    """Rounds of the workers that a process hosts.

    Parameters
    ----------
    workers : sequence of Worker
        Workers hosted here.
    transport : Transport
        Exchanges with the other ranks.
    settings : Settings
        Parts of the averaging.
    clock : Clock
        Measures rounds.

    Raises
    ------
    ValueError
        For a mode that does not fit the number of ranks, or for ranks with different settings.

    Notes
    -----
    If the parameters of all models have changed since the last averaging, their exact mean starts a new run.
    """

    def __init__(self, workers: Sequence[Worker], transport: Transport, settings: Settings, clock: Clock) -> None:
        self.workers, self.transport, self.settings, self.clock = workers, transport, settings, clock
        self.require_equal_ranks()  # all later errors are the same on all ranks
        self.mixing = settings.mixing
        self.mixing.check(transport.size)
        check_nodes(transport.size, settings.ranks_per_node)
        self.presence = (UnevenPresence if settings.uneven else Presence)(transport)
        self.choices = Choices(settings, workers[0], transport, clock) if settings.chooses else None
        rule = settings.rule if self.choices is None else self.choices.rule
        self.periods = PeriodController(rule, settings.pacing.steps)
        self.inputs = self._schedule_inputs()
        # not a bound method: a reference cycle would delay the release of this object until garbage collection
        self._new_outer = partial(_outer, workers, transport, settings)
        self.telemetry: Observer = Observer()
        self.outer: OuterOptimizer
        self.overlapped: Overlapped | None
        self._rows: list[list[float]] = []  # inputs of the schedule, as sent
        self._arrived_rows: list[list[float]] = []  # inputs of the schedule, as received
        models = [[*map(local, (*worker.model.parameters(), *worker.model.buffers()))] for worker in workers]
        warn_of_replaced_models(transport.broadcast(models))
        self.begin_together()
        if self.inputs.times_synchronisations:
            self._warm_up()
        if self.periods.tau:
            self._begin_round()
        self._survival: Survival | None = None
        if isinstance(settings.membership, Quorum):
            self._survival = Survival(settings.membership)
            self._survival.join(self)

    # -- stepping ----------------------------------------------------------------------------------------
    def count(
        self, losses: Sequence[torch.Tensor | float | None], closures: Sequence[Closure | None] | None = None
    ) -> list[Round] | None:
        """Count one local step of every worker; end the round after every tau-th."""
        undecided = not self.periods.tau
        self.inputs.record_step(losses, closures, self.participants, self.clock)
        for worker in self.workers:
            if worker.rates is not None:
                worker.rates.record()
        if undecided:
            self._begin_round()
        if self.overlapped is not None:
            self.overlapped.record_steps()
        if (records := self._count()) is not None:
            return records
        self.inputs.step_counted()
        return None

    def _count(self) -> list[Round] | None:
        """Count a local step; end the round after the tau-th."""
        ends = self.periods.count()
        if self.overlapped is not None:
            with self._explaining():
                self.overlapped.after_step(self.periods.total_steps, self.periods.tau)
        return self.end_round() if ends else None

    def leave(self, rank: int) -> None:
        """Stop the steps of a rank hosted here; once all of them have left, serve the other ranks until they leave too.

        Raises ValueError without ``Uneven()``, or if the rank has left before.
        """
        if not self.periods.tau and self.settings.uneven:  # the first decision is made by all ranks
            silent = () if self.settings.measures else self.participants
            nothing = [None] * len(self.workers)
            self.inputs.record_step(nothing, nothing, silent, self.clock)
            self._begin_round()
        self.presence.leave(rank, self.periods.local_steps)
        while self.presence.all_left and not self.presence.over:
            if self.overlapped is None:
                self.end_round()
            elif self._count() is not None:
                self.presence.over = self.overlapped.idle
        if self.presence.over and self.overlapped is not None:
            self._drain()

    @property
    def participants(self) -> Sequence[int]:
        """Ranks whose models count in the coming averaging; the others may idle."""
        members, gone = self.settings.mixing.members(self.periods.rounds, self.transport.size), self.presence.gone
        return [rank for rank in members if rank not in gone] if gone else members

    # -- rounds ------------------------------------------------------------------------------------------
    def end_round(self) -> list[Round]:
        """Average now and start the next round; return one record per worker hosted here, none if all have left."""
        return self.synchronise() if self._survival is None else self._survival.end_round(self)

    def synchronise(self) -> list[Round]:
        """End a round with the ranks that are present; with a quorum it fails if one of them dies."""
        if self.presence.varies and self.overlapped is None:
            with self._explaining():
                self.mixing = self.presence.begin_sync(self.mixing, self.periods.local_steps, self.periods.catch_up)
            if self.presence.empty:
                return []
        round_index, steps = self.periods.rounds, self.periods.local_steps
        members = self.mixing.members(round_index, self.transport.size)
        changed = not refresh(self.workers)
        if self.telemetry.watches:
            self.telemetry.start_sync(round_index)
        self._rows, self._arrived_rows = self.inputs.start_sync(self.clock) if self.inputs.looks else [], []
        with self._explaining():
            bits, errors, mean_bits = self._average(round_index, members, changed)
            carried = self._carried_bits(members)
            coding_s = None if self.choices is None else self._option(self.choices).coding_s
            exchange = "sum" if self.whole else self.exchange
            self.clock.advance_round(steps, bits, members, mean_bits, self._flight(), coding_s, exchange)
            self.periods.end_round()
            if self.inputs.looks:
                self.inputs.end_sync(self._arrived_rows, members, self.clock)
            self._begin_round()
        accounts = [
            Round(round_index, steps, bits, *error, mean_bits, carried_of)
            for error, carried_of in zip(errors, carried, strict=True)
        ]
        if self.telemetry.watches:
            self.telemetry.finish_round(accounts[0], self.periods.total_steps, self.periods.rule)
        return accounts

    def _carried_bits(self, members: Sequence[int]) -> list[int]:
        """Return the uncounted bits of the messages of each worker hosted here."""
        if self.overlapped is not None:
            return self.overlapped.take_carried_bits()
        return [bits if rank in members else 0 for rank, bits in self._carried_by_rank.items()]

    def _drain(self) -> None:
        """Merge averages in flight, then set all models to their mean."""
        assert self.overlapped is not None
        with self._explaining():
            self.overlapped.drain(self.periods.total_steps)
            if any(self.transport.all_gather_int([int(self.overlapped.changed)] * len(self.workers))):
                raise ValueError(CHANGED_IN_FLIGHT)
        self.average_exactly()

    def end_round_now(self) -> list[Round]:
        """End the round after any number of steps; merge averages in flight, so that all models are equal."""
        accounts = self.end_round()
        if self.overlapped is not None:
            self._drain()
            self._begin_round()
        return accounts

    def _option(self, choices: Choices) -> Option:
        return choices.options[self.periods.rule.choice]

    def _begin_round(self) -> None:
        if self.choices is not None:
            self._take_choice()
        if self.overlapped is not None:
            self.overlapped.begin_round(self.periods.total_steps, self.periods.tau)

    def _flight(self) -> InFlight | None:
        """Return the overlap of the round that ends; None without overlap."""
        if self.overlapped is None:
            return None
        return InFlight(self.settings.merge.steps_in_flight(self.periods.tau), self.overlapped.flight_s)

    def _average(self, round_index: int, members: Sequence[int], changed: bool) -> Averaged:
        """Average, or merge the average in flight."""
        if self.overlapped is None:
            average = self._average_models if self.whole else self._average_deltas
            averaged, begin_next = average(round_index, members, changed)
            looks = self.beside.needed or isinstance(self.mixing, Gossip)
            beside = self._beside(round_index) if looks else []
            begin_next()  # the first write: a refused averaging leaves all models unchanged
            if beside:
                self.beside.load(beside)
            self._reset_optimizers()
            return averaged
        averaged = self.overlapped.end_round(self.periods.total_steps, changed)
        self._reset_optimizers()
        if self.inputs.numbers:
            self._arrived_rows = self.transport.all_gather_floats(self.inputs.rows(self.clock))
        return averaged

    def _warm_up(self) -> None:
        """Run one averaging of equal data, so that memory is allocated and code compiled before the first timed one."""
        everyone, self._rows = range(self.transport.size), self.inputs.rows(self.clock)
        with self._explaining(), self.transport.uncounted():
            if self.whole:
                self.transport.means([w.outgoing(place) for w, place in self._tailed()], everyone)
                return
            senders, receivers = [w.sender.state for w in self.workers], self.movements.states
            still = [torch.zeros(self.d, device=worker.device) for worker in self.workers]
            self._exchanged(dict(zip(self.transport.ranks, still, strict=True)), everyone, 0)
            for worker, state in zip(self.workers, senders, strict=True):
                worker.sender.state = state
            self.movements.states = receivers

    def _tailed(self, changed: bool = False) -> Iterator[tuple[Worker, torch.Tensor]]:
        return zip(self.workers, self._places(changed), strict=True)

    def average_exactly(self) -> None:
        """Set all models and buffers to their exact mean, as at the end of a run by gossip."""
        with self._explaining():
            everyone = range(self.transport.size)
            models = self._unrounded()
            means = self.transport.means([model.clone() for model in models], everyone)
            self._require_finite(means[0], lambda: models, everyone)
            beside = self.beside.means(self.beside.snapshots(states=False), Full(), 0)
        for worker, mean in zip(self.workers, means, strict=True):
            worker.begin(mean)
        self.beside.load(beside)
        if self.overlapped is not None:
            self.overlapped.restart_from(means)

    def _unrounded(self) -> list[torch.Tensor]:
        """Return the models of the workers hosted here, including what rounding has dropped."""
        if self.overlapped is not None:
            return self.overlapped.models()
        return [worker.unrounded(worker.vector().to(worker.anchor)) for worker in self.workers]

    # -- one averaging -----------------------------------------------------------------------------------
    def _average_models(self, round_index: int, members: Sequence[int], changed: bool) -> Pending:
        """Average whole models and the count of steps in one collective.

        If the parameters have ``changed``, zeros are sent in their place, to learn whether all ranks' have.
        """
        d = self.d
        moved2 = [float(x.double() @ x.double()) for x in deltas(self.workers)] if self.choices and not changed else []
        owns = [w.nothing(place) if changed else w.outgoing(place) for w, place in self._tailed(changed)]
        if self.mixing.common and not changed:
            self.telemetry.keep(owns[0][:d])
        blended = self.mixing.mix(self.transport, owns, round_index)
        first_tail, *tails = (arrived[d:] for arrived in blended)
        steps = self.periods.total_steps
        try:
            self._arrived_rows = self.payload.open_tail(first_tail, members=members, steps=steps, changed=changed)
            for tail in tails:
                self.payload.check(tail, steps=steps, changed=changed)
        except UnevenModels as uneven:
            raise self._named(uneven) from None
        if changed:
            return self._join_again(), _nothing
        if not isinstance(self.mixing, Gossip):  # _beside checks gossip
            self._require_finite(blended[0][:d], lambda: [w.vector() for w in self.workers], members)
        size = 8 * owns[0].element_size() * d
        bits = tuple(size if rank in members else 0 for rank in range(self.transport.size))

        def begin_next() -> None:
            if not self.mixing.common:
                self._mix(blended)
                return
            first, mean = self.workers[0], blended[0][:d]
            self.telemetry.record_mean(mean)
            if moved2:
                self._record_movements([(0.0, norm2, 0.0) for norm2 in moved2], mean - first.start)
            moves = self.settings.moves_outside
            begin(self.workers, self._moved(first.anchor, mean - first.start) if moves else first.unrounded(mean))

        return (bits, [WHOLE] * len(self.workers), ()), begin_next

    def _mix(self, blended: Sequence[torch.Tensor]) -> None:
        """Start every worker's next round from its own mixture."""
        for worker, arrived in zip(self.workers, blended, strict=True):
            worker.mixing_state, mixed = self.mixing.update(
                worker.mixing_state, worker.vector(), arrived[: self.d], self.transport.size
            )
            worker.begin(worker.unrounded(mixed))

    def _places(self, changed: bool = False) -> list[torch.Tensor]:
        """Return the tail behind each worker's model: its step count and measurements."""
        rows = self._rows or [[]] * len(self.workers)
        tails = [
            self.payload.tail(row, rank=rank, steps=self.periods.total_steps, changed=changed)
            for rank, row in zip(self.transport.ranks, rows, strict=True)
        ]
        return [tail.to(worker.device, worker.dtype) for worker, tail in zip(self.workers, tails, strict=True)]

    def _average_deltas(self, round_index: int, members: Sequence[int], changed: bool) -> Pending:
        """Average the members' compressed movements, decoded and summed in the same order on all ranks.

        If the parameters have ``changed``, a refusal is sent in place of a message.
        """
        sending = {r: w for r, w in zip(self.transport.ranks, self.workers, strict=True) if r in members}
        moved = None if changed else dict(zip(sending, deltas(list(sending.values())), strict=True))
        try:
            mean = self._exchanged(moved, members, round_index)
        except (Refusal, MeanRefused) as refusal:
            if refusal.reason == CHANGED:  # a model has other parameters
                return self._join_again(), _nothing
            raise explanation(refusal, self._averaging, self.workers[0].name_of) from refusal.__cause__
        anchor, first = self.workers[0].anchor, self.transport.ranks[0]
        movement = mean.movement.to(anchor)
        assert moved is not None  # a rank whose model has changed refuses
        self._require_finite(movement, lambda: [moved.get(rank, anchor) for rank in self.transport.ranks], members)
        errors = [mean.errors.get(rank, WHOLE if rank in members else SILENT) for rank in self.transport.ranks]

        def begin_next() -> None:
            if self.telemetry.watches and first in moved:
                gathered = None if mean.mean_bits else mean.decoded.get(first)  # two shots add the owners' errors
                self.telemetry.record_movements(movement, moved[first], gathered, len(members))
            self._record_movements(list(mean.errors.values()), movement)
            begin(self.workers, self._moved(anchor, movement))

        return (tuple(mean.bits), errors, mean.mean_bits), begin_next

    def _record_movements(self, errors: Sequence[Error], movement: torch.Tensor) -> None:
        """Store the effect of this averaging on the movements for the next row, if the schedule uses it."""
        if isinstance(self.inputs, ChoosingInputs):
            mean2 = float(movement.double() @ movement.double())
            self.inputs.record_movements([(error2, norm2, mean2) for error2, norm2, _ in errors])

    def _exchanged(self, moved: Deltas, members: Sequence[int], round_index: int) -> MeanMovement:
        """Return the mean of the members' messages; the schedule's rows travel with them."""
        steps = self.periods.total_steps
        mean = self.movements.mean(moved, self._rows, members=members, round_index=round_index, steps=steps)
        self._arrived_rows = [mean.rows[rank] for rank in members] if mean.rows else []
        return mean

    def _beside(self, round_index: int) -> list[Snapshot]:
        """Return the means of buffers and states; with gossip also check that all models are finite."""
        flags = None
        if isinstance(self.mixing, Gossip):
            flags = [first_not_finite(worker.vector()) for worker in self.workers]
        try:
            return self.beside.means(self.beside.snapshots(), self.mixing, round_index, models_finite=flags)
        except NotFiniteModel as refused:
            raise self._not_finite(refused.rank, refused.entry) from None

    def _reset_optimizers(self) -> None:
        if self.settings.merge.optimizer_state == "reset":
            for worker in self.workers:
                if worker.optimizer:
                    worker.optimizer.state.clear()

    def _named(self, uneven: UnevenModels) -> UnevenModels:
        """Return the error with the tensor in which models differ, if all ranks know that they do."""
        if isinstance(self.mixing, Gossip):
            return uneven
        try:
            require_same_layout(self.transport, [worker.model for worker in self.workers])
        except ValueError as difference:
            return UnevenModels(str(difference))
        return uneven

    # -- non-finite values -------------------------------------------------------------------------------
    @property
    def _averaging(self) -> str:
        return f"averaging {self.periods.rounds}, after {self.periods.total_steps} local steps"

    def _not_finite(self, rank: int, entry: int) -> ValueError:
        refusal = Refusal(rank, NOT_FINITE + entry)
        return explanation(refusal, self._averaging, self.workers[0].name_of)

    def _require_finite(
        self, mean: torch.Tensor, owns: Callable[[], Sequence[torch.Tensor]], members: Sequence[int]
    ) -> None:
        """Raise ValueError on all ranks, naming rank and entry, unless a mean that they share is finite.

        ``owns`` returns the vectors that the ranks hosted here have sent.
        """
        if math.isfinite(float(mean.sum())) or is_finite(mean):  # one sum shows it, unless the sum overflows
            return
        entries = self.transport.all_gather_int([first_not_finite(vector) for vector in owns()])
        for rank in members:
            if entries[rank] >= 0:
                raise self._not_finite(rank, entries[rank])
        raise ValueError(overflow_in_words(self._averaging, self.workers[0].name_of(first_not_finite(mean))))

    def _moved(self, theta: torch.Tensor, movement: torch.Tensor) -> torch.Tensor:
        """Return the common model after the outer step, which must be finite."""
        moved = self.outer.step(theta, movement)
        if not (math.isfinite(float(moved.sum())) or is_finite(moved)):
            raise ValueError(outer_in_words(self._averaging, self.workers[0].name_of(first_not_finite(moved))))
        return moved

    def recover(self) -> None:
        """Continue after a refused averaging: set all models to the mean of the finite ones."""
        if self.overlapped is not None:
            self.overlapped.drop(self.periods.total_steps)
        with self._explaining():
            models = self._unrounded()
            finite = self.transport.all_gather_int([int(is_finite(model)) for model in models])
            good = tuple(rank for rank, is_good in enumerate(finite) if is_good)
            means = self._means_of(good, models)
            mixing = Present(good or tuple(range(self.transport.size)))
            beside = self.beside.means(self.beside.snapshots(states=False), mixing, 0, only_finite=True)
        for worker, mean in zip(self.workers, means, strict=True):
            worker.begin(mean)
            worker.losses.clear()
            worker.drop_states_not_finite()
        self.beside.load(beside)
        if self.overlapped is not None:
            self.overlapped.restart_from(means)
        elif not all_finite(self.outer.state_dict()):
            self.outer = self._new_outer(means[0])
        self.periods.end_round()
        self._begin_round()

    def _means_of(self, good: Sequence[int], models: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the mean of the finite models, or the model at the start of the round."""
        if good:
            return self.transport.means([m if is_finite(m) else torch.zeros_like(m) for m in models], good)
        if self.overlapped is not None:
            return self.overlapped.thetas()
        if all(worker.keeps_anchor for worker in self.workers):
            return [worker.anchor.clone() for worker in self.workers]
        raise ValueError("no rank has a finite model, and the start of the round is not kept: load a checkpoint")

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Inside, errors of a failed collective are raised with their likely cause."""
        try:
            yield
        except RuntimeError as error:
            if not isinstance(error, dist.DistError) and "gloo" not in str(error):
                raise
            raise RuntimeError(
                f"averaging {self.periods.rounds} after {self.periods.total_steps} local steps failed, because another "
                f"rank has ended, died or stopped; all ranks must make equally many steps ({error})"
            ) from error

    # -- restart -----------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs besides model and optimizer; an average in flight is awaited."""
        with self._explaining():
            in_flight = None if self.overlapped is None else self.overlapped.state_dict()
        return {
            "version": STATE_VERSION,
            "fingerprint": self.fingerprint(),
            "workers": [worker.state_dict() for worker in self.workers],
            "outer": self.outer.state_dict(),
            "receivers": self.movements.states,
            "rhythm": self.periods.state_dict(),
            "clock": self.clock.state_dict(),
            "sensing": self.inputs.state_dict(),
            "in_flight": in_flight,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of ``state_dict``, or raise ValueError and change nothing."""
        if isinstance(state, Mapping) and "rhythm" in state and state.get("version") != STATE_VERSION:
            raise ValueError(
                f"a state must be of ratedist {STATE_VERSION}; got one that ratedist "
                f"{state.get('version', FIRST_VERSION)} saved and reads: load it there, or start without a state"
            )
        state = require_own_state(state, self.fingerprint(), of="this averaging")
        for name in ("workers", "outer", "receivers", "in_flight"):
            require_finite(state[name], name)
        before = self.state_dict()
        try:
            self._load(state)
        except BaseException:
            self._load(before)
            raise

    def _load(self, state: Mapping[str, Any]) -> None:
        self.periods.load_state_dict(state["rhythm"])
        self._take_choice()
        for worker, worker_state in zip(self.workers, state["workers"], strict=True):
            worker.load_state_dict(worker_state)
        self.outer.load_state_dict(state["outer"])
        require_like(state["receivers"], self.movements.states, "receivers")
        self.movements.states = list(state["receivers"])
        self.clock.load_state_dict(state["clock"])
        self.inputs.load_state_dict(state["sensing"])
        if self.overlapped is not None:
            self.overlapped.load_state_dict(state["in_flight"])

    # -- start -------------------------------------------------------------------------------------------
    def _schedule_inputs(self) -> NoInputs:
        """Return the inputs of this run's schedule."""
        if self.settings.chooses:
            return ChoosingInputs(self.workers, self.periods, self.transport.ranks)
        if self.settings.measures:
            return MeasuredInputs(self.workers, self.periods, self.transport.ranks)
        if self.periods.adapts:
            return LossInputs(self.workers, self.periods, self.transport, piggyback=self.settings.pacing.piggyback)
        return NoInputs()

    def require_equal_ranks(self) -> None:
        """Raise ValueError on all ranks unless they have equal models and settings."""
        require_same_layout(self.transport, [worker.model for worker in self.workers])
        self._own = prints = self.settings.fingerprint()
        numbers = self.transport.all_gather_int([combined(prints)] * len(self.workers))
        if len(set(numbers)) > 1:
            with self.transport.uncounted():
                columns = [self.transport.all_gather_int([digest] * len(self.workers)) for digest in prints.values()]
            require_equal_ranks([dict(zip(prints, row, strict=True)) for row in zip(*columns, strict=True)])

    def fingerprint(self) -> Fingerprint:
        """Return the fingerprint of what a saved state depends on: settings, model, rank and number of ranks."""
        prints = {name: digest for name, digest in self._own.items() if name not in FREE}
        place = {"world size": self.transport.size, "rank": list(self.transport.ranks)}
        place = {} if self.settings.least else place  # with a quorum ranks come and go
        return prints | fingerprint({"model": [layout(worker.model) for worker in self.workers], **place})

    def begin_together(self) -> None:
        """Begin the first round, or the first with these parameters, at the model that all workers share."""
        settings = self.settings
        anchor = self.workers[0].vector().to(self.workers[0].anchor)
        self.d = anchor.numel()
        for worker in self.workers:
            worker.anchor = worker.start = anchor
            worker.mixing_state = self.mixing.init(anchor)
        self.outer = self._new_outer(anchor)
        exact = all(worker.full_precision for worker in self.workers)
        # Identity would send the same 32 d bits through a codec
        self.whole = settings.operator is None or (
            isinstance(settings.operator, Identity)
            and exact
            and anchor.dtype == torch.float32
            and settings.ranks_per_node == 1
        )
        self.connect()
        self.overlapped = None
        if settings.merge.in_flight:
            transport, make = self.transport, self._new_outer
            self.overlapped = Overlapped(self.workers, transport, settings, make, self.beside, self.presence)
        # the anchor serves the outer step, ranks that join later, and later rounds with other operators
        needed = settings.moves_outside or settings.least > 0 or settings.chooses
        alone = self.whole and exact and self.mixing.common and not needed
        for worker in self.workers:
            worker.keeps_anchor = not alone

    def connect(self) -> None:
        """Make the exchange of movements for the current number of ranks, with empty state."""
        averages_states = self.settings.merge.optimizer_state == "average"
        self.beside = BuffersAndStates(self.workers, self.transport, averages_states)
        settings, transport = self.settings, self.transport
        in_flight = settings.merge.in_flight  # such averages have their own exchange
        self.payload = Payload(0 if in_flight else self.inputs.numbers, transport.size)
        if self.choices is not None:
            self._connect_choices(self.choices)
            return
        exchange = settings.chosen_exchange(d=self.d, m=transport.size)
        self.exchange = exchange.name
        if in_flight:
            self.movements = movements_of(Gather(), settings.shared_key, transport, self.payload, self.d)
        else:
            self.movements = movements_of(
                exchange, settings.shared_key, transport, self.payload, self.d, settings.ranks_per_node
            )
        for worker, sender in zip(self.workers, self.movements.senders, strict=True):
            worker.sender = sender
        silent = self.whole or in_flight
        carried = (0 if silent else settings.carried_bits(self.d, rank) for rank in transport.ranks)
        self._carried_by_rank = dict(zip(transport.ranks, carried, strict=True))

    def _connect_choices(self, choices: Choices) -> None:
        """Make all exchanges among which the rule chooses; restart the rule if the number of parameters has changed."""
        if choices.d != self.d:
            choices.try_again(self.workers[0])
            self.periods.rule = self.periods.rule.beginning_with(choices.rule.candidates)
        choices.connect(self.payload, self.d)
        self._take_choice()

    def _take_choice(self) -> None:
        """Use the exchange that the rule has chosen for the coming round."""
        if self.choices is None:
            return
        option = self._option(self.choices)
        self.whole, self.exchange, self.movements = option.whole, option.exchange, option.movements
        for worker, sender in zip(self.workers, self.movements.senders, strict=True):
            worker.sender = sender
        self._carried_by_rank = dict(zip(self.transport.ranks, option.carried_bits, strict=True))

    def _join_again(self) -> Averaged:
        """Take the exact mean of whole models whose parameters have changed on all ranks, and start again.

        Parameters that are or were trained are averaged.  States of operators are dropped.
        """
        self.telemetry.change()
        self.inputs.drop_probe()
        self.require_equal_ranks()
        for worker in self.workers:
            worker.require_averageable()
        everyone = range(self.transport.size)
        parts = [worker.once_averaged() for worker in self.workers]
        means = self.transport.means([flat(tensors) for tensors in parts], everyone)
        for worker, tensors, mean in zip(self.workers, parts, means, strict=True):
            load(mean, tensors)
            worker.register()
        size = sum(8 * p.element_size() * p.numel() for p in parts[0])
        if self.inputs.numbers and not self.whole:
            self._arrived_rows = self.transport.all_gather_floats(self.inputs.rows(self.clock))
        self.begin_together()
        return (size,) * self.transport.size, [WHOLE] * len(self.workers), ()


class HasEngine:
    """An averaging that has an engine: what ``PeriodicAveraging`` and ``SimulatedWorkers`` have in common."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def average_exactly(self) -> None:
        """Set all models and buffers to their exact mean, as at the end of a run by gossip."""
        self.engine.average_exactly()

    def recover(self) -> None:
        """Continue after a refused averaging: set all models to the mean of the finite ones.

        Every rank calls it after the ``ValueError`` of an averaging with a non-finite model, buffer or optimizer state.
        Buffers that differ become the mean over the ranks where they are finite.  Non-finite optimizer states and
        averages in flight are dropped.  An outer optimizer takes no step.  Then a new round begins.  If no model is
        finite, all ranks return to the model at the start of the round, where it is kept.

        Raises
        ------
        ValueError
            On every rank, if no rank has a finite model and the start of the round is not kept.
        """
        self.engine.recover()

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs besides model and optimizer, as tensors and plain values.

        An average in flight is awaited, but stored without merging it.
        """
        return self.engine.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of ``state_dict``; model and optimizer are restored by their own methods.

        Parameters
        ----------
        state : mapping
            Result of ``state_dict``.

        Raises
        ------
        ValueError
            For a state of other settings, another model, rank or number of ranks, and for one that is not finite or
            whose tensors have other shapes.  Nothing has changed then, but the current round is not timed.
        """
        self.engine.load_state_dict(state)

    @property
    def clock(self) -> Clock:
        """The clock of the schedule and of the record of averagings."""
        return self.engine.clock

    @property
    def exchange(self) -> str:
        """Way of the current round's movements, which is "gather", "two_shot" or "sum"."""
        return self.engine.exchange

    @property
    def participants(self) -> Sequence[int]:
        """Ranks whose models count in the coming averaging; the others may idle."""
        return self.engine.participants

    @property
    def tau(self) -> int:
        """Local steps of the current round; 0 before an adaptive schedule has made its first decision."""
        return self.engine.periods.tau

    @property
    def schedule_state(self) -> State:
        """State of the schedule; with "auto" it includes n = D/Y, the decline of gradients and the jump of the loss."""
        return self.engine.periods.rule

    @property
    def total_steps(self) -> int:
        """Local steps made so far."""
        return self.engine.periods.total_steps


def _outer(
    workers: Sequence[Worker], transport: Transport, settings: Settings, anchor: torch.Tensor, part: int = 0
) -> OuterOptimizer:
    """Return a new optimizer of the common model, or of one of its fragments."""
    if settings.outers:
        return TorchOuter(settings.outers[part % len(settings.outers)], anchor)
    if not isinstance(settings.outer, BlockMomentum):
        return Averaging()
    for worker in workers:
        if worker.rates is None:
            worker.watch_rates()
    return HeavyBall(settings.outer.beta, partial(_rates_of_rank_0, workers, transport), anchor)


def _rates_of_rank_0(workers: Sequence[Worker], transport: Transport) -> tuple[float, float] | None:
    """Return rank 0's current learning rate and its mean over the steps of the round; None if unknown."""
    watched = [worker.rates for worker in workers if worker.rates is not None]
    rows = transport.all_gather_floats([[rates.now(), rates.end_round()] for rates in watched])
    now, mean = (require_rates([row[i] for row in rows])[0] for i in range(2))
    return None if now is None or mean is None else (now, mean)


def _nothing() -> None:
    """Write nothing, because the models have been joined again."""
