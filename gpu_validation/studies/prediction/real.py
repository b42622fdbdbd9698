"""Seconds of a step: a pilot of real processes on a shaped network, and what their steps take there afterwards."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import torch

from bounds.runtime import Constant
from operators import Key
from ratedist.model.pilot import Pilot

from ...distributed.launch import RankContext, run_ranks
from ...measurement.spec import TrainingRun
from ...measurement.training import run_training
from ...network import Network, Shape
from ...piloting.pilot import pilot
from ...records.storage import Record
from ...workloads import Draw, SmallNetwork, Workload
from .problems import Choice

WORKLOAD = SmallNetwork(hidden=128)
STEP_S = 20e-3
MOST_BYTES = 1 << 18
HANG_TIMEOUT_S = 120.0
MOMENTS, LONGEST = 4, 8


class Paced:
    """Batches of a worker that come every ``STEP_S`` seconds, as if computing took so long.

    Parameters
    ----------
    workload : Workload
        Whose batches.
    rank : int
        Of the worker.
    """

    def __init__(self, workload: Workload, rank: int) -> None:
        self._draws = (workload.draw(key=Key(1, step=k, rank=rank)) for k in itertools.count())
        self._last = 0.0

    def __iter__(self) -> Iterator[Draw]:
        return self

    def __next__(self) -> Draw:
        """Return the next batch when it is time."""
        time.sleep(max(0.0, self._last + STEP_S - time.monotonic()))
        self._last = max(self._last + STEP_S, time.monotonic())
        return next(self._draws)


def measured_seconds(m: int, shape: Shape, choices: list[Choice], *, steps: int) -> Record:
    """Return a pilot of m processes, and seconds of a step of their trainings.

    Parameters
    ----------
    m : int
        Processes.
    shape : Shape
        Of the network.
    choices : list of Choice
        What is trained.
    steps : int
        Of each training, about.
    """
    operators = sorted({choice.operator for choice in choices if choice.operator})
    WORKLOAD.objective(WORKLOAD.model())  # loads the data before the processes fork

    def work(place: RankContext, emit: Callable[[Any], None]) -> None:
        torch.set_num_threads(1)
        model = WORKLOAD.model()
        found_here = pilot(
            model,
            torch.optim.SGD(model.parameters(), lr=WORKLOAD.eta),
            WORKLOAD.loss_on,
            Paced(WORKLOAD, place.rank),
            moments=MOMENTS,
            taus=(1, LONGEST),
            operators=operators,
            most_bytes=MOST_BYTES,
        )
        if place.rank == 0:
            emit(found_here.to_dict())

    with (
        Network.of(shape, m) as network,
        closing(
            run_ranks(work, processes=m, hang_timeout_s=HANG_TIMEOUT_S, network=network, scheduling="realtime")
        ) as running,
    ):
        (measured,) = list(running)
    races = [
        TrainingRun(
            WORKLOAD,
            choice.tau,
            Constant(STEP_S),
            0,
            steps=steps,
            operator=choice.method(),
            exchange=choice.exchange,
            points=1,
            fenced=2,
        )
        for choice in choices
    ]
    trained = run_training(races, m=m, shape=shape)
    seconds = [race["took_s"] / race["steps_done"] for race in trained]
    return {
        "pilot": measured,
        "choices": [choice.name for choice in choices],
        "seconds_per_step": seconds,
        "overruns": [race["overruns"] for race in trained],
        "method": trained[0]["method"],
        "scheduling": trained[0]["scheduling"],
    }


def predicted_seconds(found: Pilot, m: int, choices: list[Choice]) -> list[float]:
    """Return what the pilot foretells of a step's seconds with each choice, on the network that it has timed.

    Parameters
    ----------
    found : Pilot
        Of m processes.
    m : int
        Processes.
    choices : list of Choice
        What is trained.
    """
    cluster = found.cluster(workers=m)
    return [
        found.predict(
            cluster, operator=choice.operator or None, exchange=choice.exchange, tau=choice.tau
        ).seconds_per_step.value
        for choice in choices
    ]
