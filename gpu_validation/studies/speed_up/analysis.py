"""What follows from the records: which trial is chosen for which target, and how much faster each method is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from ...records.storage import Record
from ...verdicts.comparisons import exact_row, median_row
from ...verdicts.intervals import Median, median_of
from ...verdicts.iteration_time import near
from ...verdicts.verdict import Comparison, Verdict
from ..adacomm.analysis import predicted_seconds
from ..unit import of_kind
from .problems import STEP, SYNCHRONOUS, UNCHANGING, Course, Design, Report, Same, Seconds, Tune, methods, trials

NO_BOUND = "no bound covers a ratio of times; D/Y = 4 is imposed"


@dataclass(frozen=True)
class Choice:
    """The outcome of tuning, for every target.

    Parameters
    ----------
    trials : dict of str to list of int
        Of a method, by target.
    seconds : dict of str to list of float
        median time of that trial on the tuning seeds, infinite if it did not arrive.
    strongest : list of str
        The fixed tau that is soonest, tau = 1 included.
    reached : int
        How many targets synchronous SGD reaches.
    """

    trials: dict[str, list[int]]
    seconds: dict[str, list[float]]
    strongest: list[str]
    reached: int


@dataclass(frozen=True)
class Cell:
    """One course with m workers.

    Parameters
    ----------
    tuned : list of Record
        Of its tuning units so far.
    reported : list of Record
        Of the units with other seeds so far.
    """

    name: str
    m: int
    course: Course
    methods: Sequence[str]
    tuned: list[Record]
    reported: list[Record]

    @property
    def key(self) -> tuple[str, int]:
        """As in the units."""
        return self.name, self.m

    @property
    def title(self) -> str:
        """In words."""
        return f"{self.name}, m = {self.m}"


def cells(design: Design, records: Sequence[Record]) -> list[Cell]:
    """Return the cells that have been tuned; methods[0] is synchronous SGD."""
    tuned_cells = []
    for name, m, decayed in design.cells:
        tuned = [r for unit, r in of_kind(records, Tune) if (unit.course, unit.m) == (name, m)]
        reported = [r for unit, r in of_kind(records, Report) if (unit.course, unit.m) == (name, m)]
        if tuned:
            tuned_cells.append(Cell(name, m, design.course(name), methods(decayed), tuned, reported))
    return tuned_cells


def times(records: Sequence[Record], method: str, trial: int, target: int) -> list[float]:
    """Return seconds to a target, one for each record that has the run; infinite where it did not arrive."""
    races = [r for unit in records for r in unit["races"] if (r["method"], r["trial"]) == (method, trial)]
    arrivals_s = [r["times"][target] for r in races]
    return [float("inf") if t is None else t for t in arrivals_s]


def choose(cell: Cell) -> Choice:
    """Return every method's trial of the smallest median time to every target, of the lowest last loss where none
    arrives.
    """
    picked: dict[str, list[int]] = {method: [] for method in cell.methods}
    seconds: dict[str, list[float]] = {method: [] for method in cell.methods}
    for method in cell.methods:
        tried = sorted({r["trial"] for r in cell.tuned[0]["races"] if r["method"] == method})
        last = {i: _last(cell.tuned, method, i) for i in tried}
        for target in range(len(cell.course.targets)):
            medians = {i: median_of(times(cell.tuned, method, i, target)).value for i in tried}
            best = min(tried, key=lambda i: (medians[i], last[i]))
            picked[method].append(best)
            seconds[method].append(medians[best])
    fixed = [name for name in cell.methods if name in UNCHANGING]
    indices = range(len(cell.course.targets))
    strongest = [min((seconds[name][target], name) for name in fixed)[1] for target in indices]
    reached = sum(bool(np.isfinite(t)) for t in seconds[cell.methods[0]])
    return Choice(picked, seconds, strongest, reached)


def _last(records: Sequence[Record], method: str, trial: int) -> float:
    return fmean(
        float("inf") if r["diverged"] else r["last"]
        for unit in records
        for r in unit["races"]
        if (r["method"], r["trial"]) == (method, trial)
    )


def arrivals(cell: Cell, choice: Choice, method: str, target: int) -> np.ndarray:
    """Return seconds to a target of the reported seeds, at the rate and parameters chosen for this method
    and target.
    """
    return np.array(times(cell.reported, method, choice.trials[method][target], target))


def speedup(cell: Cell, choice: Choice, method: str, target: int) -> Median:
    """Return paired ratios over the seeds: 0 where the method did not arrive; the budget, where the
    baseline did not.
    """
    slow = np.minimum(arrivals(cell, choice, cell.methods[0], target), cell.course.budget_s)
    return median_of((slow / arrivals(cell, choice, method, target)).tolist())


def against(cell: Cell, choice: Choice, method: str, target: int) -> Median:
    """Return how many times faster than the strongest fixed tau."""
    slow = np.minimum(arrivals(cell, choice, choice.strongest[target], target), cell.course.budget_s)
    return median_of((slow / arrivals(cell, choice, method, target)).tolist())


def at_one_rate(cell: Cell, method: str, target: int) -> list[tuple[float, float]]:
    """Return (rate, times faster than synchronous SGD at that same rate), of the tuning seeds, where both arrive."""
    ratios = []
    tried = trials(cell.course, 1 + max(r["trial"] for r in cell.tuned[0]["races"]))
    for i, trial in enumerate(tried):
        slow, fast = (np.array(times(cell.tuned, name, i, target)) for name in (SYNCHRONOUS, method))
        if np.isfinite([*slow, *fast]).all():
            ratios.append((trial.rate, float(np.median(slow / fast))))
    return sorted(ratios)


# -- rows ------------------------------------------------------------------------------------------------------------
def rows(design: Design, records: Sequence[Record]) -> list[Comparison]:
    """Return ratios of every cell, then what real processes say."""
    comparisons: list[Comparison] = []
    for cell in cells(design, records):
        choice = choose(cell)
        if cell.reported:
            comparisons += _ratio_rows(cell, choice)
        comparisons += _common_rate_rows(cell, choice)
    comparisons += [_same_row(unit, r) for unit, r in of_kind(records, Same)]
    return [*comparisons, *_seconds_rows([r for _, r in of_kind(records, Seconds)])]


def _ratio_rows(cell: Cell, choice: Choice) -> Iterator[Comparison]:
    for target in range(choice.reached):
        loss, strongest = cell.course.targets[target], choice.strongest[target]
        shown: dict[str, Any] = {
            "workload": cell.title,
            "quantity": f"times faster to loss {loss:g}",
            "facts": {"target_loss": loss},
        }
        reason = f"{NO_BOUND}; {strongest}, chosen on the tuning seeds"
        yield median_row("strongest fixed", speedup(cell, choice, strongest, target), reason, **shown)
        for method in cell.methods[1:]:
            rate = trials(cell.course, choice.trials[method][target] + 1)[-1].rate
            yield median_row(method, speedup(cell, choice, method, target), f"{NO_BOUND}; rate {rate:.3g}", **shown)
            if method not in UNCHANGING:
                quantity = f"times faster to loss {loss:g} than the strongest fixed tau"
                ratio, reason = against(cell, choice, method, target), f"{NO_BOUND}; {strongest}"
                facts = {"target_loss": loss, "baseline_time": choice.seconds[strongest][target]}
                yield median_row(method, ratio, reason, workload=cell.title, quantity=quantity, facts=facts)


def _common_rate_rows(cell: Cell, choice: Choice) -> Iterator[Comparison]:
    for method in [name for name in cell.methods if name in ("tau = 20", "gamma")]:
        for rate, ratio in at_one_rate(cell, method, 1):
            quantity = f"times faster to loss {cell.course.transient:g}, both at rate {rate:.3g}"
            speedup = Median(ratio, (ratio, ratio), 0.0, len(cell.tuned))
            reason = f"{NO_BOUND}; tuning seeds; the baseline is not tuned"
            facts = {"target_loss": cell.course.transient, "common_rate": rate}
            yield median_row(method, speedup, reason, workload=cell.title, quantity=quantity, facts=facts)


def _same_row(unit: Same, record: Record) -> Comparison:
    return exact_row(
        record["equal"],
        record["numbers"],
        record["equal"] == record["numbers"],
        operator="real processes",
        workload=f"{unit.course}, m = {unit.m}",
        quantity="numbers of a run that equal its rehearsal's, bit for bit",
        theorem="the rehearsal",
    )


def _seconds_rows(records: Sequence[Record]) -> Iterator[Comparison]:
    """Return real seconds per iteration against the runtime model: decides nothing, for a shared machine
    has no bound.
    """
    for i, race in enumerate(records[0]["races"] if records else ()):
        races = [unit["races"][i] for unit in records]
        measured = [r["took_s"] / r["steps_done"] for r in races]
        bound = float(np.median([predicted_seconds(r, STEP, records[0]["m"]) for r in races]))
        value = float(np.median(measured))
        verdict, reason = near(value, bound)
        about: dict[str, Any] = {"operator": race["method"], "workload": f"real seconds, m = {records[0]['m']}"}
        yield Comparison(
            quantity="seconds per iteration, median over the seeds",
            measured=value,
            interval=(min(measured), max(measured)),
            bound=bound,
            side="tight",
            verdict=verdict,
            reason=reason,
            theorem=f"E max of mean Y + D / tau; {race['scheduling']}",
            n=len(races),
            decides=False,
            unit="s",
            **about,
        )
        ratios = [_paired(unit["races"][0], unit["races"][i]) for unit in records]
        if i and all(ratios):
            speedup = median_of([r for r in ratios if r])
            yield Comparison(
                quantity="times faster in real seconds", measured=speedup.value, interval=speedup.interval, bound=None,
                side="lower", verdict=Verdict.OUT_OF_SCOPE, reason=NO_BOUND, n=speedup.n, decides=False,
                facts={"real_seconds_per_step": value}, **about,
            )  # fmt: skip


def _paired(slow: Record, fast: Record) -> float:
    return slow["times"][1] / fast["times"][1] if slow["times"][1] and fast["times"][1] else 0.0
