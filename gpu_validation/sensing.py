"""What a rule that measures is told: times of the rounds, and probes of the gradient, one round later."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from bounds.schedules import Measured

from .clock import Clock
from .probe import Closure, Probe, Weights, scalar
from .rhythm import Rhythm
from .worker import Worker

NUMBERS = 7  # of a row: clock, learning rate, then those of Measured.shared
UNKNOWN = [math.nan] * 5
NEEDED = (
    'schedule="auto" measures how much of a gradient survives: call averaging.step(loss, closure), where closure() '
    "computes the gradient of the last step again (zero_grad, loss, backward) and returns the loss"
)


class Sensing:
    """The measurements of the workers hosted here.

    A row is sent with every averaging: seconds of the round's local steps, seconds of the averaging before, and what a
    probe found that followed it.  So no collective is added; what an averaging and a probe tell is one round late.
    """

    def __init__(self, workers: Sequence[Worker], rhythm: Rhythm) -> None:
        self.workers, self.rhythm = workers, rhythm
        self.probes = [Probe(w.model, w.parameters, w.optimizer) for w in workers if w.optimizer is not None]
        self._found = [list(UNKNOWN) for _ in workers]
        self._last: list[tuple[Any, Closure | None]] = [(None, None)] * len(workers)
        self._weights: list[Weights] | None = None
        self.evaluations = 0  # of the closures, on each worker

    @property
    def due(self) -> bool:
        """Whether the current round ends with a probe."""
        return bool(self.rhythm.rule.probe)

    def hear(self, losses: Sequence[Any], closures: Sequence[Closure | None]) -> None:
        """Losses and closures of one local step; None from a worker that idles."""
        kept = [loss.detach() if isinstance(loss, torch.Tensor) else loss for loss in losses]
        self._last = list(zip(kept, closures, strict=True))

    def counted(self) -> None:
        """A local step was counted, and the round goes on."""
        if self.due and self.rhythm.local_steps == self.rhythm.tau - 1:
            for probe in self.probes:
                probe.await_last_step()

    def arrive(self, clock: Clock, ranks: Sequence[int]) -> None:
        """The round's local steps are done.  ranks : of the workers hosted here."""
        for worker in self.workers:
            if worker.parameters[0].is_cuda:
                torch.cuda.synchronize(worker.parameters[0].device)
        clock.arrive(self.rhythm.local_steps)
        for found, seconds in zip(self._found, clock.computed(ranks), strict=True):
            found[0] = seconds
        due = self.due and self.rhythm.local_steps > 1
        self._weights = [probe.weights() for probe in self.probes] if due else None

    def rows(self, clock: Clock) -> list[list[float]]:
        """What each worker sends with this averaging."""
        now = clock.seconds()
        return [[now, w.eta(), *found] for w, found in zip(self.workers, self._found, strict=True)]

    @staticmethod
    def shared(rows: Sequence[Sequence[float]]) -> Measured:
        """What the rows of all ranks say together."""
        return Measured.shared(row[2:] for row in rows)

    def leave(self, clock: Clock, ranks: Sequence[int], members: Sequence[int]) -> None:
        """The averaging is done: note its time, and probe if it is time to.  ranks : of the workers hosted here."""
        self._found = [[math.nan, seconds, *UNKNOWN[2:]] for seconds in clock.averaged(ranks)]
        if self._weights is not None:
            for i, rank in enumerate(ranks):
                loss, closure = self._last[i]
                if rank in members and closure is not None:
                    lost, fresh, now = self.probes[i].measure(closure, self._weights[i])
                    self._found[i][2:] = [lost, fresh, now - scalar(loss)]
            self._weights = None
            self.evaluations += 1
            clock.pass_probe()
        clock.leave()

    def state_dict(self) -> dict[str, Any]:
        """What is known but not sent yet."""
        return {"found": [list(row) for row in self._found], "evaluations": self.evaluations}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken."""
        self._found, self.evaluations = [list(row) for row in state["found"]], state["evaluations"]
