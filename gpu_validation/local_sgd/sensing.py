"""Measurements for rules that need them: times of rounds and probes of the gradient, sent one round later."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from bounds.schedules import Measured

from ..distributed.learning_rates import require_rates
from .clock import Clock
from .gradient_probe import Closure, Probe, Weights, scalar
from .period import PeriodController
from .schedule_inputs import NoInputs, Row
from .turning import Turning
from .worker import Worker

NUMBERS = 10  # length of a row: clock, learning rate, then the numbers of Measured.shared
UNKNOWN = [math.nan] * 8
NEEDED = (
    'schedule="auto" needs a closure: call averaging.step(loss, closure), where closure() '
    "computes the gradient of the last step again (zero_grad, loss, backward) and returns the loss"
)


class MeasuredInputs(NoInputs):
    """Measurements of the workers hosted here.

    Every averaging sends a row: seconds of the round's local steps, seconds of the previous averaging, and the result
    of the probe after it.  So no collective is added, and results of an averaging and its probe arrive one round later.
    """

    looks = True
    numbers = NUMBERS
    times_synchronisations = True

    def __init__(self, workers: Sequence[Worker], periods: PeriodController, ranks: Sequence[int]) -> None:
        self.workers, self.periods, self.ranks = workers, periods, ranks
        self.probes = [Probe(w.model, w.parameters, w.optimizer) for w in workers if w.optimizer is not None]
        self._found = [list(UNKNOWN) for _ in workers]
        self._last: list[tuple[Any, Closure | None]] = [(None, None)] * len(workers)
        self._weights: list[Weights] | None = None
        self._turning = Turning()
        self._follows = not getattr(periods.schedule, "overlapped", False)  # averagings end in a common model
        self.evaluations = 0  # of the closures, on each worker

    @property
    def due(self) -> bool:
        """Whether the current round ends with a probe."""
        return bool(self.periods.rule.probe)

    def record_step(
        self,
        losses: Sequence[Any],
        closures: Sequence[Closure | None] | None,
        participants: Sequence[int],
        clock: Clock,
    ) -> None:
        """Store losses and closures of one local step; a worker that idles has None.

        Raises
        ------
        ValueError
            Without a closure from a worker that takes part.
        """
        given = closures if closures is not None else [None] * len(self.workers)
        if None in given:
            silent = [rank for rank, closure in zip(self.ranks, given, strict=True) if closure is None]
            if not set(silent).isdisjoint(participants):
                raise ValueError(NEEDED)
        if not self.periods.tau:  # no measurements to share yet
            eta = self.workers[0].eta()  # an invalid one is refused at the first averaging, by all ranks
            self.periods.decide_by(time_s=0.0, eta=eta if 0 <= eta < math.inf else None, measured=Measured())
        if self.periods.rule.probe:  # else they are not needed
            kept = [loss.detach() if isinstance(loss, torch.Tensor) else loss for loss in losses]
            self._last = list(zip(kept, given, strict=True))

    def step_counted(self) -> None:
        """Prepare the probes for the round's last step, if one is due."""
        if self.periods.local_steps == self.periods.tau - 1 and self.due:
            for probe in self.probes:
                probe.await_last_step()

    def start_sync(self, clock: Clock) -> list[Row]:
        """Time the round's local steps, and store the weights if a probe is due."""
        for worker in self.workers:
            if worker.parameters[0].is_cuda:
                torch.cuda.synchronize(worker.parameters[0].device)
        clock.start_sync(self.periods.local_steps)
        for measured, seconds in zip(self._found, clock.computed(self.ranks), strict=True):
            measured[0] = seconds
        if self.periods.local_steps != self.periods.tau:
            for probe in self.probes:
                probe.forget_place()
        due = self.due and self.periods.local_steps > 1
        self._weights = [probe.weights() for probe in self.probes] if due else None
        return self.rows(clock)

    def rows(self, clock: Clock) -> list[list[float]]:
        """Return clock, learning rate and measurements of every worker."""
        now = clock.seconds()
        return [[now, w.eta(), *measured] for w, measured in zip(self.workers, self._found, strict=True)]

    def drop_probe(self) -> None:
        """Cancel the probe, because the last gradients belong to other parameters."""
        self._weights = None

    def end_sync(self, arrived: Sequence[Row], members: Sequence[int], clock: Clock) -> None:
        """Choose the next period by the members' measurements and the first member's clock and learning rate.

        Then read the synchronisation's time, and run a probe if one is due.
        """
        time_s, eta = arrived[0][0], require_rates([row[1] for row in arrived])[0]
        self.periods.decide_by(time_s=time_s, eta=eta, measured=Measured.shared(row[2:] for row in arrived))
        self._found = [[math.nan, seconds, *UNKNOWN[2:]] for seconds in clock.averaged(self.ranks)]
        if self._weights is not None:
            for i, rank in enumerate(self.ranks):
                loss, closure = self._last[i]
                if rank in members and closure is not None:
                    self._found[i][2:7] = self.probes[i].measure(closure, self._weights[i], scalar(loss))
            self._weights = None
            self.evaluations += 1
            clock.pass_probe()
        self._turn()
        clock.end_sync()

    def _turn(self) -> None:
        """Store the angle between the mean model's last two movements, which is the same for all workers."""
        if not self._follows:
            return
        cosine = self._turning.cosine(self.workers[0].outgoing())
        for measured in self._found:
            measured[7] = cosine

    def state_dict(self) -> dict[str, Any]:
        """Return the measurements that are not sent yet."""
        return {
            "found": [list(row) for row in self._found],
            "evaluations": self.evaluations,
            "path": self._turning.state(),
            "places": [probe.place for probe in self.probes],
        }

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        """Restore a state of ``state_dict``."""
        assert state is not None  # of a run that measures too
        self._found, self.evaluations = [list(row) for row in state["found"]], state["evaluations"]
        self._turning.load(state["path"])
        for probe, place in zip(self.probes, state["places"], strict=True):
            probe.place = list(place)
