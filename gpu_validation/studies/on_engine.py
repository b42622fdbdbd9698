"""Units of a study on an engine: begun as soon as what they rest on is measured, gathered by one process."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..distributed.launch import RunFailed, backend_for
from ..engines.engine import Call, Engine, EngineLost, Job, WorkerLost
from ..records.environment import Environment
from ..records.storage import Record
from .study import Study

POLL_S = 0.1
TRIES = 2  # of a unit whose worker was lost, before the run ends


@dataclass(frozen=True)
class Answer:
    """What a worker returns of one unit.

    Parameters
    ----------
    environment : Environment
        Where it was measured.
    measurement : Record
        Empty if it failed.
    took_s : float, seconds
        How long it took.
    failure : str, optional
        What was raised, in words.
    """

    environment: Environment
    measurement: Record
    took_s: float
    failure: str = ""


def measure_unit(study: Study, unit: str) -> Answer:
    """Carry out one unit, in a worker.

    Parameters
    ----------
    study : Study
        With the records that the unit rests on.
    unit : str
        Its name.
    """
    environment = Environment.here(study.name, study.processes, backend_for(study.processes), study.seed)
    begun = time.monotonic()
    try:
        return Answer(environment, study.measure(unit), time.monotonic() - begun)
    except RunFailed as failure:
        return Answer(environment, {}, time.monotonic() - begun, str(failure))
    except Exception as error:  # whatever a study of the user's does
        return Answer(environment, {}, time.monotonic() - begun, f"{type(error).__name__}: {error}")


@dataclass
class Dispatch:
    """The units of one run on an engine.

    Parameters
    ----------
    study : Study
        Whose units they are.
    engine : Engine
        Where they are carried out.
    folder : Path
        The study's own.
    seconds : float or None
        After so many no further unit is begun, but one always is.
    """

    study: Study
    engine: Engine
    folder: Path
    seconds: float | None

    def answers(
        self, missing: Sequence[str], records: Sequence[Record]
    ) -> Generator[tuple[str, Environment, Record, float], None, None]:
        """Return name, circumstances, measurement and seconds of units, as they come.

        A unit whose worker is lost is begun once more.  After a second loss, a unit that raises, or the loss of the
        engine itself, no further one is begun; those under way are awaited.  If this is left, all jobs are cancelled.

        Parameters
        ----------
        missing : sequence of str
            Units to carry out.
        records : sequence of dict
            All that are measured; grows while this goes on.

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
        """Return the units that may begin now."""
        measured = {record["unit"] for record in records}
        return [unit for unit in waiting if measured.issuperset(self.study.before(unit))]

    def _begin(self, unit: str, records: Sequence[Record]) -> Job:
        study = self.study.with_records(self.study.in_order(records), self.folder.absolute())
        return self.engine.submit(Call.of(measure_unit, study, unit))


def _first_done(running: dict[str, Job]) -> str:
    """Wait for a job."""
    while True:
        for unit, job in running.items():
            if job.done():
                return unit
        time.sleep(POLL_S)
