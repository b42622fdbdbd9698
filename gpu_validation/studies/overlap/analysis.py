"""What follows from the records: which trial is chosen for which target, how much faster each method is, and
whether the exact model has said so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...records.storage import Record
from ...verdicts.comparisons import exact_row, median_row
from ...verdicts.intervals import Median, median_of
from ...verdicts.verdict import Comparison
from ..unit import of_kind
from .problems import (
    ADACOMM,
    FIXED,
    HEADLINE,
    LEFT,
    METHODS,
    STEP,
    TIMED,
    Confirm,
    Design,
    Predict,
    Report,
    Same,
    Task,
    Timed,
    Trial,
    Tune,
    budget_s,
)
from .search import Tried

CellUnit = Tune | Confirm | Report | Timed
NO_BOUND = "no bound covers a ratio of times; D/Y is imposed"


@dataclass(frozen=True)
class Choice:
    """The outcome of tuning, for every target.

    Parameters
    ----------
    tried : dict of str to Tried
        Of a method, its search.
    finalists : dict of str to list of int
        Of a method, the trials that are tried with every tuning seed.
    picked : dict of str to list of int
        Of a method, the trial of least time by target.
    by_tau : list of list of int
        Of the fixed tau: for every tau of the grid, by target.
    """

    tried: dict[str, Tried]
    finalists: dict[str, list[int]]
    picked: dict[str, list[int]]
    by_tau: list[list[int]]

    def trial(self, method: str, target: int) -> Trial:
        """Return what is reported of a method for a target.

        Parameters
        ----------
        method : str
            Of ``METHODS``.
        target : int
            Which target.
        """
        return self.tried[method].trials[self.picked[method][target]]

    def candidates(self, method: str) -> list[list[int]]:
        """Return what is reported of a method: of the fixed tau every tau of the grid at its best rate.

        Parameters
        ----------
        method : str
            Of ``METHODS``.
        """
        return self.by_tau if method == FIXED else [self.picked[method]]


@dataclass(frozen=True)
class Cell:
    """One task at one D/Y.

    Parameters
    ----------
    name : str
        Of the task.
    ratio : int
        D/Y.
    task : Task
        The task.
    tuned : Record
        Of its search.
    confirmed : list of Record
        Of the finalists with the other tuning seeds so far.
    reported : list of Record
        Of the units with other seeds so far.
    timed : list of Record
        Of those in real seconds so far.
    predicted : Record
        Of every method, the predicted seconds to the targets; empty if nothing was predicted.
    """

    name: str
    ratio: int
    task: Task
    tuned: Record
    confirmed: list[Record]
    reported: list[Record]
    timed: list[Record]
    predicted: Record

    @property
    def key(self) -> tuple[str, int]:
        """As in the units."""
        return self.name, self.ratio

    @property
    def title(self) -> str:
        """In words."""
        return f"{self.name}, D/Y = {self.ratio}"


def cells(design: Design, records: Sequence[Record]) -> list[Cell]:
    """Return the cells that have been tuned.

    Parameters
    ----------
    design : Design
        What is tuned and reported.
    records : sequence of Record
        So far.
    """
    predictions = {unit.task: record for unit, record in of_kind(records, Predict)}
    tuned_cells = []
    for name, ratio in design.cells():

        def of_cell(kind: type[CellUnit], key: tuple[str, int] = (name, ratio)) -> list[Record]:
            return [record for unit, record in of_kind(records, kind) if (unit.task, unit.ratio) == key]

        predicted = predictions.get(name, {}).get(str(ratio), {})
        confirmed, reported, timed = of_cell(Confirm), of_cell(Report), of_cell(Timed)
        tuned_cells += [
            Cell(name, ratio, design.task(name), record, confirmed, reported, timed, predicted)
            for record in of_cell(Tune)
        ]
    return tuned_cells


def choose(cell: Cell) -> Choice:
    """Return every method's finalist for every target, by the median time over the tuning seeds.

    Where none arrives, that which came to the target before.

    Parameters
    ----------
    cell : Cell
        One that has been tuned.
    """
    targets = range(len(LEFT))
    tried = {
        method: Tried([Trial(*numbers) for numbers in search["trials"]], _seconds(search["times"]).tolist())
        for method, search in cell.tuned["searches"].items()
    }
    finalists = {method: search.finalists(method) for method, search in tried.items()}
    finals = {method: _final(cell, method, tried[method], finalists[method]) for method in tried}
    picked = {method: [final.best(target, finalists[method]) for target in targets] for method, final in finals.items()}
    of_tau = [[i for i in among if i in finalists[FIXED]] for among in tried[FIXED].by_tau()]
    return Choice(tried, finalists, picked, [[finals[FIXED].best(t, among) for t in targets] for among in of_tau])


def _final(cell: Cell, method: str, tried: Tried, finalists: Sequence[int]) -> Tried:
    """Return the trials with the finalists' medians over the tuning seeds in the place of their times."""
    times = list(tried.times)
    others = [_seconds(record["times"][method]) for record in cell.confirmed]
    for place, i in enumerate(finalists):
        times[i] = np.median([tried.times[i], *(seconds[place] for seconds in others)], axis=0).tolist()
    return Tried(tried.trials, times)


