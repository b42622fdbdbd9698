"""Races against the clock: local-update SGD on real processes for so many seconds, and the loss that it reached when.

    race = Race(SmallNetwork(), schedule=20, step=Constant(4e-3), seed=0, budget_s=4.0)
    (record,) = run_races([race], m=4, shape=Shape(rate_bit_per_s=1e8, delay_s=5e-3, jitter_s=2e-3))
    record["seconds"], record["losses"]

The clock runs over local steps, filled up by sleeping to a drawn duration, and over averagings on a shaped network.
Losses are taken afterwards, from the averaged models that were kept.  A race with a ``runtime`` goes by that model's
simulated clock instead: real processes, and nothing that a loaded machine could change.
"""

from __future__ import annotations

import itertools
import math
import mmap
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch

from bounds.runtime import RuntimeModel, StepTime
from bounds.runtime.law import Law
from bounds.schedules import Schedule
from operators import Feedback, Key, Operator
from operators.random import bits32

from .averaging import PeriodicAveraging
from .clock import Clock, SimulatedClock, WallClock
from .curves import Kept, Record, gradients, looked_at
from .exchange import Exchange, fence, gather_arrays
from .launch import Place, run_ranks
from .network import Network, Shape
from .riding import Riding
from .tensors import flat, floating_tensors
from .timing import PaddedSteps
from .timing.scheduling import Scheduling
from .timing.stragglers import SEED_WORDS, step_seconds
from .workloads import Workload

GRADIENT, MESSAGE, STEPS, DELAYS, FENCED = 0, 1, 3, 4, 5  # folds of a race's key
SPARE_STEPS = 1000  # drawn beyond twice the expected number
POLL_S = 2e-5

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "momentum": partial(torch.optim.SGD, momentum=0.9),
    "adam": torch.optim.Adam,
}


@dataclass(frozen=True)
class Race:
    """One run of one schedule.

    step : law of a local step's duration; longer than the computing, or the step overruns.
    budget_s, steps : the race ends with the first round that ends after either; give one at least.
    operator : compresses the movement of a round; None sends whole models.
    decay : (k, factor) pairs: from local step k on, the learning rate is the workload's times factor.
    optimizer : "sgd", "momentum" (0.9) or "adam".
    delay : law of a sleep after every averaging, the same on all ranks; adds to what the network takes.
    points : how often, at most, loss and accuracy are taken, evenly in time.  trace : also record |grad F|^2 at the
    mean of the workers' models before every step.  fenced : averagings timed by themselves before the start.
    runtime : the model of m workers whose simulated clock, the same on all ranks, takes the place of the wall clock;
    nothing is slept then, and nothing fenced.
    Raises ValueError without an end, for decays out of order, or another optimizer.
    """

    workload: Workload
    schedule: int | Schedule | Literal["auto"]
    step: StepTime
    seed: int
    budget_s: float | None = None
    steps: int | None = None
    operator: Operator | Feedback | None = None
    decay: tuple[tuple[int, float], ...] = ()
    optimizer: str = "sgd"
    delay: Law | None = None
    points: int = 60
    trace: bool = False
    fenced: int = 6
    runtime: RuntimeModel | None = None

    def __post_init__(self) -> None:
        if self.budget_s is None and self.steps is None:
            raise ValueError("a race needs an end: give budget_s or steps")
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer must be one of {', '.join(OPTIMIZERS)}; got {self.optimizer!r}")
        starts = [k for k, _ in self.decay]
        if starts != sorted(set(starts)) or any(factor <= 0 for _, factor in self.decay):
            raise ValueError(f"decay must be (step, factor > 0) pairs with increasing steps; got {self.decay}")

    def eta(self, k: int) -> float:
        """The learning rate of local step k, counted from 0."""
        return self.workload.eta * next((factor for start, factor in reversed(self.decay) if k >= start), 1.0)


