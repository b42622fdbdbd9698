"""Run of a study: measure missing units here or on an engine, then write verdicts and report, however the run ends."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Generator
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bounds.frame import frame
from ratedist.interfaces.exit_status import FAILED, OK, UNFINISHED, VIOLATED

from ..judging.html import page
from ..judging.overview import overview_svg
from ..judging.plotting import figure_html
from ..judging.verdict import Comparison, Verdict, violation, write_comparisons
from ..processes.launch import RunFailed, backend_for
from ..processes.position import unfinished_positions
from ..records.environment import Environment
from ..records.exit_status import COMPARISONS, MEASUREMENTS, REPORT, SUMMARY, UsageError, ending
from ..records.results_folder import claimed, set_aside
from ..records.seeds import replay
from ..records.storage import JsonLines, Record, read_lines, write_atomically
from .engines.engine import Engine
from .on_engine import Dispatch
from .record_file import RecordWriter, put_in_order, stored, unfinished
from .study import Study

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass
class StudyOutcome:
    """Result of a run.

    Parameters
    ----------
    folder : Path
        Folder of the files.
    exit_code : int
        Exit status of the program.
    message : str
        Description of the end of the run.
    records : list of Record
        Records so far.
    comparisons : list of Comparison
        Comparisons so far.
    note : str, optional
        Further message to the user.
    """

    folder: Path
    exit_code: int
    message: str
    records: list[Record]
    comparisons: list[Comparison]
    note: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """Number of comparisons by verdict."""
        return {str(verdict): sum(c.verdict is verdict for c in self.comparisons) for verdict in Verdict}

    def to_frame(self) -> DataFrame:
        """Return a frame with one row per comparison, with its fields, looseness and evidence."""
        return frame([comparison.line() for comparison in self.comparisons])


def carry_out(
    study: Study,
    out: Path,
    *,
    seconds: float | None = None,
    progress: Callable[[str], None] = lambda _: None,
    engine: Engine | None = None,
) -> StudyOutcome:
    """Measure the units that are not in ``out / study.name`` yet, judge all records and write the report.

    Parameters
    ----------
    study : Study
        Study to run.
    out : Path
        Folder of the results.
    seconds : float or None, optional
        Time after which no further unit is started (at least one always is); the next call continues.
    progress : callable, optional
        Called with the name of every unit, including existing ones.
    engine : Engine or None, optional
        Engine that runs the units; None runs them in this process, one after the other.  The engine is closed at the
        end, unless it is refused.

    Raises
    ------
    StaleResultsError
        If the folder has other results.
    DamagedRecords
        If a line of the records is invalid.
    UsageError
        If another run uses the folder, or the study cannot run on an engine.
    OSError
        If a file cannot be written.
    """
    if engine is not None:
        _require_fit(study, engine)
    folder = out / study.name
    with claimed(folder), nullcontext() if engine is None else closing(engine):
        return _carried_out(study, folder, seconds, progress, engine)


def require_units(study: Study) -> None:
    """Raise UsageError for an engine if the study's units cannot run one by one.

    Parameters
    ----------
    study : Study
        Study to run.

    Raises
    ------
    UsageError
        With the remedy.
    """
    if study.starts_anew:
        raise UsageError(
            f"{study.name} is carried out by one set of processes from its first unit to its last: leave --on out"
        )


def _require_fit(study: Study, engine: Engine) -> None:
    """Raise UsageError for a study that the engine cannot run."""
    require_units(study)
    if study.measures_seconds and engine.shares_machines:
        raise UsageError(
            f"{study.name} measures seconds, which a second unit on the same machine would change: "
            f"give --jobs 1, got {engine.jobs}"
        )


def _carried_out(
    study: Study, folder: Path, seconds: float | None, progress: Callable[[str], None], engine: Engine | None
) -> StudyOutcome:
    note = _set_aside(folder) if study.starts_anew and not unfinished(folder, study) else ""
    records = stored(folder, study)
    for record in records:
        progress(record["unit"])
    code, message = OK, ""
    try:
        with closing(_measured(study, folder, records, seconds, engine)) as measured:
            for record in measured:
                progress(record["unit"])
    except RunFailed as failure:
        code, message = FAILED, str(failure)
    except KeyboardInterrupt as interrupt:
        code, words = ending(interrupt)
        message = "; ".join(filter(None, (f"{words}; all processes were ended", unfinished_positions())))
    put_in_order(folder / MEASUREMENTS, study.units())
    return replace(_concluded(study, folder, study.in_order(records), code, message), note=note)


def kept(study: Study, out: Path, n: int) -> str:
    """Return how many units are kept, where, and the command that goes on.

    Parameters
    ----------
    study : Study
        Study of the units.
    out : Path
        Folder of the results.
    n : int
        Number of measured units.
    """
    go_on = f"go on: ratedist run {study.command} --out {shlex.quote(str(out))}"
    return f"{n} of {len(study.units())} units were measured and kept in {out / study.name}; {go_on}"


def _set_aside(folder: Path) -> str:
    """Rename the records of an earlier run; return the message to the user."""
    earlier = set_aside(folder / MEASUREMENTS)
    return "" if earlier is None else f"the records of an earlier run are kept in {earlier}"


def _measured(
    study: Study, folder: Path, records: list[Record], seconds: float | None, engine: Engine | None
) -> Generator[Record, None, None]:
    """Yield the records of the missing units; each is written to the disk and appended to ``records`` first."""
    measured = {record["unit"] for record in records}
    missing = [unit for unit in study.units() if unit not in measured]
    if not missing:
        return
    environment = Environment.here(study.name, study.processes, backend_for(study.processes), study.seed)
    with JsonLines(folder / MEASUREMENTS, mode="a") as file:
        writer = RecordWriter(file, study)
        writer.begin(environment)
        if engine is None:
            work = _here(study, missing, records, folder)
        else:
            work = Dispatch(study, engine, folder, seconds).answers(missing, records)
        started = time.monotonic()
        with closing(work):
            for unit, where, measurement, took_s in work:
                writer.begin(where or environment)
                try:
                    record = writer.add(unit, measurement, took_s)
                except OSError as error:
                    error.add_note(f"unit {unit} was measured and could not be recorded")
                    raise
                records.append(record)
                yield record
                if engine is None and seconds is not None and time.monotonic() - started >= seconds:
                    return


def _here(
    study: Study, missing: list[str], records: list[Record], folder: Path
) -> Generator[tuple[str, Environment | None, Record, float], None, None]:
    """Measure units in this process, one after the other."""
    begun = time.monotonic()
    with closing(study.measurements(missing, records, folder)) as measurements:
        for unit, measurement in zip(missing, measurements, strict=True):
            yield unit, None, measurement, time.monotonic() - begun
            begun = time.monotonic()


def _concluded(study: Study, folder: Path, records: list[Record], code: int, message: str) -> StudyOutcome:
    comparisons = study.judged(records)
    write_comparisons(folder / COMPARISONS, comparisons)
    accused = [c for c in comparisons if c.verdict is Verdict.VIOLATED and c.decides]
    total = len(study.units())
    if code == OK and accused:
        code = VIOLATED
        message = "; ".join(map(violation, accused[:3]))
    if code == OK and len(records) < total:
        code, message = UNFINISHED, "more to do"
    if len(records) < total:
        message = f"{message}; {kept(study, folder.parent, len(records))}"
    drawn = (
        [figure_html(figure.titled(), figure.caption, folded=figure.folded) for figure in study.drawn(records)]
        if records
        else []
    )
    heads = [repr(line) for line in read_lines(folder / MEASUREMENTS) if "study" in line]
    circumstances = "\n".join([*heads, f"again: {replay(study.command, study.seed)}"])
    if comparisons:
        write_atomically(folder / SUMMARY, overview_svg(comparisons))
    write_atomically(folder / REPORT, page(study, drawn, comparisons, message, circumstances))
    return StudyOutcome(folder, code, message, records, comparisons)
