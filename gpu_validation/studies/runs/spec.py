"""One training run: what is trained, how it synchronises, how long steps take, and where it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch

from bounds.runtime import RuntimeModel, StepTime
from bounds.runtime.law import Law
from bounds.schedules import Schedule
from operators import Feedback, Operator

from ...averaging.exchange.parts import Candidates, ExchangePart
from ...averaging.merge.rules import Blocking, Merge
from ...averaging.outer import OuterFactory
from ...workloads import Workload

# A fold is a number by which ``Key.fold_in`` derives an independent key.  Committed records have these numbers.
MINI_BATCHES = 0  # of every rank and local step
MESSAGES = 1  # randomness of the operator, by round and rank
VECTORS = 2  # synthetic vectors that are compressed outside of training
STEP_TIMES = 3  # durations of local steps, by worker
SLEEPS = 4  # imposed seconds of a synchronisation, the same on all ranks
TIMED_ALONE = 5  # mini-batches and messages of synchronisations that are timed by themselves


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "momentum": partial(torch.optim.SGD, momentum=0.9),
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adagrad": torch.optim.Adagrad,
}


@dataclass(frozen=True)
class TrainingRun:
    """Everything that is fixed before a run; real processes and simulated workers carry it out alike.

    Parameters
    ----------
    workload : Workload
        What is trained, with its learning rate.
    schedule : int, Schedule or "auto"
        Local steps of a round, or the rule for them.
    step : StepTime or None
        Law of a local step's duration in seconds; longer than the computing, or the step overruns.  None: not padded.
    seed : int
        Of all randomness of the run.
    budget_s : float or None
        The run ends with the first round that ends after so many seconds; give it or ``steps``.
    steps : int or None
        The run ends with the first round that ends after so many local steps.
    operator, exchange, merge, outer
        Parts of the averaging, as of ``PeriodicAveraging``.
    decay : tuple of (int, float)
        From local step k on, the learning rate is the workload's times factor, for (k, factor) pairs.
    optimizer : str
        "sgd", "momentum" (0.9), "adam", "adamw" or "adagrad".
    delay : Law or None
        Law of a sleep after every synchronisation in seconds, the same on all ranks; adds to what the network takes.
    points : int
        How often, at most, loss and accuracy are taken, evenly in time.
    trace : bool
        Whether to record |grad F|^2 at the mean of the workers' models before every step.
    fenced : int
        Number of synchronisations that are timed by themselves before the start, each behind a barrier.
    runtime : RuntimeModel or None
        The model of m workers whose simulated clock, the same on all ranks, takes the place of the wall clock of real
        processes; nothing is slept then, and nothing timed by itself.

    Raises
    ------
    ValueError
        Without an end, for decays out of order, or another optimizer.
    """

    workload: Workload
    schedule: int | Schedule | Literal["auto"]
    step: StepTime | None
    seed: int
    budget_s: float | None = None
    steps: int | None = None
    operator: Operator | Feedback | Literal["auto"] | None = None
    exchange: ExchangePart | None = None
    merge: Merge = Blocking()  # noqa: RUF009  frozen
    outer: OuterFactory | None = None
    decay: tuple[tuple[int, float], ...] = ()
    optimizer: str = "sgd"
    delay: Law | None = None
    points: int = 60
    trace: bool = False
    fenced: int = 6
    runtime: RuntimeModel | None = None

    def __post_init__(self) -> None:
        if self.budget_s is None and self.steps is None:
            raise ValueError("a run needs an end: give budget_s or steps")
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer must be one of {', '.join(OPTIMIZERS)}; got {self.optimizer!r}")
        starts = [k for k, _ in self.decay]
        if starts != sorted(set(starts)) or any(factor <= 0 for _, factor in self.decay):
            raise ValueError(f"decay must be (step, factor > 0) pairs with increasing steps; got {self.decay}")

    @property
    def chooses(self) -> bool:
        """Whether every round chooses the operator."""
        return self.operator == "auto" or isinstance(self.exchange, Candidates)

    def eta(self, k: int) -> float:
        """Return the learning rate of local step k, counted from 0."""
        return self.workload.eta * next((factor for start, factor in reversed(self.decay) if k >= start), 1.0)

    def optimizer_of(self, model: torch.nn.Module) -> torch.optim.Optimizer:
        """Return a new optimizer of a model's parameters at the workload's learning rate."""
        return OPTIMIZERS[self.optimizer](model.parameters(), lr=self.workload.eta)

    def is_over(self, seconds: float, steps: int) -> bool:
        """Return whether the run ends with the round that has come to this."""
        return (self.budget_s is not None and seconds >= self.budget_s) or (
            self.steps is not None and steps >= self.steps
        )
