"""Experiments made of many small units, each recorded as it ends, so that a run can stop anywhere and go on later."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from .launch import RunFailed, backend_for
from .outcome import COMPARISONS, FAILED, MEASUREMENTS, OK, REPORT, UNFINISHED, VIOLATED, UsageError, ending
from .page import figure_html, page
from .records import Comparison, Environment, JsonLines, Verdict, plain, read_lines, write_atomically, write_comparisons
from .results_folder import claimed
from .seeds import RECORDED, derived, replay, require

Record = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """A drawing made from records, and what it shows: what is measured, what is theory.

    draw : makes it with matplotlib.  caption : the words below it.
    """

    draw: Callable[[], Any]
    caption: str


@dataclass(frozen=True)
class Study(ABC):
    """A named experiment; subclasses are frozen, final dataclasses that hold everything fixed before it runs.

    minutes : stated duration of the whole on two cores.  processes : real ones, 1 if everything happens in one.
    false_alarm : chance that the whole run accuses a true claim.
    seed : of the run; under the recorded one every stream has the seed that the study names.
    """

    seed: int = field(default=RECORDED, repr=False, kw_only=True)

    name: ClassVar[str]
    description: ClassVar[str]
    minutes: ClassVar[float]
    processes: ClassVar[int] = 1
    false_alarm: ClassVar[float] = 1e-4

    def seeded(self, seed: int) -> Study:
        """The same study with other random numbers throughout.  Raises ValueError unless 0 <= seed < 2^32."""
        named = {name: getattr(self, name) for name in ("seeds", "tuning") if hasattr(self, name)}
        drawn = {name: tuple(derived(seed, own) for own in seeds) for name, seeds in named.items()}
        return replace(self, seed=require(seed), **drawn)

    @abstractmethod
    def units(self) -> Sequence[str]:
        """The units' names, in the order of work; each takes a minute at most."""

    def informed(self, records: Sequence[Record], folder: Path) -> Study:
        """The study that measures the next unit, where later units rest on earlier ones; itself unless said otherwise.

        records : of the units measured so far, in any number of pieces.  folder : the study's own, for checkpoints.
        """
        return self

    @abstractmethod
    def measure(self, unit: str) -> Record:
        """Carry out one unit: JSON values that depend on nothing but the study and the unit (and the clock)."""

    @abstractmethod
    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """The comparisons that the records at hand permit.  A record has the key "unit" beside what was measured."""

    @abstractmethod
    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """What to draw from the records at hand."""


class StaleResultsError(UsageError):
    """The folder holds results of a study with other settings, or of other code."""


@dataclass
class StudyOutcome:
    """How far a study has come, and what follows.

    records, comparisons : so far.  exit_code, message : how it ended.  folder : where the files are.
    """

    folder: Path
    exit_code: int
    message: str
    records: list[Record]
    comparisons: list[Comparison]

    @property
    def counts(self) -> dict[str, int]:
        """How many comparisons got each verdict."""
        return {str(verdict): sum(c.verdict is verdict for c in self.comparisons) for verdict in Verdict}


def stored(folder: Path, study: Study) -> list[Record]:
    """The records of earlier pieces of this study; a line cut short by a crash is dropped from the file.

    Raises StaleResultsError if they belong to other settings.
    """
    path = folder / MEASUREMENTS
    if not path.exists():
        return []
    lines = list(read_lines(path))
    seed = next((line.get("seed", RECORDED) for line in lines if "study" in line), study.seed)
    if seed != study.seed:
        raise StaleResultsError(
            f"{path} holds results of seed {seed}, and this is seed {study.seed}: choose another --out, or give no seed"
        )
    other = next((line["study"] for line in lines if "study" in line and line["study"] != repr(study)), None)
    if other is not None:
        raise StaleResultsError(
            f"{path} holds results of {other}, but the study is now {study!r}: choose another --out, or remove the file"
        )
    write_atomically(path, "".join(_line(line) for line in lines))
    return [line for line in lines if "unit" in line]


def stored_seed(folder: Path) -> int | None:
    """The seed of the results in a study's folder; None if there are none."""
    path = folder / MEASUREMENTS
    heads = (line for line in read_lines(path) if "study" in line) if path.exists() else iter(())
    head = next(heads, None)
    return None if head is None else int(head.get("seed", RECORDED))


