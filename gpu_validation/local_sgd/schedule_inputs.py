"""What a schedule is told before it chooses the next period: nothing, the losses, or measurements (``sensing``).

All three have the same methods, so that a round reads the same whatever its schedule looks at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..distributed.transport import Transport
from .clock import Clock
from .gradient_probe import Closure
from .period import PeriodController
from .worker import Worker

Row = list[float]


class NoInputs:
    """For a fixed period: nothing is recorded, nothing travels, nothing is decided."""

    looks = False  # at synchronisations, for a schedule that decides by what it sees
    numbers = 0  # of a row that travels with every synchronisation
    times_synchronisations = False  # whether the first one that counts has to find memory and compiled code

    def record_step(
        self,
        losses: Sequence[Any],
        closures: Sequence[Closure | None] | None,
        participants: Sequence[int],
        clock: Clock,
    ) -> None:
        """Take what the script has given for one local step of every worker."""

    def step_counted(self) -> None:
        """Note that a local step was counted, and the round goes on."""

    def start_sync(self, clock: Clock) -> list[Row]:
        """Note that the round's local steps are done, and return ``rows``."""
        return []

    def rows(self, clock: Clock) -> list[Row]:
        """Return what travels with this synchronisation, a row for each worker; none if ``numbers`` is 0."""
        return []

    def drop_probe(self) -> None:
        """Note that the model has other parameters now than when this synchronisation began."""

    def end_sync(self, arrived: Sequence[Row], members: Sequence[int], clock: Clock) -> None:
        """Choose the next period, and note that the synchronisation is done.

        Parameters
        ----------
        arrived : sequence of list of float
            The members' rows that have travelled with the synchronisation, the same on all ranks.
        members : sequence of int
            The ranks that took part.
        clock : Clock
            What the run goes by.
        """

    def state_dict(self) -> dict[str, Any] | None:
        """Return what is known but not sent yet, in plain values; None if that is nothing."""
        return None

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        """Continue where ``state_dict`` was taken."""


class LossInputs(NoInputs):
    """For rules that look at the loss, the clock and the learning rate.

    Parameters
    ----------
    workers : sequence of Worker
        Those hosted here.
    periods : PeriodController
        Counts steps and asks the rule.
    transport : Transport
        By which all ranks learn of each other's numbers.
    piggyback : bool
        Whether they travel with the models, by the clock at the start of the synchronisation, and not in a collective
        of their own after it.
    """

    looks = True

    def __init__(
        self, workers: Sequence[Worker], periods: PeriodController, transport: Transport, *, piggyback: bool
    ) -> None:
        self.workers, self.periods, self.transport = workers, periods, transport
        self.numbers = 3 if piggyback else 0

    def record_step(
        self,
        losses: Sequence[Any],
        closures: Sequence[Closure | None] | None,
        participants: Sequence[int],
        clock: Clock,
    ) -> None:
        """Remember the losses; before the first round all ranks decide at once."""
        for worker, loss in zip(self.workers, losses, strict=True):
            if loss is not None:
                worker.record_loss(loss)
        if not self.periods.tau:
            self._decide([], participants, clock)

    def start_sync(self, clock: Clock) -> list[Row]:
        """Return ``rows``: nothing is timed."""
        return self.rows(clock)

    def rows(self, clock: Clock) -> list[Row]:
        """Return mean loss, clock and learning rate of every worker, if they are to travel."""
        return self._rows(clock) if self.numbers else []

    def end_sync(self, arrived: Sequence[Row], members: Sequence[int], clock: Clock) -> None:
        """Choose the next period, and forget the losses of the round."""
        self._decide(arrived, members, clock)
        for worker in self.workers:
            worker.losses = []

    def _decide(self, arrived: Sequence[Row], members: Sequence[int], clock: Clock) -> None:
        """Choose the next period by all ranks' rows; they are exchanged now unless they have arrived."""
        self.periods.decide(arrived or self.transport.all_gather_floats(self._rows(clock)), members)

    def _rows(self, clock: Clock) -> list[Row]:
        now = clock.seconds()
        return [self.periods.row(worker.round_losses(), now, worker.eta()) for worker in self.workers]
