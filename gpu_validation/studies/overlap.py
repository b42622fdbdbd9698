"""Do averages in flight and outer steps pay?  Time to a loss against waiting, and the exact model beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..measurement.batched_simulation import simulate_together
from ..measurement.spec import TrainingRun
from ..measurement.training import run_training
from ..records.storage import Record
from ..reporting.plotting import LINES, MARKS, PALETTE, canvas, legend_below, plain_ticks
from ..verdicts.comparisons import median_row
from ..verdicts.intervals import Median, median_of
from ..verdicts.time_to_target import arrival
from ..verdicts.verdict import Comparison
from .overlap_problems import (
    ADACOMM,
    FIXED,
    HEADLINE,
    LEFT,
    METHODS,
    STAGES,
    STEP,
    TIMED,
    WORKERS,
    Design,
    Task,
    Trial,
    Tried,
    budget_s,
    predict,
    run_of,
    runtime,
    search,
)
from .races import equal_numbers, same_row, short
from .study import Figure, Study

# -- choices and rows ------------------------------------------------------------------------------------------------

NO_BOUND = "no bound covers a ratio of times; D/Y is imposed"
SAME = ("numbers of runs by every method that equal their simulations', bit for bit", "the simulation")


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
        """Return the trial that is reported of a method for a target.

        Parameters
        ----------
        method : str
            Of ``METHODS``.
        target : int
            Which target.
        """
        return self.tried[method].trials[self.picked[method][target]]

    def candidates(self, method: str) -> list[list[int]]:
        """Return the trials reported of a method, by number: of the fixed tau every tau of the grid at its best rate.

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


