"""The study of a grid: every operator on synthetic vectors, and in training on every workload at every period."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from operators import Key, Operator, parse, specification

from ...distributed.launch import RankContext, run_ranks
from ...distributed.position import at
from ...records.seeds import derived, require
from ...records.storage import Record, plain, revive
from ...reporting.console import outcome_table
from ...verdicts.judge import UNREADABLE, rows_of, unmeasured
from ...verdicts.verdict import Comparison
from ..study import Figure, Study, without_damaged
from .analysis import compare
from .cell import probe, train
from .figures import figures
from .planned import Planned
from .records import Probe, Training
from .spec import SOURCES, Design

if TYPE_CHECKING:
    from rich.table import Table

Measurement = Callable[[RankContext], Probe | Training | None]


@dataclass(frozen=True)
class Preset(Design, Study):
    """An experiment on a grid, carried out by one set of processes from its first unit to its last.

    Parameters
    ----------
    chosen : tuple of str, optional
        Specifications of the operators, where they are not the experiment's own.
    """

    chosen: tuple[str, ...] = field(default=(), repr=False)

    version = 2
    starts_anew = True

    @property
    def command(self) -> str:
        """Argument of ``ratedist run`` for this study."""
        return shlex.join([self.name, *(word for text in self.chosen for word in ("--operator", text))])

    def with_operators(self, chosen: Sequence[str]) -> Self:
        """Return the same experiment of other operators; cells that are about operators of theirs are left out.

        Parameters
        ----------
        chosen : sequence of str
            Specifications, "mine:f" for a function of one's own.

        Raises
        ------
        ValueError
            For an unknown operator, and one that does not compress a vector of the probes.
        """
        operators = tuple(parse(text) for text in chosen)
        cells = tuple(cells for cells in self.cells if cells.operators is None)
        preset = replace(self, chosen=tuple(chosen), operators=operators, cells=cells)
        for operator in operators:
            preset.try_out(operator)
        return preset

    def seeded(self, seed: int) -> Self:
        """Return the same experiment with other random numbers throughout."""
        cells = tuple(replace(c, seeds=tuple(derived(seed, recorded) for recorded in c.seeds)) for c in self.cells)
        return replace(self, seed=require(seed), cells=cells)

    def planned(self) -> Iterator[tuple[str, Measurement, Callable[[], Planned]]]:
        """Return every unit's name, what a rank does for it, and what its record must have, in the order of work."""
        for operator in self.operators:
            for source in SOURCES:
                unit = f"{specification(operator)} on {source} input"
                measurement: Measurement = partial(probe, design=self, operator=operator, source=source, seed=self.seed)
                yield unit, measurement, partial(Planned.probe, self, operator, source)
        for i, cells in enumerate(self.cells):
            for operator in self.trained(cells):
                for tau in cells.taus:
                    unit = f"{specification(operator)} on {cells.workload.name}, tau = {tau}, cells {i}"
                    measurement = partial(train, cells=cells, operator=operator, tau=tau)
                    yield unit, measurement, partial(Planned.training, cells, operator, tau, self.processes)

    def units(self) -> Sequence[str]:
        """Return OPERATOR on SOURCE input; then OPERATOR on WORKLOAD, tau = TAU, and the number of its cells."""
        return [unit for unit, *_ in self.planned()]

    def measure(self, unit: str) -> Record:
        """Carry out one unit by processes of its own."""
        with closing(self.measurements([unit], [], Path())) as measurements:
            return next(measurements)

    def measurements(
        self, units: Sequence[str], records: Sequence[Record], folder: Path
    ) -> Generator[Record, None, None]:
        """Carry out units by one set of processes, a record each."""
        self._warm_up()
        ranks = run_ranks(Work(self, units), processes=self.processes, hang_timeout_s=self.hang_timeout_s)
        with closing(ranks):
            for record in ranks:
                yield plain(record)

    def _warm_up(self) -> None:
        """Compile and load once, before the processes fork, so that none of them waits for it."""
        for cells in self.cells:
            cells.workload.objective(cells.workload.model())
            cells.workload.constants()
        for operator in self.operators:
            self.try_out(operator)

    def try_out(self, operator: Operator) -> None:
        """Compress one vector.

        Parameters
        ----------
        operator : Operator
            One of the experiment's.

        Raises
        ------
        ValueError
            With one sentence, for whatever it raises.
        """
        try:
            operator(np.linspace(-1, 1, self.probe_d), key=Key(0))
        except Exception as error:  # whatever a compressor of the user's does
            raise ValueError(
                f"{specification(operator)} fails on a vector of {self.probe_d} numbers "
                f"({type(error).__name__}: {error}): correct it"
            ) from error

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return messages, bytes, seconds and losses against their bounds."""
        whole: list[Probe | Training] = []
        damaged: list[Comparison] = []
        planned = {unit: fixed for unit, _, fixed in self.planned()}
        for record in records:
            operator, unit = (str(record.get(name, "unknown")) for name in ("operator", "unit"))
            where = {"operator": operator, "workload": unit}
            try:
                (measured,) = typed([record])
            except UNREADABLE as error:
                damaged.append(unmeasured("all of a record", error, **where))
            else:
                whole.append(measured)
                damaged += not_as_planned(measured, planned[unit](), **where) if unit in planned else []
        return [*compare(whole, false_alarm=self.false_alarm), *damaged]

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return losses against time and bits, and bits against distortion."""
        whole, _ = without_damaged(typed, records)
        return without_damaged(figures, whole or [])[0] or []

    def summary(self, records: Sequence[Record], comparisons: Sequence[Comparison]) -> Table:
        """Return one line per operator with the outcomes of its comparisons."""
        return outcome_table(comparisons)


def typed(records: Sequence[Record]) -> list[Probe | Training]:
    """Return records of a grid as what they are, from plain values."""
    kinds: dict[str, type[Probe | Training]] = {"probe": Probe, "training": Training}
    return [revive(kinds[record["kind"]], record) for record in records]


def not_as_planned(record: Probe | Training, planned: Planned, **where: Any) -> list[Comparison]:
    """Return a row that is not measured for each field that is not as planned."""
    quantity = "all of a record"
    return rows_of(
        lambda: (unmeasured(quantity, ValueError(text), **where) for text in planned.deviations(record)),
        quantity,
        **where,
    )


class Work:
    """What every rank does: the units that are asked for, in the order of the plan."""

    def __init__(self, preset: Preset, units: Collection[str]) -> None:
        self.preset, self.units = preset, set(units)

    def __call__(self, place: RankContext, emit: Callable[[Any], None]) -> None:
        """Emit every record from rank 0."""
        for unit, measurement, _ in self.preset.planned():
            if unit not in self.units:
                continue
            at(unit=unit)
            record = measurement(place)
            if record is not None:
                emit(record)