def _seconds(times: Sequence[Sequence[float | None]]) -> np.ndarray:
    return np.array([[np.inf if t is None else t for t in of_trial] for of_trial in times])


def arrivals(units: Sequence[Record], method: str, trial: int, target: int) -> np.ndarray:
    """Return seconds to a target, of every seed; infinite where one did not arrive.

    Parameters
    ----------
    units : sequence of Record
        Of a cell, one a seed: ``reported`` or ``timed``.
    method : str
        Of ``METHODS``.
    trial : int
        Which of its trials.
    target : int
        Which target.
    """
    runs = [r for unit in units for r in unit["runs"] if (r["method"], r["trial"]) == (method, trial)]
    return _seconds([r["times"] for r in runs])[:, target]


def best_fixed(units: Sequence[Record], choice: Choice, target: int) -> int:
    """Return the trial of the fixed tau that is the best in hindsight: by the median of these seeds.

    Parameters
    ----------
    units : sequence of Record
        Of a cell, one a seed.
    choice : Choice
        What tuning has chosen.
    target : int
        Which target.
    """
    candidates = [of_tau[target] for of_tau in choice.by_tau]
    return min(candidates, key=lambda trial: float(np.median(arrivals(units, FIXED, trial, target))))


def speed_up(cell: Cell, choice: Choice, method: str, target: int, than: str = FIXED) -> Median:
    """Return how many times faster than the best fixed tau in hindsight, or than another tuned method; paired by seed.

    0 where the method did not arrive; where the other did not, the end of the budget stands in for it.

    Parameters
    ----------
    cell : Cell
        One that has been reported.
    choice : Choice
        What tuning has chosen.
    method : str
        Of ``METHODS``.
    target : int
        Which target.
    than : str, optional
        Of ``METHODS``.
    """
    units, picked = cell.reported, choice.picked
    baseline = best_fixed(units, choice, target) if than == FIXED else picked[than][target]
    slow = np.minimum(arrivals(units, than, baseline, target), budget_s(cell.ratio))
    return median_of((slow / arrivals(units, method, picked[method][target], target)).tolist())


def speed_up_in_real_seconds(cell: Cell, choice: Choice, method: str, than: str = FIXED) -> Median:
    """Return the same to the headline's target from the runs in real seconds; 0 where either did not arrive.

    Parameters
    ----------
    cell : Cell
        One that was timed.
    choice : Choice
        What tuning has chosen.
    method : str
        Of ``TIMED``.
    than : str, optional
        Of ``TIMED``.
    """
    units, picked = cell.timed, choice.picked
    baseline = best_fixed(units, choice, HEADLINE) if than == FIXED else picked[than][HEADLINE]
    slow = arrivals(units, than, baseline, HEADLINE)
    fast = arrivals(units, method, picked[method][HEADLINE], HEADLINE)
    return median_of(np.where(np.isfinite(slow), slow / fast, 0.0).tolist())


