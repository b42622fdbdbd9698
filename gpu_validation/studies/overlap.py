"""Do averages in flight and outer steps pay?  Time to a loss against waiting, and the exact model beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..judging.comparisons import median_row
from ..judging.intervals import Median
from ..judging.iteration_time import arrival
from ..judging.plotting import MARKS, PALETTE, categories, chart, error_bars, style
from . import overlap_problems as problems
from .overlap_problems import ADACOMM, FIXED, HEADLINE, LEFT, METHODS, TIMED, Design, Task, Trial, Tried, budget_s
from .races import arrivals, equal_numbers, faster, of_trial, same_row, seconds, short, times_of
from .runs.batched_simulation import simulate_together
from .runs.spec import TrainingRun
from .runs.training import run_training
from .study import Comparison, Figure, Record, Study

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
        Runs of the units with other seeds so far.
    real : list of Record
        Units in real seconds so far.
    predicted : Record
        Of every method, the predicted seconds to the targets; empty if nothing was predicted.
    """

    name: str
    ratio: int
    task: Task
    tuned: Record
    confirmed: list[Record]
    reported: list[Record]
    real: list[Record]
    predicted: Record

    @property
    def key(self) -> tuple[str, int]:
        """As in the units."""
        return self.name, self.ratio

    @property
    def timed(self) -> list[Record]:
        """Runs in real seconds."""
        return [run for unit in self.real for run in unit["runs"]]

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
        tuned, confirmed, reported, real = (
            [record for _, record in design.table(records, kind, task=name, ratio=ratio)]
            for kind in ("tune", "confirm", "report", "seconds")
        )
        runs = [run for unit in reported for run in unit["runs"]]
        tuned_cells += [Cell(name, ratio, design.task(name), r, confirmed, runs, real, predicted) for r in tuned]
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
        method: Tried([Trial(*numbers) for numbers in search["trials"]], seconds(search["times"]).tolist())
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
    others = [seconds(record["times"][method]) for record in cell.confirmed]
    for place, i in enumerate(finalists):
        times[i] = np.median([tried.times[i], *(other[place] for other in others)], axis=0).tolist()
    return Tried(tried.trials, times)


def best_fixed(races: Sequence[Record], choice: Choice, target: int) -> int:
    """Return the trial of the fixed tau that is the best in hindsight: by the median of these seeds.

    Parameters
    ----------
    races : sequence of Record
        Runs of a cell.
    choice : Choice
        What tuning has chosen.
    target : int
        Which target.
    """
    candidates = [of_tau[target] for of_tau in choice.by_tau]
    return min(candidates, key=lambda trial: float(np.median(arrivals(races, FIXED, trial, target))))


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
    slow, fast = (_arrived(cell.reported, choice, name, target) for name in (than, method))
    return faster(slow, fast, budget_s(cell.ratio))


def _arrived(races: Sequence[Record], choice: Choice, method: str, target: int) -> np.ndarray:
    """Return the seconds of a method as tuned for a target; of the fixed tau those of the best one in hindsight."""
    trial = best_fixed(races, choice, target) if method == FIXED else choice.picked[method][target]
    return arrivals(races, method, trial, target)


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
    slow, fast = (_arrived(cell.timed, choice, name, HEADLINE) for name in (than, method))
    return faster(np.where(np.isfinite(slow), slow, 0.0), fast, math.inf)


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
def _ratio_rows(cell: Cell, choice: Choice) -> Iterator[Comparison]:
    for target, left in enumerate(LEFT):
        fixed = choice.tried[FIXED].trials[best_fixed(cell.reported, choice, target)]
        to, about = f"to {left:g} of the loss above the floor", {"workload": cell.title}
        for method in METHODS:
            if method == FIXED:
                continue
            expected = predicted_ratio(cell, method, target)
            word = "" if expected is None else f"; the exact model says {expected:.2f}"
            reason = (
                f"{NO_BOUND}; fixed tau = {fixed.tau}, rate {fixed.rate:.3g}; here {choice.trial(method, target)}{word}"
            )
            facts = {"target": left, "baseline_tau": fixed.tau} | ({} if expected is None else {"predicted": expected})
            ratio, quantity = speed_up(cell, choice, method, target), f"times faster than the best fixed tau {to}"
            yield median_row(method, ratio, reason, quantity=quantity, facts=facts, **about)
            if METHODS[method].overlap != "none":
                ratio = speed_up(cell, choice, method, target, than=ADACOMM)
                quantity = f"times faster than tuned AdaComm {to}"
                yield median_row(method, ratio, NO_BOUND, quantity=quantity, facts={"target": left}, **about)


