"""State that all ranks share before a round: one model, one outer optimizer, one exchange."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from operators import Identity
from operators.exchange.nodes import check_nodes
from operators.fingerprint import Fingerprint, combined, fingerprint, require_equal_ranks

from ..distributed.learning_rates import require_rates
from ..distributed.tensors import flat, load
from ..distributed.transport import Transport
from ..telemetry import Observer
from .attendance import RollCall
from .buffers_and_states import BuffersAndStates
from .choices import Choices
from .choosing import ChoosingInputs
from .clock import Clock
from .config import Settings
from .exchanges import movements, movements_of
from .movements import Error
from .outer import Averaging, BlockMomentum, HeavyBall, OuterOptimizer, TorchOuter
from .overlapped import Overlapped
from .parts import Gather
from .payload import Payload
from .period import PeriodController
from .schedule_inputs import LossInputs, NoInputs
from .sensing import MeasuredInputs
from .sharded import local
from .structure import layout, require_same_layout, warn_of_replaced_models
from .worker import Worker

FREE = ("steps", "least", "candidates")  # settings that may change when a run is resumed
WHOLE: Error = (0.0, float("nan"), 0.0)
# bits of all ranks' messages, errors of the workers hosted here, bits of the owners' messages in two shots
Averaged = tuple[tuple[int, ...], list[Error], tuple[int, ...]]


class CommonStart:
    """Workers that start together, and start again when the parameters of all models have changed.

    Raises
    ------
    ValueError
        For a mode that does not fit the number of ranks, or for ranks with different settings.
    """

    def __init__(self, workers: Sequence[Worker], transport: Transport, settings: Settings, clock: Clock) -> None:
        self.workers, self.transport, self.settings, self.clock = workers, transport, settings, clock
        self._require_equal_ranks()  # all later errors are the same on all ranks
        self.mixing = settings.mixing
        self.mixing.check(transport.size)
        check_nodes(transport.size, settings.ranks_per_node)
        self.roll_call = RollCall(transport) if settings.uneven else None
        self._since = [0] * len(workers)  # local steps of each since the last roll call
        self.choices = Choices(settings, workers[0], transport, clock) if settings.chooses else None
        rule = settings.rule if self.choices is None else self.choices.rule
        self.periods = PeriodController(rule, settings.pacing.steps)
        self.inputs = self._schedule_inputs()
        # not a bound method: a reference cycle would delay the release of this object until garbage collection
        self._new_outer = partial(_outer, workers, transport, settings)
        self.telemetry = Observer()
        self._rows: list[list[float]] = []  # inputs of the schedule, as sent
        self._arrived_rows: list[list[float]] = []  # inputs of the schedule, as received
        models = [[*map(local, (*worker.model.parameters(), *worker.model.buffers()))] for worker in workers]
        warn_of_replaced_models(transport.broadcast(models))
        self._begin_together()

    def _schedule_inputs(self) -> NoInputs:
        """Return the inputs of this run's schedule."""
        if self.settings.chooses:
            return ChoosingInputs(self.workers, self.periods, self.transport.ranks)
        if self.settings.measures:
            return MeasuredInputs(self.workers, self.periods, self.transport.ranks)
        if self.periods.adapts:
            return LossInputs(self.workers, self.periods, self.transport, piggyback=self.settings.pacing.piggyback)
        return NoInputs()

    def _require_equal_ranks(self) -> None:
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

    def _begin_together(self) -> None:
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
        self._connect()
        self.overlapped = self._in_flight() if settings.merge.in_flight else None
        # the anchor serves the outer step, ranks that join later, and later rounds with other operators
        needed = settings.moves_outside or settings.least > 0 or settings.chooses
        alone = self.whole and exact and self.mixing.common and not needed
        for worker in self.workers:
            worker.keeps_anchor = not alone

    def _connect(self) -> None:
        """Make the exchange of movements for the current number of ranks, with empty state."""
        averages_states = self.settings.merge.optimizer_state == "average"
        self.beside = BuffersAndStates(self.workers, self.transport, averages_states)
        settings, transport = self.settings, self.transport
        in_flight = settings.merge.in_flight  # such averages have their own exchange
        self.payload = Payload(0 if in_flight else self.inputs.numbers, transport.size)
        if self.choices is not None:
            self._connect_choices(self.choices)
            return
        self.exchange = settings.chosen_exchange(d=self.d, m=transport.size).name
        if in_flight:
            self.movements = movements_of(Gather(), settings.shared_key, transport, self.payload, self.d)
        else:
            self.movements = movements(settings, transport, self.payload, self.d)
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
        option = self.choices.options[self.periods.rule.choice]
        self.whole, self.exchange, self.movements = option.whole, option.exchange, option.movements
        for worker, sender in zip(self.workers, self.movements.senders, strict=True):
            worker.sender = sender
        self._carried_by_rank = dict(zip(self.transport.ranks, option.carried_bits, strict=True))

    def _in_flight(self) -> Overlapped:
        return Overlapped(self.workers, self.transport, self.settings, self._new_outer, self.beside, self.roll_call)

    def _join_again(self) -> Averaged:
        """Take the exact mean of whole models whose parameters have changed on all ranks, and start again.

        Parameters that are or were trained are averaged.  States of operators are dropped.
        """
        self.telemetry.change()
        self.inputs.drop_probe()
        self._require_equal_ranks()
        for worker in self.workers:
            worker.require_averageable()
        everyone = range(self.transport.size)
        parts = [worker.once_averaged() for worker in self.workers]
        means = self.transport.means([flat(tensors) for tensors in parts], everyone)
        for worker, tensors, mean in zip(self.workers, parts, means, strict=True):
            load(mean, tensors)
            worker.hold()
        size = sum(8 * p.element_size() * p.numel() for p in parts[0])
        if self.inputs.numbers and not self.whole:
            self._arrived_rows = self.transport.all_gather_floats(self.inputs.rows(self.clock))
        self._begin_together()
        return (size,) * self.transport.size, [WHOLE] * len(self.workers), ()


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
