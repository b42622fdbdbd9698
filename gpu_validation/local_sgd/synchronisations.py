"""End of a round: average whole models or compressed movements, or merge an average in flight."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.distributed as dist

from operators.ddp.collectives import Refusal

from ..distributed.step_check import UnevenModels
from ..distributed.transport import Transport
from ..records.round import Round
from .attendance import Present, RollCall
from .buffers_and_states import Means, NotFiniteModel
from .choices import Choices, Option
from .choosing import ChoosingInputs
from .clock import Clock, InFlight
from .common_start import WHOLE, Averaged, CommonStart
from .config import Settings
from .finite import all_finite, first_not_finite, is_finite
from .mixing import Full, Gossip
from .movements import Deltas, Error, MeanMovement
from .overlapped import CHANGED_IN_FLIGHT
from .refusals import CHANGED, NOT_FINITE, MeanRefused, explanation, outer_in_words, overflow_in_words
from .structure import require_same_layout
from .worker import Worker, begin, deltas, follow

SILENT: Error = (0.0, 0.0, 0.0)
Pending = tuple[Averaged, Callable[[], None]]  # the record, and a function that writes the models of the next round


class Synchronisations(CommonStart):
    """Ends rounds and explains failures.

    Raises
    ------
    ValueError
        For a mode that does not fit the number of ranks, or for ranks with different settings.
    """

    def __init__(self, workers: Sequence[Worker], transport: Transport, settings: Settings, clock: Clock) -> None:
        super().__init__(workers, transport, settings, clock)
        if self.inputs.times_synchronisations:
            self._warm_up()

    def end_round(self) -> list[Round]:
        """Average now and start the next round; return one record per worker hosted here, none if all have left."""
        if self.roll_call is not None and self.overlapped is None and not self._call_the_roll(self.roll_call):
            return []
        round_index, steps = self.periods.rounds, self.periods.local_steps
        members = self.mixing.members(round_index, self.transport.size)
        changed = not follow(self.workers)
        if self.telemetry.watches:
            self.telemetry.start_sync(round_index)
        self._rows, self._arrived_rows = self.inputs.start_sync(self.clock) if self.inputs.looks else [], []
        with self._explaining():
            bits, errors, mean_bits = self._synchronise(round_index, members, changed)
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

    def _call_the_roll(self, roll_call: RollCall) -> bool:
        """Call the roll, and catch up with the steps of the other ranks; return False if no rank takes part."""
        with self._explaining():
            attendance = roll_call.call(roll_call.rows(self._since))
        roll_call.note(attendance)
        roll_call.over = not attendance.active
        self._since = [0] * len(self.workers)
        self.mixing = Present(attendance.members)
        self.periods.catch_up(attendance.steps)
        return bool(attendance.members)

    def _land(self) -> None:
        """Merge averages in flight, then set all models to their mean."""
        assert self.overlapped is not None
        with self._explaining():
            self.overlapped.drain(self.periods.total_steps)
            if any(self.transport.all_gather_int([int(self.overlapped.changed)] * len(self.workers))):
                raise ValueError(CHANGED_IN_FLIGHT)
        self.unite()

    def end_round_now(self) -> list[Round]:
        """End the round after any number of steps; merge averages in flight, so that all models are equal."""
        accounts = self.end_round()
        if self.overlapped is not None:
            self._land()
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

    def _synchronise(self, round_index: int, members: Sequence[int], changed: bool) -> Averaged:
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

    def unite(self) -> None:
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
            self.overlapped.meet(means)

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
            self.telemetry.meet(mean)
            if moved2:
                self._note_movements([(0.0, norm2, 0.0) for norm2 in moved2], mean - first.start)
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
                self.telemetry.meet_movements(movement, moved[first], gathered, len(members))
            self._note_movements(list(mean.errors.values()), movement)
            begin(self.workers, self._moved(anchor, movement))

        return (tuple(mean.bits), errors, mean.mean_bits), begin_next

    def _note_movements(self, errors: Sequence[Error], movement: torch.Tensor) -> None:
        """Store the effect of this averaging on the movements for the next row, if the schedule uses it."""
        if isinstance(self.inputs, ChoosingInputs):
            mean2 = float(movement.double() @ movement.double())
            self.inputs.note_movements([(error2, norm2, mean2) for error2, norm2, _ in errors])

    def _exchanged(self, moved: Deltas, members: Sequence[int], round_index: int) -> MeanMovement:
        """Return the mean of the members' messages; the schedule's rows travel with them."""
        steps = self.periods.total_steps
        mean = self.movements.mean(moved, self._rows, members=members, round_index=round_index, steps=steps)
        self._arrived_rows = [mean.rows[rank] for rank in members] if mean.rows else []
        return mean

    def _beside(self, round_index: int) -> list[Means]:
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
            self.overlapped.meet(means)
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


def _nothing() -> None:
    """Write nothing, because the models have been joined again."""