def _timed_rows(cell: Cell, choice: Choice) -> Iterator[Comparison]:
    if not cell.timed:
        return
    waiting = float(np.median([unit["averaging_s"] for unit in cell.real])) / problems.STEP.mean_s
    fixed = choice.tried[FIXED].trials[best_fixed(cell.timed, choice, HEADLINE)]
    for method in TIMED:
        for than, name in ((FIXED, "the best fixed tau"), (ADACOMM, "tuned AdaComm")):
            if method in (FIXED, than):
                continue
            reason = f"no bound covers a ratio of times; D/Y measured {waiting:.1f}; best fixed tau = {fixed.tau}"
            reason = f"{reason}; {cell.real[0]['scheduling']}"
            facts = {"target": LEFT[HEADLINE], "delay_ratio": waiting}
            facts |= {"baseline_tau": fixed.tau} if than == FIXED else {}
            quantity = f"times faster than {name} to {LEFT[HEADLINE]:g} of the loss above the floor, in real seconds"
            ratio = speed_up_in_real_seconds(cell, choice, method, than)
            yield median_row(method, ratio, reason, quantity=quantity, workload=cell.title, facts=facts)


# -- drawings --------------------------------------------------------------------------------------------------------

SHOWN = tuple(name for name in METHODS if name != FIXED)
CURVES = (FIXED, ADACOMM, "fixed tau + outer", "delayed", "corrected", "corrected + outer")
Tuned = list[tuple[Cell, Choice]]


def _draw_ratios(design: Design, ready: Tuned) -> Any:
    def draw(ax: Any, name: str) -> None:
        of_task = [(cell, choice) for cell, choice in ready if cell.name == name]
        for i, (cell, choice) in enumerate(of_task):
            places = np.arange(len(SHOWN)) + 0.25 * (i - (len(of_task) - 1) / 2)
            ratios = [speed_up(cell, choice, method, HEADLINE) for method in SHOWN]
            how = {"color": PALETTE[i], "markersize": 4, "capsize": 2, "fmt": MARKS[i]}
            error_bars(ax, places, ratios, label=f"D/Y = {cell.ratio}", **how)
            expected = [(x, predicted_ratio(cell, method, HEADLINE)) for x, method in zip(places, SHOWN, strict=True)]
            rings = [(x, ratio) for x, ratio in expected if ratio is not None]
            if rings:
                ax.plot(*zip(*rings, strict=True), "o", color=PALETTE[i], markersize=8, fillstyle="none", alpha=0.6)
        ax.axhline(1, color="black", linewidth=0.6)
        categories(ax, SHOWN, rotation=20, ha="right")

    names = [name for name, _ in design.tasks]  # who does not arrive is at 0
    return chart(names, draw, columns=1, height=2.6, y="times faster", ylim=(-0.15, None))


