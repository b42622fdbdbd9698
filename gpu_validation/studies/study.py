"""Experiments made of many small units, each recorded as it ends, so that a run can stop anywhere and go on later."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..distributed.launch import RunFailed, backend_for
from ..records.environment import Environment
from ..records.exit_status import (
    COMPARISONS,
    FAILED,
    MEASUREMENTS,
    OK,
    REPORT,
    SUMMARY,
    UNFINISHED,
    VIOLATED,
    UsageError,
    ending,
)
from ..records.results_folder import claimed, set_aside
from ..records.seeds import RECORDED, derived, replay, require
from ..records.storage import JsonLines, Record, plain, read_lines, write_atomically
from ..reporting.console import comparison_table
from ..reporting.html import page
from ..reporting.overview import overview_svg
from ..reporting.plotting import figure_html
from ..verdicts.verdict import Comparison, Verdict, violation, write_comparisons

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """A drawing made from records, and what it shows: what is measured, what is theory.

    Parameters
    ----------
    draw : callable
        Makes it with matplotlib.
    caption : str
        The words below it.
    """

    draw: Callable[[], Any]
    caption: str


@dataclass(frozen=True)
class Study(ABC):
    """A named experiment; subclasses are frozen, final dataclasses that hold everything fixed before it runs.

    A subclass sets what is annotated as a property below, on the class or as a field of every instance.

    Parameters
    ----------
    seed : int
        Of the run; under the recorded one every stream has the seed that the study names.
    """

    seed: int = field(default=RECORDED, repr=False, kw_only=True)

    resumable: ClassVar[bool] = True  # whether a later run goes on with the units that an earlier one has measured

    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """Of the experiment, and of the folder of its results."""

        @property
        def description(self) -> str:
            """In one sentence."""

        @property
        def minutes(self) -> float:
            """Stated duration of the whole on two cores."""

        @property
        def processes(self) -> int:
            """Real ones, 1 if everything happens in one."""

        @property
        def false_alarm(self) -> float:
            """Chance that the whole run accuses a true claim."""

    else:
        processes = 1
        false_alarm = 1e-4

    @property
    def command(self) -> str:
        """What ``gpu-validation run`` is told for this study."""
        return self.name

    def seeded(self, seed: int) -> Study:
        """Return the same study with other random numbers throughout.

        Parameters
        ----------
        seed : int
            Of all random numbers.

        Raises
        ------
        ValueError
            Unless 0 <= seed < 2^32.
        """
        named = {name: getattr(self, name) for name in ("seeds", "tuning") if hasattr(self, name)}
        drawn = {name: tuple(derived(seed, recorded) for recorded in seeds) for name, seeds in named.items()}
        return replace(self, seed=require(seed), **drawn)

    @abstractmethod
    def units(self) -> Sequence[str]:
        """Return the units' names, in the order of work; each takes a minute at most."""

    def with_records(self, records: Sequence[Record], folder: Path) -> Study:
        """Return the study that measures the next unit, where later units rest on earlier ones; itself unless said
        otherwise.

        Parameters
        ----------
        records : sequence of Record
            Of the units measured so far, in any number of pieces.
        folder : Path
            The study's own, for checkpoints.
        """
        return self

    @abstractmethod
    def measure(self, unit: str) -> Record:
        """Carry out one unit: JSON values that depend on nothing but the study and the unit (and the clock).

        Parameters
        ----------
        unit : str
            One of ``units()``.
        """

    def measurements(
        self, units: Sequence[str], records: Sequence[Record], folder: Path
    ) -> Generator[Record, None, None]:
        """Carry out units one after the other; a record each, in their order.

        Parameters
        ----------
        units : sequence of str
            Those that are missing.
        records : sequence of dict
            All that are measured; grows while this goes on.
        folder : Path
            The study's own.
        """
        for unit in units:
            yield self.with_records(records, folder).measure(unit)

    @abstractmethod
    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return the comparisons that the records at hand permit.  A record has the key "unit" beside what was
        measured.

        Parameters
        ----------
        records : sequence of Record
            The records at hand.
        """

    @abstractmethod
    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return what to draw from the records at hand.

        Parameters
        ----------
        records : sequence of Record
            The records at hand.
        """

    def summary(self, records: Sequence[Record], comparisons: Sequence[Comparison]) -> Table:
        """Return the table that a console shows at the end.

        Parameters
        ----------
        records : sequence of Record
            The records at hand.
        comparisons : sequence of Comparison
            What ``judge`` made of the records.
        """
        return comparison_table(comparisons)


class StaleResultsError(UsageError):
    """The folder holds results of a study with other settings, or of other code."""