def run_races(
    races: Sequence[Race],
    *,
    m: int,
    shape: Shape | None,
    scheduling: Scheduling = "realtime",
    silence_s: float = 60.0,
) -> list[Record]:
    """Run the races one after the other in the same m processes; one record each, of plain values.

    shape : of the network; None takes the machine's loopback.  silence_s : longer than any race.
    A record holds ``seconds``, ``step``, ``losses``, ``accuracies``, ``bits`` (of all ranks' messages so far), ``taus``
    (of the round that ended) at each point, the start included; ``rounds``, [tau, number of rounds] in order;
    ``steps_done`` and ``took_s`` until the last averaging; ``rule``, what the schedule knows at the end, and its
    ``probes``; ``fenced_s``, the averagings timed by themselves; ``gradient2``, if traced, a value a step.
    Raises RunFailed if a rank dies or hangs, ValueError for a workload made for another number of workers.
    """
    for race in races:
        race.workload.require_workers(m)
        if race.runtime is not None and race.runtime.workers() != m:
            raise ValueError(f"the runtime model is one of {race.runtime.workers()} workers; the race has m = {m}")
        race.workload.objective(race.workload.model())  # loads the data before the processes fork
    with nullcontext() if shape is None else Network.of(shape, m) as network, closing(mmap.mmap(-1, 8)) as shared:

        def work(place: Place, emit: Callable[[Any], None]) -> None:
            for race in races:
                record = _run(place, race, _Finish(shared))
                if place.rank == 0:
                    emit(record)

        running: Generator[Any, None, None] = run_ranks(
            work, processes=m, silence_s=silence_s, network=network, scheduling=scheduling
        )
        with closing(running):
            return list(running)


class _Finish:
    """Whether the round that has just ended is the last: rank 0 says so, by its clock, and the others wait for it."""

    def __init__(self, shared: mmap.mmap) -> None:
        self._word = np.frombuffer(shared, np.int64)

    def clear(self) -> None:
        self._word[0] = -1

    def decide(self, turn: int, over: bool) -> None:
        self._word[0] = 2 * turn + over

    def heard(self, turn: int) -> bool:
        while self._word[0] < 2 * turn:
            time.sleep(POLL_S)
        return bool(self._word[0] % 2)


def _run(place: Place, race: Race, finish: _Finish) -> Record:
    key = Key(race.seed)
    fenced = [] if race.runtime else _fenced(place, race, key.fold(FENCED))
    if place.rank == 0:
        finish.clear()
    padding = PaddedSteps(0.0) if race.runtime else PaddedSteps(0.0, _durations(race, key, place.rank))
    kept = _timed(place, race, key, padding, finish)
    computed = torch.tensor([float(np.mean(padding.durations)), float(padding.overruns)], dtype=torch.float64)
    mean_step_s, overruns = torch.stack(gather_arrays(computed)).mean(dim=0).tolist()
    return {
        "workload": race.workload.name,
        "schedule": repr(race.schedule),
        "seed": race.seed,
        "m": place.size,
        "step_law": repr(race.step),
        "eta": race.workload.eta,
        **looked_at(place, race.workload, kept, race.points),
        "rounds": [[tau, len(list(same))] for tau, same in itertools.groupby(r.tau for r in kept.rounds)],
        "steps_done": sum(r.tau for r in kept.rounds),
        "took_s": kept.seconds[-1],
        "fenced_s": fenced,
        "mean_step_s": mean_step_s,
        "overruns": round(overruns * place.size),
        "gradient2": gradients(place, race.workload, kept.trace),
        "rule": kept.rule,
        "probes": kept.probes,
        "method": place.port.method,
        "scheduling": place.scheduling,
    }


def _durations(race: Race, key: Key, rank: int) -> list[float]:
    by_time = math.inf if race.budget_s is None else race.budget_s / race.step.mean_s
    expected = math.ceil(min(by_time, math.inf if race.steps is None else race.steps))
    return step_seconds(race.step, key=key.fold(STEPS), worker=rank, steps=2 * expected + SPARE_STEPS).tolist()


