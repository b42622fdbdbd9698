"""Carry out a preset: processes, records as they come, verdicts, report."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from operators import Key

from .cell import probe, train
from .compare import compare
from .launch import Place, RunFailed, backend_for, run_ranks
from .outcome import COMPARISONS, FAILED, MEASUREMENTS, OK, REPORT, VIOLATED, ending
from .presets.preset import SOURCES, Preset
from .records import (
    Comparison,
    Environment,
    JsonLines,
    Probe,
    Training,
    Verdict,
    write_atomically,
    write_comparisons,
)
from .report import render
from .results_folder import claimed, set_aside

log = logging.getLogger("gpu_validation")

Progress = Callable[[str], None]


class Outcome:
    """How a run ended: exit code, the verdicts, what to tell the user (note: in any case), and where the files are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.exit_code = OK
        self.message = self.note = ""
        self.comparisons: list[Comparison] = []
        self.records: list[Probe | Training] = []

    @property
    def counts(self) -> dict[str, int]:
        """How many comparisons got each verdict."""
        counted = Counter(str(c.verdict) for c in self.comparisons)
        return {str(verdict): counted[verdict] for verdict in Verdict}


def execute(preset: Preset, out: Path, *, progress: Progress = lambda _: None) -> Outcome:
    """Run a preset into ``out / preset.name``.

    progress : called with a short description after every finished unit.
    Records are on the disk before the next unit starts; whatever ends the run early, they are judged and
    reported.  Records of an earlier run get another name.
    Raises UsageError if another run holds the folder, OSError if a file cannot be written.
    """
    outcome = Outcome(out / preset.name)
    with claimed(outcome.folder):
        _execute(preset, outcome, progress)
    return outcome


def _execute(preset: Preset, outcome: Outcome, progress: Progress) -> None:
    environment = Environment.here(preset.name, preset.processes, backend_for(preset.processes), preset.seed)
    _warm_up(preset)
    earlier = set_aside(outcome.folder / MEASUREMENTS)
    if earlier is not None:
        outcome.note = f"the records of an earlier run are kept in {earlier}"
    with JsonLines(outcome.folder / MEASUREMENTS) as file:
        file.write(environment)
        try:
            ranks = run_ranks(Work(preset), processes=preset.processes, silence_s=preset.silence_s)
            with closing(ranks):
                for record in ranks:
                    file.write(record)
                    outcome.records.append(record)
                    progress(_title(record))
        except RunFailed as failure:
            outcome.exit_code, outcome.message = FAILED, str(failure)
        except KeyboardInterrupt as interrupt:
            code, words = ending(interrupt)
            outcome.exit_code, outcome.message = code, f"{words}; all processes were ended"
    _judge(preset, environment, outcome)


class Work:
    """What every rank does: all probes, then all cells, in the same order."""

    def __init__(self, preset: Preset) -> None:
        self.preset = preset

    def __call__(self, place: Place, emit: Callable[[Any], None]) -> None:
        """Emit every record from rank 0."""
        for operator in self.preset.operators:
            for source in SOURCES:
                self._emit(emit, probe(place, self.preset, operator, source))
        for cells in self.preset.cells:
            for operator in self.preset.trained(cells):
                for tau in cells.taus:
                    self._emit(emit, train(place, cells, operator, tau))

    @staticmethod
    def _emit(emit: Callable[[Any], None], record: Any) -> None:
        if record is not None:
            emit(record)


def _warm_up(preset: Preset) -> None:
    """Compile and load once, before the processes fork, so that none of them waits for it."""
    for cells in preset.cells:
        cells.workload.objective(cells.workload.model())
        cells.workload.constants()
    for operator in preset.operators:
        operator(np.linspace(-1, 1, preset.probe_d), key=Key(0))


def _title(record: Probe | Training) -> str:
    if isinstance(record, Probe):
        return f"{record.operator} on {record.compression.source} input"
    return f"{record.operator} on {record.workload}, tau = {record.tau}"


def _judge(preset: Preset, environment: Environment, outcome: Outcome) -> None:
    outcome.comparisons = compare(outcome.records, false_alarm=preset.false_alarm)
    write_comparisons(outcome.folder / COMPARISONS, outcome.comparisons)
    accused = [c for c in outcome.comparisons if c.verdict is Verdict.VIOLATED and c.decides]
    if outcome.exit_code == OK and accused:
        outcome.exit_code, outcome.message = VIOLATED, "; ".join(map(accusation, accused[:3]))
    if outcome.exit_code not in (OK, VIOLATED):
        kept = f"{len(outcome.records)} of {preset.units} units were measured and kept in {outcome.folder}"
        outcome.message = f"{outcome.message}; {kept}"
    page = render(preset, environment, outcome.records, outcome.comparisons, outcome.message)
    write_atomically(outcome.folder / REPORT, page)


def accusation(c: Comparison) -> str:
    """One VIOLATED row in words: the operator, the claim and the measurement."""
    where = f" on {c.workload}" + ("" if c.tau is None else f", tau = {c.tau}")
    bound = math.nan if c.bound is None else c.bound
    return (
        f"{c.operator}{where} violates its {c.theorem}: {c.quantity} measured {c.measured:.6g} "
        f"[{c.interval[0]:.6g}, {c.interval[1]:.6g}], bound {bound:.6g}"
    )