def predicted_ratio(cell: Cell, method: str, target: int) -> float | None:
    """Return how many times faster than the best fixed tau the exact model expects a method; None if it does not know.

    0 where it expects no arrival; the end of the budget stands in for a fixed tau that does not arrive.

    Parameters
    ----------
    cell : Cell
        One with predictions.
    method : str
        Of ``METHODS``.
    target : int
        Which target.
    """
    if method not in cell.predicted:
        return None
    slow, fast = (cell.predicted[name]["times"][target] for name in (FIXED, method))
    if fast is None:
        return None if slow is None else 0.0
    return float((budget_s(cell.ratio) if slow is None else slow) / fast)


# -- rows ------------------------------------------------------------------------------------------------------------
def rows(design: Design, records: Sequence[Record]) -> list[Comparison]:
    """Return ratios of every cell, then what real processes say.

    Parameters
    ----------
    design : Design
        What is tuned and reported.
    records : sequence of Record
        So far.
    """
    comparisons: list[Comparison] = []
    for cell in cells(design, records):
        if cell.reported:
            comparisons += [*_ratio_rows(cell, choose(cell)), *_timed_rows(cell, choose(cell))]
    return [*comparisons, *(_same_row(unit, record) for unit, record in of_kind(records, Same))]


def _ratio_rows(cell: Cell, choice: Choice) -> Iterator[Comparison]:
    for target, left in enumerate(LEFT):
        fixed = choice.tried[FIXED].trials[best_fixed(cell.reported, choice, target)]
        about: dict[str, Any] = {"workload": cell.title}
        for method in METHODS:
            if method == FIXED:
                continue
            expected = predicted_ratio(cell, method, target)
            word = "" if expected is None else f"; the exact model says {expected:.2f}"
            reason = (
                f"{NO_BOUND}; fixed tau = {fixed.tau}, rate {fixed.rate:.3g}; here {choice.trial(method, target)}{word}"
            )
            quantity = f"times faster than the best fixed tau to {left:g} of the loss above the floor"
            facts = {"target": left, "baseline_tau": fixed.tau} | ({} if expected is None else {"predicted": expected})
            ratio = speed_up(cell, choice, method, target)
            yield median_row(method, ratio, reason, quantity=quantity, facts=facts, **about)
            if METHODS[method].overlap != "none":
                quantity = f"times faster than tuned AdaComm to {left:g} of the loss above the floor"
                ratio = speed_up(cell, choice, method, target, than=ADACOMM)
                yield median_row(method, ratio, NO_BOUND, quantity=quantity, facts={"target": left}, **about)


def _timed_rows(cell: Cell, choice: Choice) -> Iterator[Comparison]:
    if not cell.timed:
        return
    waiting = float(np.median([unit["averaging_s"] for unit in cell.timed])) / STEP.mean_s
    fixed = choice.tried[FIXED].trials[best_fixed(cell.timed, choice, HEADLINE)]
    for method in TIMED:
        for than, name in ((FIXED, "the best fixed tau"), (ADACOMM, "tuned AdaComm")):
            if method in (FIXED, than):
                continue
            reason = f"no bound covers a ratio of times; D/Y measured {waiting:.1f}; best fixed tau = {fixed.tau}"
            yield median_row(
                method,
                speed_up_in_real_seconds(cell, choice, method, than),
                f"{reason}; {cell.timed[0]['scheduling']}",
                quantity=f"times faster than {name} to {LEFT[HEADLINE]:g} of the loss above the floor, in real seconds",
                workload=cell.title,
                facts={"target": LEFT[HEADLINE], "delay_ratio": waiting}
                | ({"baseline_tau": fixed.tau} if than == FIXED else {}),
            )


def _same_row(unit: Same, record: Record) -> Comparison:
    return exact_row(
        record["equal"],
        record["numbers"],
        record["equal"] == record["numbers"],
        operator="real processes",
        workload=f"{unit.task}, D/Y = {unit.ratio}",
        quantity="numbers of runs by every method that equal their simulations', bit for bit",
        theorem="the simulation",
    )