def _draw_curves(ready: Tuned) -> Any:
    def draw(ax: Any, tuned: tuple[Cell, Choice]) -> None:
        cell, choice = tuned
        for i, method in enumerate(CURVES):
            runs = of_trial(cell.reported, method, choice.picked[method][HEADLINE])
            drawn = [r for r in runs if "losses" in r]
            if not drawn:
                continue
            grid = np.linspace(0, max(r["seconds"][-1] for r in drawn), 200)
            curves = [np.interp(grid, r["seconds"], r["losses"], right=r["losses"][-1]) for r in drawn]
            above, how = np.median(curves, axis=0) - cell.task.floor, style(i, "color", "linestyle")
            ax.plot(grid / problems.STEP.mean_s, above, label=method, linewidth=1.1, **how)
        ax.axhline(cell.task.targets[HEADLINE] - cell.task.floor, color="black", linewidth=0.6)

    return chart(ready, draw, columns=3, height=2.8, title=lambda t: t[0].title, x="time/Y", logs="y", plain="y")


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
        return {str(ratio): problems.predict(self.task(task), ratio, self.points) for ratio in self.ratios}

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
            runs = [problems.run_of(task, method, trial, ratio, seed) for trial in trials]
            return [_times(record, task) for record in self._simulated(runs, ratio, until)]

        tried = problems.search(task, method, self.points, times_of)
        times = [[short(t) if math.isfinite(t) else None for t in of_trial] for of_trial in tried.times]
        return {"trials": [trial.numbers() for trial in tried.trials], "times": times}

    def _again(self, name: str, method: str, ratio: int, seed: int) -> list[list[float | None]]:
        """Return the seconds of the finalists."""
        task, choice = self.task(name), self.chosen[name, ratio]
        tried = choice.tried[method].trials
        runs = [problems.run_of(task, method, tried[i], ratio, seed) for i in choice.finalists[method]]
        return [times_of(r, task.targets) for r in self._simulated(runs, ratio, _until(task.targets[-1]))]

    def _reported(self, name: str, method: str, ratio: int, seed: int) -> list[Record]:
        task, choice = self.task(name), self.chosen[name, ratio]
        picked = sorted({i for tried in choice.candidates(method) for i in tried})
        tried = choice.tried[method].trials
        runs = [problems.run_of(task, method, tried[i], ratio, seed) for i in picked]
        shown, until = choice.picked[method][HEADLINE], _until(task.targets[-1])
        return [
            {
                "method": method,
                "trial": i,
                "times": times_of(record, task.targets),
                **({key: [short(x) for x in record[key]] for key in ("seconds", "losses")} if i == shown else {}),
            }
            for i, record in zip(picked, self._simulated(runs, ratio, until), strict=True)
        ]

    def _simulated(self, runs: Sequence[TrainingRun], ratio: int, until: Ended) -> list[Record]:
        looks = np.geomspace(budget_s(ratio) / 60, budget_s(ratio), self.looks).tolist()
        return simulate_together(runs, problems.runtime(ratio), looks=looks, until=until)

    def measure_same(self, task: str, ratio: int) -> Record:
        """Compare real processes with their simulation."""
        chosen, ends = self.chosen[task, ratio], {"budget_s": self.checked_s, "points": 20}
        runs = [
            problems.run_of(self.task(task), method, chosen.trial(method, HEADLINE), ratio, self.seeds[0], **ends)
            for method in METHODS
        ]
        return equal_numbers(runs, problems.runtime(ratio), problems.WORKERS)

    def measure_seconds(self, task: str, ratio: int, seed: int) -> Record:
        """Return real seconds of the trials that were chosen for the headline's target, on a shaped network."""
        chosen, choice = self.task(task), self.chosen[task, ratio]
        picked = [(method, candidate[HEADLINE]) for method in TIMED for candidate in choice.candidates(method)]
        runs = [
            problems.run_of(
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
        measured = run_training(runs, m=problems.WORKERS, shape=self.shape)
        return {
            "averaging_s": short(float(np.median([s for record in measured for s in record["fenced_s"]]))),
            "scheduling": measured[0]["scheduling"],
            "runs": [
                {
                    "method": method,
                    "trial": i,
                    "times": times_of(record, chosen.targets),
                    "step_s": short(record["took_s"] / record["steps_done"]),
                }
                for (method, i), record in zip(picked, measured, strict=True)
            ],
        }

    # -- what follows ------------------------------------------------------------------------------------
    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return real processes against their simulation, exactly; ratios of times and their predictions, unjudged."""
        rows: list[Comparison] = []
        for cell, choice in self._reported_cells(records):
            rows += [*_ratio_rows(cell, choice), *_timed_rows(cell, choice)]
        return [*rows, *(same_row(r, f"{u.task}, D/Y = {u.ratio}", *SAME) for u, r in self.table(records, "same"))]

    def _reported_cells(self, records: Sequence[Record]) -> Tuned:
        return [(cell, choose(cell)) for cell in cells(self, records) if cell.reported]

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return how many times faster than the best fixed tau, with the prediction, and losses against time."""
        ready = self._reported_cells(records)
        if not ready:
            return []
        how = (
            "Four simulated workers, whose losses are those of real processes bit for bit, and a simulated clock: "
            "steps of 7 ms and an exponential 1 ms, D/Y imposed. Every method was tuned by "
            f"{problems.STAGES * self.points} trials, auto by a third as many, and the best of them on "
            f"{len(self.tuning)} seeds; reported from seeds {self.seeds[0]} to {self.seeds[-1]}."
        )
        left = f"{LEFT[HEADLINE]:g} of the loss above its floor"
        ratios = (
            "Measured (marks, range of the seeds): how many times faster than the best fixed tau in hindsight each "
            f"method reached {left}. Theory (rings): the same ratio on the quadratic at the minimiser, by exact second "
            f"moments, computed before any run. {how}"
        )
        curves = (
            "Measured: loss of the common model above its floor against simulated time in units of Y, each method as "
            f"tuned for {left} (line), median over the seeds. {how}"
        )
        best = [speed_up(cell, choice, "corrected + outer", HEADLINE).value for cell, choice in ready]
        span = f"{min(best):.1f} to {max(best):.1f} times faster than the best fixed tau"
        return [
            Figure(partial(_draw_ratios, self, ready), ratios, finding=f"Corrected merges with outer steps: {span}"),
            Figure(partial(_draw_curves, ready), curves),
        ]


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


PRESET = OverlapStudy()