@dataclass
class StudyOutcome:
    """How far a study has come, and what follows.

    Parameters
    ----------
    folder : Path
        Where the files are.
    exit_code : int
        The status with which the program ends.
    message : str
        How the study ended, in words.
    records : list of Record
        The records so far.
    comparisons : list of Comparison
        The comparisons so far.
    note : str, optional
        What to tell the user in any case.
    """

    folder: Path
    exit_code: int
    message: str
    records: list[Record]
    comparisons: list[Comparison]
    note: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """How many comparisons got each verdict."""
        return {str(verdict): sum(c.verdict is verdict for c in self.comparisons) for verdict in Verdict}


def stored(folder: Path, study: Study) -> list[Record]:
    """Return the records of earlier pieces of this study; a line cut short by a crash is dropped from the file.

    Parameters
    ----------
    folder : Path
        Where the results are.
    study : Study
        The one whose units the folder holds.

    Raises
    ------
    StaleResultsError
        If they belong to other settings.
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
    """Return the seed of the results in a study's folder; None if there are none.

    Parameters
    ----------
    folder : Path
        Where the results are.
    """
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

    Parameters
    ----------
    study : Study
        The one whose units the folder holds.
    out : Path
        Where the results go.
    seconds : float or None, optional
        After so many no further unit is begun (but one always is); the next call goes on.
    progress : callable, optional
        Called with the name of every unit, also of those found.

    Raises
    ------
    StaleResultsError
        If another run holds the folder, DamagedRecords.
    UsageError
        If another run holds the folder, DamagedRecords.
    OSError
        If a file cannot be written.
    """
    folder = out / study.name
    with claimed(folder):
        return _carried_out(study, folder, seconds, progress)


def _carried_out(study: Study, folder: Path, seconds: float | None, progress: Callable[[str], None]) -> StudyOutcome:
    note = "" if study.resumable else _set_aside(folder)
    records = stored(folder, study)
    for record in records:
        progress(record["unit"])
    code, message = OK, ""
    try:
        with closing(_measured(study, folder, records, seconds)) as measured:
            for record in measured:
                progress(record["unit"])
    except RunFailed as failure:
        code, message = FAILED, str(failure)
    except KeyboardInterrupt as interrupt:
        code, words = ending(interrupt)
        message = f"{words}; all processes were ended"
    return replace(_concluded(study, folder, records, code, message), note=note)


def _set_aside(folder: Path) -> str:
    """Give the records of an earlier run another name; returns what to tell the user."""
    earlier = set_aside(folder / MEASUREMENTS)
    return "" if earlier is None else f"the records of an earlier run are kept in {earlier}"


def _measured(
    study: Study, folder: Path, records: list[Record], seconds: float | None
) -> Generator[Record, None, None]:
    """Return the records of the missing units, each on the disk and appended to ``records`` before it is given out."""
    measured = {record["unit"] for record in records}
    missing = [unit for unit in study.units() if unit not in measured]
    if not missing:
        return
    started = begun = time.monotonic()
    environment = Environment.here(study.name, study.processes, backend_for(study.processes), study.seed)
    _require_same_code(folder / MEASUREMENTS, environment)
    with JsonLines(folder / MEASUREMENTS, mode="a") as file:
        file.write({**plain(environment), "study": repr(study)})
        measurements = study.measurements(missing, records, folder)
        with closing(measurements):
            for unit, measurement in zip(missing, measurements, strict=True):
                record = plain({"unit": unit, **measurement, "took_s": round(time.monotonic() - begun, 3)})
                file.write(record)
                records.append(record)
                yield record
                if seconds is not None and time.monotonic() - started >= seconds:
                    return
                begun = time.monotonic()


def _require_same_code(path: Path, environment: Environment) -> None:
    """Units of one study are measured by one version of the code and of its libraries.

    Raises
    ------
    StaleResultsError
    """
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
        message = "; ".join(map(violation, accused[:3]))
    if code == OK and len(records) < total:
        code, message = UNFINISHED, "more to do"
    if len(records) < total:
        kept = f"{len(records)} of {total} units were measured and kept in {folder}"
        message = f"{message}; {kept}" + (": run again to go on" if study.resumable else "")
    drawn = [figure_html(figure.draw(), figure.caption) for figure in study.figures(records)] if records else []
    heads = [repr(line) for line in read_lines(folder / MEASUREMENTS) if "study" in line]
    circumstances = "\n".join([*heads, f"again: {replay(study.command, study.seed)}"])
    if comparisons:
        write_atomically(folder / SUMMARY, overview_svg(comparisons))
    write_atomically(folder / REPORT, page(study, drawn, comparisons, message, circumstances))
    return StudyOutcome(folder, code, message, records, comparisons)
