"""The study of a grid: every operator on synthetic vectors, and in training on every workload at every period."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from operators import Identity, Key, Operator, parse, specification

from ...judging.console import outcome_table
from ...judging.judge import UNREADABLE, rows_of, unmeasured
from ...judging.plotting import LINES, PALETTE, canvas, style
from ...judging.verdict import Comparison
from ...processes.launch import RankContext, run_ranks
from ...processes.position import at
from ...records.seeds import derived, require
from ...records.storage import Record, plain, revive
from ..study import Figure, Study, without_damaged
from .cell import probe, train
from .planned import Planned
from .records import SOURCES, Design, Probe, Training
from .rows import compare

if TYPE_CHECKING:
    from rich.table import Table

Measurement = Callable[[RankContext], Probe | Training | None]
MOST_LOSSES = 6  # trainings whose losses fit on the console


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
        """Return the same experiment of other operators, beside uncompressed training.

        Cells that are about operators of their own are left out.

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
        if Identity() not in operators:
            operators = (Identity(), *operators)
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

    def losses(self, records: Sequence[Record]) -> str:
        """Return the losses of the first seed in a small experiment; empty in one with more than six trainings."""
        whole, _ = without_damaged(typed, records)
        trained = [record for record in whole or [] if isinstance(record, Training)]
        if not 0 < len(trained) <= MOST_LOSSES:
            return ""
        falls = [f"{t.operator} {t.curve.loss[0]:.3g} to {t.curve.loss[-1]:.3g} (tau = {t.tau})" for t in trained]
        on = ", ".join(dict.fromkeys(training.workload for training in trained))
        return f"loss on {on}, after the first and the last averaging: {', '.join(falls)}"


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


def figures(records: Sequence[Probe | Training]) -> list[Figure]:
    """Return what the records allow: losses of training runs, and bits against distortion of the probes."""
    probes = [r for r in records if isinstance(r, Probe) and r.compression.source == "gaussian"]
    runs = [r for r in records if isinstance(r, Training)]
    losses = (
        "Measured: loss of the averaged model after every round (first seed) against wall-clock, local steps "
        "padded to equal length, and against all codec bits sent. Colour is the operator, line style is tau."
    )
    distortion = (
        "Measured: mean codec bits per coordinate against mean squared error per coordinate on isotropic "
        "Gaussian input of unit variance. Theory: no contractive operator lies below the solid line and no "
        "unbiased one below the dashed line."
    )
    drawn = [Figure(partial(_losses, runs), losses)] if runs else []
    return [*drawn, Figure(partial(_rate_distortion, probes), distortion)] if probes else drawn


def _losses(runs: Sequence[Training]) -> Any:
    workloads = list(dict.fromkeys(r.workload for r in runs))
    colours = dict(zip(dict.fromkeys(r.operator for r in runs), cycle(PALETTE), strict=False))
    lines = dict(zip(sorted({r.tau for r in runs}), cycle(LINES), strict=False))
    figure, axes = canvas(len(workloads), 2, height=3.4)
    for (time, bits), workload in zip(axes, workloads, strict=True):
        losses: list[float] = []
        for run in (r for r in runs if r.workload == workload):
            style: dict[str, Any] = {"color": colours[run.operator], "linestyle": lines[run.tau], "linewidth": 1.2}
            time.plot(run.curve.seconds, run.curve.loss, **style)
            bits.plot(run.curve.codec_bits, run.curve.loss, **style)
            losses += run.curve.loss
        scale = "log" if max(losses) > 5 * min(losses) > 0 else "linear"
        time.set(xlabel="seconds", ylabel=f"{workload}: loss", yscale=scale)
        bits.set(xlabel="codec bits, all workers", xscale="log", yscale=scale)
    from matplotlib.lines import Line2D

    # colours and line styles apart, so that the legend stays short
    handles = [Line2D([], [], color=colour, label=name) for name, colour in colours.items()]
    handles += [Line2D([], [], color="#444444", linestyle=line, label=f"tau = {tau}") for tau, line in lines.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _rate_distortion(probes: Sequence[Probe]) -> Any:
    from bounds.limits import gaussian_bits, gaussian_unbiased_bits

    lossy = [p for p in probes if p.compression.error_per_coordinate.mean > 0]
    figure, ((ax,),) = canvas(1, 1, height=5)
    distortion = np.geomspace(1e-4, 0.999, 200)
    ax.plot(distortion, gaussian_bits(d=1, alpha=distortion), "-", color="#444444", label="limit, contractive")
    wide = np.geomspace(1e-4, 30, 200)
    ax.plot(wide, gaussian_unbiased_bits(d=1, omega=wide), "--", color="#444444", label="limit, unbiased")
    for i, p in enumerate(lossy):
        c, point = p.compression, {**style(i, "color", "marker"), "linestyle": "none"}
        ax.plot(c.error_per_coordinate.mean, c.bits.mean / c.d, label=f"{p.operator} ({c.declared.kind})", **point)
    ax.set(xscale="log", yscale="log", ylim=(0.02, 40))
    ax.set(xlabel="squared error per coordinate", ylabel="codec bits per coordinate")
    ax.legend()
    return figure