def _start(
    place: Place, race: Race, schedule: int | Schedule | Literal["auto"], key: Key
) -> tuple[PeriodicAveraging, torch.nn.Module, torch.optim.Optimizer]:
    model = race.workload.model().to(place.device)
    optimizer = OPTIMIZERS[race.optimizer](model.parameters(), lr=race.workload.eta)
    exchange = Exchange() if race.runtime else Riding()  # what rides along sees the clock before the averaging
    averaging = PeriodicAveraging(
        model,
        optimizer,
        schedule=schedule,
        operator=race.operator,
        exchange=exchange,
        key=key.fold(MESSAGE),
        steps=race.steps,
    )
    if isinstance(exchange, Riding):
        exchange.observe(averaging)
    return averaging, model, optimizer


def _sleeps(race: Race, key: Key) -> Callable[[], None]:
    """The sleep after an averaging; equal keys give all ranks the same ones."""
    rng = np.random.default_rng(bits32(key.fold(DELAYS), SEED_WORDS))
    if race.delay is None or race.runtime is not None:
        return lambda: None
    law = race.delay
    return lambda: time.sleep(float(law.sample(rng, ())))


def _fenced(place: Place, race: Race, key: Key) -> list[float]:
    """Seconds of single averagings, each after a padded step and a barrier; a first one warms up."""
    averaging, model, optimizer = _start(place, race, 1, key)
    padding, pause, found = PaddedSteps(race.step.mean_s), _sleeps(race, key), []
    for k in range(race.fenced + 1):
        padding.begin()
        _local_step(race, model, optimizer, Key(race.seed, step=k, rank=place.rank).fold(FENCED))
        padding.end()
        fence()
        began = time.perf_counter()
        averaging.step()
        pause()
        found.append(time.perf_counter() - began)
    everyone = gather_arrays(torch.tensor(found[1:], dtype=torch.float64))
    return torch.stack(everyone).mean(dim=0).tolist()


def _gradient(race: Race, model: torch.nn.Module, optimizer: torch.optim.Optimizer, key: Key) -> torch.Tensor:
    optimizer.zero_grad()
    loss = race.workload.loss(model, key=key)
    loss.backward()
    return loss


def _local_step(race: Race, model: torch.nn.Module, optimizer: torch.optim.Optimizer, key: Key) -> torch.Tensor:
    loss = _gradient(race, model, optimizer, key)
    optimizer.step()
    return loss


def _timed(place: Place, race: Race, key: Key, padding: PaddedSteps, finish: _Finish) -> Kept:
    averaging, model, optimizer = _start(place, race, race.schedule, key)
    pause, watched = _sleeps(race, key), floating_tensors(model)
    kept = Kept([0.0], [flat(watched)], [], [])
    fence()
    clock = averaging.clock = _clock(race, place.size, key)
    probing = PaddedSteps(0.0 if race.runtime else race.step.mean_s)
    while True:
        k = averaging.total_steps
        step_key = Key(race.seed, step=k, rank=place.rank).fold(GRADIENT)

        def again(step_key: Key = step_key) -> torch.Tensor:
            """The gradient of this step once more, which takes as long as a step on average."""
            probing.begin()
            loss = _gradient(race, model, optimizer, step_key)
            probing.end()
            return loss

        optimizer.param_groups[0]["lr"] = race.eta(k)
        if race.trace:
            kept.trace.append(flat(averaging.parameters))
        padding.begin()
        loss = _local_step(race, model, optimizer, step_key)
        padding.end()
        turn = averaging.rhythm.rounds
        account = averaging.step(loss, again)
        if account is None:
            continue
        pause()
        kept.seconds.append(clock.seconds())
        kept.models.append(flat(watched))
        kept.rounds.append(account)
        if place.rank == 0:
            finish.decide(turn, over(race, kept.seconds[-1], k + 1))
        if finish.heard(turn):
            kept.rule, kept.probes = averaging.schedule_state.to_dict(), len(probing.durations)
            return kept


def _clock(race: Race, m: int, key: Key) -> Clock:
    return SimulatedClock(race.runtime, m=m, key=key.fold(STEPS)) if race.runtime else WallClock()


def over(race: Race, seconds: float, steps: int) -> bool:
    """Whether a race ends with the round that has come to this."""
    return (race.budget_s is not None and seconds >= race.budget_s) or (race.steps is not None and steps >= race.steps)
