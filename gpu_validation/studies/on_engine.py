"""Units of a study on an engine: each starts when the units before it are measured.

One process collects the results.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..processes.launch import RunFailed, backend_for
from ..records.environment import Environment
from .engines.engine import Call, Engine, EngineLost, Job, WorkerLost
from .study import Record, Study

POLL_S = 0.1
TRIES = 2  # lost workers per unit, after which the run ends


@dataclass(frozen=True)
class Answer:
    """Result of one unit from a worker.

    Parameters
    ----------
    environment : Environment
        Environment of the measurement.
    measurement : Record
        Measurements; empty after a failure.
    took_s : float, seconds
        Duration.
    failure : str, optional
        Text of the error, if the unit failed.
    """

    environment: Environment
    measurement: Record
    took_s: float
    failure: str = ""


def measure_unit(study: Study, unit: str) -> Answer:
    """Measure one unit, in a worker; ``study`` has the records that the unit needs."""
    environment = Environment.here(study.name, study.processes, backend_for(study.processes), study.seed)
    begun = time.monotonic()
    try:
        return Answer(environment, study.measure(unit), time.monotonic() - begun)
    except RunFailed as failure:
        return Answer(environment, {}, time.monotonic() - begun, str(failure))
    except Exception as error:  # a user's study may raise anything
        return Answer(environment, {}, time.monotonic() - begun, f"{type(error).__name__}: {error}")


@dataclass
class Dispatch:
    """Units of one run on an engine.

    Parameters
    ----------
    study : Study
        Study of the units.
    engine : Engine
        Engine that runs them.
    folder : Path
        Folder of the study.
    seconds : float or None
        Time after which no further unit is started; at least one always is.
    """

    study: Study
    engine: Engine
    folder: Path
    seconds: float | None

    def answers(
        self, missing: Sequence[str], records: Sequence[Record]
    ) -> Generator[tuple[str, Environment, Record, float], None, None]:
        """Yield name, environment, measurement and seconds of units, in order of completion.

        A unit whose worker is lost is started once more.  After a second loss, a failed unit, or the loss of the
        engine, no further unit is started, and running ones are awaited.  Closing the generator cancels all jobs.
        ``records`` has all records so far and grows during the iteration.

        Raises
        ------
        RunFailed
            At the end, with the first failure.
        """
        waiting, running, losses = list(missing), dict[str, Job](), Counter[str]()
        failure, started = "", time.monotonic()
        try:
            while True:
                late = self.seconds is not None and time.monotonic() - started >= self.seconds
                if not failure and not (late and len(waiting) < len(missing)):
                    for unit in self._ready(waiting, records)[: 1 if late else self.engine.jobs - len(running)]:
                        running[unit] = self._begin(unit, records)
                        waiting.remove(unit)
                if not running:
                    break
                unit = _first_done(running)
                job = running.pop(unit)
                try:
                    answer: Answer = job.answer()
                except WorkerLost as loss:
                    losses[unit] += 1
                    waiting.insert(0, unit)
                    if isinstance(loss, EngineLost):
                        failure = failure or str(loss)
                    elif losses[unit] >= TRIES:
                        failure = failure or f"unit {unit} has lost {TRIES} workers: {loss}"
                    continue
                if answer.failure:
                    failure = failure or f"unit {unit} failed: {answer.failure}"
                    continue
                yield unit, answer.environment, answer.measurement, answer.took_s
        finally:
            for job in running.values():
                job.cancel()
        if failure:
            raise RunFailed(failure)

    def _ready(self, waiting: Sequence[str], records: Sequence[Record]) -> list[str]:
        """Return the units that may start now."""
        measured = {record["unit"] for record in records}
        return [unit for unit in waiting if measured.issuperset(self.study.before(unit))]

    def _begin(self, unit: str, records: Sequence[Record]) -> Job:
        study = self.study.with_records(self.study.in_order(records), self.folder.absolute())
        return self.engine.submit(Call.of(measure_unit, study, unit))


def _first_done(running: dict[str, Job]) -> str:
    """Wait for any job to end; return its unit."""
    while True:
        for unit, job in running.items():
            if job.done():
                return unit
        time.sleep(POLL_S)
