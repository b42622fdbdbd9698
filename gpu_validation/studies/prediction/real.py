"""Seconds of a step: a pilot of real processes on a shaped network, and what their steps take there afterwards."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import torch

from bounds.runtime import Constant
from operators import Key
from ratedist.pilots.pilot import Pilot

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
    """Batches of a worker, and a pause at the end of every step, so that the step takes ``STEP_S``.

    Parameters
    ----------
    workload : Workload
        Whose batches.
    rank : int
        Of the worker.
    """

    def __init__(self, workload: Workload, rank: int) -> None:
        self._draws = (workload.draw(key=Key(1, step=k, rank=rank)) for k in itertools.count())
        self._begun = 0.0

    def __iter__(self) -> Iterator[Draw]:
        return self

    def __next__(self) -> Draw:
        """Return the next batch, with which a step begins."""
        self._begun = time.perf_counter()
        return next(self._draws)

    def wait(self, *_: object) -> None:
        """Wait until the step has taken its time."""
        time.sleep(max(0.0, self._begun + STEP_S - time.perf_counter()))


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
        model, batches = WORKLOAD.model(), Paced(WORKLOAD, place.rank)
        optimizer = torch.optim.SGD(model.parameters(), lr=WORKLOAD.eta)
        optimizer.register_step_post_hook(batches.wait)
        measured = pilot(
            model,
            optimizer,
            WORKLOAD.loss_on,
            batches,
            moments=MOMENTS,
            taus=(1, LONGEST),
            operators=operators,
            most_bytes=MOST_BYTES,
        )
        if place.rank == 0:
            emit(measured.to_dict())

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
            points=steps,
            fenced=2,
        )
        for choice in choices
    ]
    trained = run_training(races, m=m, shape=shape)
    return {
        "pilot": measured,
        "choices": [choice.name for choice in choices],
        "seconds_per_step": [_seconds_per_step(race) for race in trained],
        "overruns": [race["overruns"] for race in trained],
        "method": trained[0]["method"],
        "scheduling": trained[0]["scheduling"],
    }


def _seconds_per_step(race: Record) -> float:
    """Return the median over rounds: other programs hold up whole rounds here."""
    return float(np.median(np.diff(race["seconds"]) / np.diff(race["step"])))


def predicted_seconds(found: Pilot, m: int, choices: list[Choice]) -> list[float]:
    """Return what the pilot predicts of a step's seconds with each choice, on the network that it has timed.

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