def cells(design: OverlapStudy, records: Sequence[Record]) -> list[Cell]:
    """Return the cells that have been tuned.

    Parameters
    ----------
    design : OverlapStudy
        What is tuned and reported.
    records : sequence of Record
        So far.
    """
    predictions = {unit.task: record for unit, record in design.table(records, "predict")}
    tuned_cells = []
    for name, ratio in design.cells():
        predicted = predictions.get(name, {}).get(str(ratio), {})
        tuned, confirmed, reported, timed = (
            [record for _, record in design.table(records, kind, task=name, ratio=ratio)]
            for kind in ("tune", "confirm", "report", "seconds")
        )
        tuned_cells += [
            Cell(name, ratio, design.task(name), record, confirmed, reported, timed, predicted) for record in tuned
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
def rows(design: OverlapStudy, records: Sequence[Record]) -> list[Comparison]:
    """Return ratios of every cell, then what real processes say.

    Parameters
    ----------
    design : OverlapStudy
        What is tuned and reported.
    records : sequence of Record
        So far.
    """
    comparisons: list[Comparison] = []
    for cell in cells(design, records):
        if cell.reported:
            comparisons += [*_ratio_rows(cell, choose(cell)), *_timed_rows(cell, choose(cell))]
    return [*comparisons, *(same_row(r, f"{u.task}, D/Y = {u.ratio}", *SAME) for u, r in design.table(records, "same"))]


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


# -- drawings --------------------------------------------------------------------------------------------------------

SHOWN = tuple(name for name in METHODS if name != FIXED)
CURVES = (FIXED, ADACOMM, "fixed tau + outer", "delayed", "corrected", "corrected + outer")
Tuned = list[tuple[Cell, Choice]]


def figures(design: OverlapStudy, records: Sequence[Record]) -> list[Figure]:
    """Draw the cells that have been reported so far.

    Parameters
    ----------
    design : OverlapStudy
        What is tuned and reported.
    records : sequence of Record
        So far.
    """
    ready = [(cell, choose(cell)) for cell in cells(design, records) if cell.reported]
    if not ready:
        return []
    how = (
        "Four simulated workers, whose losses are those of real processes bit for bit, and a simulated clock: steps of "
        f"7 ms and an exponential 1 ms, D/Y imposed. Every method was tuned by {STAGES * design.points} trials, auto "
        f"by a third as many, and the best of them on {len(design.tuning)} seeds; reported from seeds "
        f"{design.seeds[0]} to {design.seeds[-1]}."
    )
    left = f"{LEFT[HEADLINE]:g} of the loss above its floor"
    best = [speed_up(cell, choice, "corrected + outer", HEADLINE).value for cell, choice in ready]
    finding = (
        f"Corrected merges with outer steps: {min(best):.1f} to {max(best):.1f} times faster than the best fixed tau"
    )
    return [
        Figure(
            partial(_draw_ratios, design, ready),
            f"Measured (marks, range of the seeds): how many times faster than the best fixed tau in hindsight each "
            f"method reached {left}. Theory (rings): the same ratio on the quadratic at the minimiser, by exact second "
            f"moments, computed before any run. {how}",
            finding=finding,
        ),
        Figure(
            partial(_draw_curves, ready),
            f"Measured: loss of the common model above its floor against simulated time in units of Y, each method as "
            f"tuned for {left} (line), median over the seeds. {how}",
        ),
    ]


def _draw_ratios(design: Design, ready: Tuned) -> Any:
    figure, axes = canvas(len(design.tasks), 1, height=2.6)
    for ax, (name, _) in zip(axes[:, 0], design.tasks, strict=True):
        of_task = [(cell, choice) for cell, choice in ready if cell.name == name]
        for i, (cell, choice) in enumerate(of_task):
            places = np.arange(len(SHOWN)) + 0.25 * (i - (len(of_task) - 1) / 2)
            ratios = [speed_up(cell, choice, method, HEADLINE) for method in SHOWN]
            middle = np.array([ratio.value for ratio in ratios])
            low, high = np.array([ratio.interval for ratio in ratios]).T
            label, style = f"D/Y = {cell.ratio}", {"color": PALETTE[i], "markersize": 4, "capsize": 2}
            ax.errorbar(places, middle, [middle - low, high - middle], fmt=MARKS[i], label=label, **style)
            expected = [(x, predicted_ratio(cell, method, HEADLINE)) for x, method in zip(places, SHOWN, strict=True)]
            rings = [(x, ratio) for x, ratio in expected if ratio is not None]
            if rings:
                ax.plot(*zip(*rings, strict=True), "o", color=PALETTE[i], markersize=8, fillstyle="none", alpha=0.6)
        ax.axhline(1, color="black", linewidth=0.6)
        ax.set(title=name, ylabel="times faster", ylim=(-0.15, None))  # who does not arrive is at 0
        ax.set_xticks(range(len(SHOWN)), SHOWN, rotation=20, ha="right")
        ax.grid(visible=False, axis="x")
    legend_below(figure, *axes.flat)
    return figure


def _draw_curves(ready: Tuned) -> Any:
    columns = min(3, len(ready))
    figure, axes = canvas(-(-len(ready) // columns), columns, height=2.8)
    for ax in axes.flat[len(ready) :]:
        ax.set_axis_off()
    for ax, (cell, choice) in zip(axes.flat, ready, strict=False):
        for i, method in enumerate(CURVES):
            trial = choice.picked[method][HEADLINE]
            runs = [r for unit in cell.reported for r in unit["runs"] if (r["method"], r["trial"]) == (method, trial)]
            drawn = [r for r in runs if "losses" in r]
            if not drawn:
                continue
            grid = np.linspace(0, max(r["seconds"][-1] for r in drawn), 200)
            curves = [np.interp(grid, r["seconds"], r["losses"], right=r["losses"][-1]) for r in drawn]
            style = {"color": PALETTE[i % len(PALETTE)], "linestyle": LINES[i % len(LINES)], "linewidth": 1.1}
            ax.plot(grid / STEP.mean_s, np.median(curves, axis=0) - cell.task.floor, label=method, **style)
        ax.axhline(cell.task.targets[HEADLINE] - cell.task.floor, color="black", linewidth=0.6)
        ax.set(title=cell.title, xlabel="time/Y", yscale="log")
        plain_ticks(ax.yaxis)
    legend_below(figure, *axes.flat)
    return figure


# -- the study -------------------------------------------------------------------------------------------------------

Ended = Callable[[Sequence[float], Sequence[float]], bool]  # of a run's seconds and losses so far
LATEST, LOOKS_TIMED = 2.0, 60  # a timed run ends at this many times the tuning run's seconds; its losses
PATIENCE = 1.5  # a trial ends at this many times the seconds in which another has come to the last target


@dataclass(frozen=True)
class OverlapStudy(Design, Study):
    """Waiting with a fixed tau, AdaComm and "auto", four merge rules and outer Nesterov steps, each tuned alike."""

    chosen: dict[tuple[str, int], Choice] = field(default_factory=dict, repr=False, compare=False)

    name = "overlap"
    description = (
        "time to a loss: averages in flight and outer steps against waiting, with the exact model's predictions"
    )
    minutes = 35
    processes = 4
    measures_seconds = True

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield predictions, then searches, finalists and reports of each cell, then real processes."""
        yield from (("predict", name) for name, _ in self.tasks)
        for cell in self.cells():
            first, *others = self.tuning
            yield "tune", *cell, first
            yield from (("confirm", *cell, seed) for seed in others)
            yield from (("report", *cell, seed) for seed in self.seeds)
        yield from (("same", *cell) for cell in self.checked)
        yield from (("seconds", *cell, seed) for cell in self.timed for seed in self.seeds)

    def with_records(self, records: Sequence[Record], folder: Path) -> OverlapStudy:
        """Return the study with the trials that the tuning records choose."""
        return replace(self, chosen={cell.key: choose(cell) for cell in cells(self, records)})

    # -- one unit ----------------------------------------------------------------------------------------
    def measure_predict(self, task: str) -> Record:
        """Compute the exact model of a task's quadratic."""
        return {str(ratio): predict(self.task(task), ratio, self.points) for ratio in self.ratios}

    def measure_tune(self, task: str, ratio: int, seed: int) -> Record:
        """Search for every method at one D/Y."""
        return {"searches": {method: self._tuned(task, method, ratio, seed) for method in METHODS}}

    def measure_confirm(self, task: str, ratio: int, seed: int) -> Record:
        """Run the finalists of every search with another seed."""
        return {"times": {method: self._again(task, method, ratio, seed) for method in METHODS}}

    def measure_report(self, task: str, ratio: int, seed: int) -> Record:
        """Run the trials that were chosen."""
        return {"runs": [r for method in METHODS for r in self._reported(task, method, ratio, seed)]}

    def _tuned(self, name: str, method: str, ratio: int, seed: int) -> Record:
        """Return the trials of a search and the seconds of each to every target."""
        task = self.task(name)
        until = _until(task.targets[-1], PATIENCE)

        def times_of(trials: list[Trial]) -> list[list[float]]:
            runs = [run_of(task, method, trial, ratio, seed) for trial in trials]
            return [_times(record, task) for record in self._simulated(runs, ratio, until)]

        tried = search(task, method, self.points, times_of)
        return {
            "trials": [trial.numbers() for trial in tried.trials],
            "times": [_finite(times) for times in tried.times],
        }

    def _again(self, name: str, method: str, ratio: int, seed: int) -> list[list[float | None]]:
        """Return the seconds of the finalists."""
        task, choice = self.task(name), self.chosen[name, ratio]
        runs = [run_of(task, method, choice.tried[method].trials[i], ratio, seed) for i in choice.finalists[method]]
        return [_finite(_times(r, task)) for r in self._simulated(runs, ratio, _until(task.targets[-1]))]

    def _reported(self, name: str, method: str, ratio: int, seed: int) -> list[Record]:
        task, choice = self.task(name), self.chosen[name, ratio]
        picked = sorted({i for tried in choice.candidates(method) for i in tried})
        tried = choice.tried[method].trials
        runs = [run_of(task, method, tried[i], ratio, seed) for i in picked]
        shown, until = choice.picked[method][HEADLINE], _until(task.targets[-1])
        return [
            {
                "method": method,
                "trial": i,
                "times": _finite(_times(record, task)),
                **({key: [short(x) for x in record[key]] for key in ("seconds", "losses")} if i == shown else {}),
            }
            for i, record in zip(picked, self._simulated(runs, ratio, until), strict=True)
        ]

    def _simulated(self, runs: Sequence[TrainingRun], ratio: int, until: Ended) -> list[Record]:
        looks = np.geomspace(budget_s(ratio) / 60, budget_s(ratio), self.looks).tolist()
        return simulate_together(runs, runtime(ratio), looks=looks, until=until)

    def measure_same(self, task: str, ratio: int) -> Record:
        """Compare real processes with their simulation."""
        chosen, ends = self.chosen[task, ratio], {"budget_s": self.checked_s, "points": 20}
        runs = [
            run_of(self.task(task), method, chosen.trial(method, HEADLINE), ratio, self.seeds[0], **ends)
            for method in METHODS
        ]
        return equal_numbers(runs, runtime(ratio), WORKERS)

    def measure_seconds(self, task: str, ratio: int, seed: int) -> Record:
        """Return real seconds of the trials that were chosen for the headline's target, on a shaped network."""
        chosen, choice = self.task(task), self.chosen[task, ratio]
        picked = [(method, candidate[HEADLINE]) for method in TIMED for candidate in choice.candidates(method)]
        runs = [
            run_of(
                chosen,
                method,
                choice.tried[method].trials[i],
                ratio,
                seed,
                budget_s=min(budget_s(ratio), LATEST * choice.tried[method].times[i][HEADLINE]),
                points=LOOKS_TIMED,
            )
            for method, i in picked
        ]
        measured = run_training(runs, m=WORKERS, shape=self.shape)
        return {
            "averaging_s": short(float(np.median([s for record in measured for s in record["fenced_s"]]))),
            "scheduling": measured[0]["scheduling"],
            "runs": [
                {
                    "method": method,
                    "trial": i,
                    "times": _finite(_times(record, chosen)),
                    "step_s": short(record["took_s"] / record["steps_done"]),
                }
                for (method, i), record in zip(picked, measured, strict=True)
            ],
        }

    # -- what follows ------------------------------------------------------------------------------------
    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return real processes against their simulation, exactly; ratios of times and their predictions, unjudged."""
        return rows(self, records)

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return how many times faster than the best fixed tau, with the prediction, and losses against time."""
        return figures(self, records)


def _until(target: float, patience: float = math.inf) -> Ended:
    """Return the rule that ends a run: it has reached the target, or another run did long before."""
    best_s = math.inf

    def until(seconds: Sequence[float], losses: Sequence[float]) -> bool:
        nonlocal best_s
        best_s = min(best_s, arrival(seconds, losses, target))
        return seconds[-1] > patience * best_s or math.isfinite(arrival(seconds, losses, target))

    return until


def _times(record: Record, task: Task) -> list[float]:
    return [arrival(record["seconds"], record["losses"], target) for target in task.targets]


def _finite(times: Sequence[float]) -> list[float | None]:
    return [short(t) if math.isfinite(t) else None for t in times]


PRESET = OverlapStudy()