def _line(record: Record) -> str:
    return json.dumps(record, allow_nan=False) + "\n"


def carry_out(
    study: Study, out: Path, *, seconds: float | None = None, progress: Callable[[str], None] = lambda _: None
) -> StudyOutcome:
    """Measure the units that are not in ``out / study.name`` yet, judge all records and write the report.

    seconds : after so many no further unit is begun (but one always is); the next call goes on.
    progress : called with the name of every unit, also of those found.
    Raises StaleResultsError, UsageError if another run holds the folder, DamagedRecords, and OSError if a file cannot
    be written.
    """
    folder = out / study.name
    with claimed(folder):
        return _carried_out(study, folder, seconds, progress)


def _carried_out(study: Study, folder: Path, seconds: float | None, progress: Callable[[str], None]) -> StudyOutcome:
    records = stored(folder, study)
    for record in records:
        progress(record["unit"])
    code, message = OK, ""
    try:
        for record in _measured(study, folder, records, seconds):
            progress(record["unit"])
    except RunFailed as failure:
        code, message = FAILED, str(failure)
    except KeyboardInterrupt as interrupt:
        code, message = ending(interrupt)
    return _concluded(study, folder, records, code, message)


def _measured(study: Study, folder: Path, records: list[Record], seconds: float | None) -> Iterator[Record]:
    """The records of the missing units, each on the disk and appended to ``records`` before it is given out."""
    known = {record["unit"] for record in records}
    missing = [unit for unit in study.units() if unit not in known]
    if not missing:
        return
    started = time.monotonic()
    environment = Environment.here(study.name, study.processes, backend_for(study.processes), study.seed)
    _require_same_code(folder / MEASUREMENTS, environment)
    with JsonLines(folder / MEASUREMENTS, mode="a") as file:
        file.write({**plain(environment), "study": repr(study)})
        for unit in missing:
            begun = time.monotonic()
            measured = study.informed(records, folder).measure(unit)
            record = plain({"unit": unit, **measured, "took_s": round(time.monotonic() - begun, 3)})
            file.write(record)
            records.append(record)
            yield record
            if seconds is not None and time.monotonic() - started >= seconds:
                return


def _require_same_code(path: Path, environment: Environment) -> None:
    """Units of one study are measured by one version of the code and of its libraries.  Raises StaleResultsError."""
    now = {"commit": environment.commit, **environment.versions}
    for line in read_lines(path) if path.exists() else ():
        if "study" in line:
            before = {"commit": line["commit"], **line["versions"]}
            other = [name for name in now if before.get(name) != now[name]]
            if other:
                raise StaleResultsError(
                    f"{path} holds units measured with {other[0]} {before.get(other[0])}, and this is {other[0]} "
                    f"{now[other[0]]}: choose another --out, remove the file, or go back to what measured them"
                )


def _concluded(study: Study, folder: Path, records: list[Record], code: int, message: str) -> StudyOutcome:
    comparisons = study.judge(records)
    write_comparisons(folder / COMPARISONS, comparisons)
    accused = [c for c in comparisons if c.verdict is Verdict.VIOLATED and c.decides]
    total = len(study.units())
    if code == OK and accused:
        code = VIOLATED
        message = "; ".join(
            f"{c.operator} {c.quantity}: measured {c.measured:.6g}, bound {c.bound}" for c in accused[:3]
        )
    if code == OK and len(records) < total:
        code, message = UNFINISHED, "more to do"
    if len(records) < total:
        message = f"{message}; {len(records)} of {total} units are measured and kept in {folder}: run again to go on"
    drawn = [figure_html(figure.draw(), figure.caption) for figure in study.figures(records)] if records else []
    heads = [repr(line) for line in read_lines(folder / MEASUREMENTS) if "study" in line]
    circumstances = "\n".join([*heads, f"again: {replay(study.name, study.seed)}"])
    write_atomically(folder / REPORT, page(study, drawn, comparisons, message, circumstances))
    return StudyOutcome(folder, code, message, records, comparisons)
