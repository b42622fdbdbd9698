"""Do averages in flight and outer steps pay?  Time to a loss against waiting, and the exact model beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...measurement.batched_simulation import simulate_together
from ...measurement.spec import TrainingRun
from ...measurement.training import run_training
from ...records.storage import Record
from ...verdicts.time_to_target import arrival
from ...verdicts.verdict import Comparison
from ..study import Figure, Study
from ..unit import Unit, read_unit
from .analysis import Choice, cells, choose, rows
from .figures import figures
from .problems import (
    HEADLINE,
    KINDS,
    METHODS,
    TIMED,
    WORKERS,
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
    run_of,
    runtime,
)
from .quadratics import predict
from .search import search

CURVE = ("seconds", "step", "taus", "bits", "losses", "accuracies", "rounds", "steps_done", "took_s")
DIGITS_KEPT = 5  # of a recorded number
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

    def units(self) -> Sequence[str]:
        """Return predict:TASK, then tune, confirm, report and seconds:TASK:RATIO:SEED, and same:TASK:RATIO."""
        units: list[Unit] = [Predict(name) for name, _ in self.tasks]
        for name, ratio in self.cells():
            first, *others = self.tuning
            units.append(Tune(name, ratio, first))
            units += [Confirm(name, ratio, seed) for seed in others]
            units += [Report(name, ratio, seed) for seed in self.seeds]
        units += [Same(name, ratio) for name, ratio in self.checked]
        units += [Timed(name, ratio, seed) for name, ratio in self.timed for seed in self.seeds]
        return [str(unit) for unit in units]

    def with_records(self, records: Sequence[Record], folder: Path) -> OverlapStudy:
        """Return the study with the trials that the tuning records choose."""
        return replace(self, chosen={cell.key: choose(cell) for cell in cells(self, records)})

    # -- one unit ----------------------------------------------------------------------------------------
    def measure(self, unit: str) -> Record:
        """Predict, simulate trials, or compare real processes with their simulation."""
        match read_unit(unit, KINDS):
            case Predict(name):
                task = self.task(name)
                return {str(ratio): predict(task, ratio, self.points) for ratio in self.ratios}
            case Tune(name, ratio, seed):
                return {"searches": {method: self._tuned(name, method, ratio, seed) for method in METHODS}}
            case Confirm(name, ratio, seed):
                return {"times": {method: self._again(name, method, ratio, seed) for method in METHODS}}
            case Report(name, ratio, seed):
                return {"runs": [r for method in METHODS for r in self._reported(name, method, ratio, seed)]}
            case Same(name, ratio):
                return self._same(name, ratio)
            case Timed(name, ratio, seed):
                return self._timed(name, ratio, seed)

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
                **({key: [_short(x) for x in record[key]] for key in ("seconds", "losses")} if i == shown else {}),
            }
            for i, record in zip(picked, self._simulated(runs, ratio, until), strict=True)
        ]

    def _simulated(self, runs: Sequence[TrainingRun], ratio: int, until: Ended) -> list[Record]:
        looks = np.geomspace(budget_s(ratio) / 60, budget_s(ratio), self.looks).tolist()
        return simulate_together(runs, runtime(ratio), looks=looks, until=until)

    def _same(self, name: str, ratio: int) -> Record:
        """Return how many numbers of real runs' records are those of their simulations."""
        task, choice = self.task(name), self.chosen[name, ratio]
        runs = [
            run_of(
                task,
                method,
                choice.trial(method, HEADLINE),
                ratio,
                self.seeds[0],
                budget_s=self.checked_s,
                points=20,
            )
            for method in METHODS
        ]
        simulated = simulate_together(runs, runtime(ratio))
        real = run_training(
            [replace(run, runtime=runtime(ratio)) for run in runs], m=WORKERS, shape=None, scheduling="normal"
        )
        pairs = [
            (value, other)
            for a, b in zip(real, simulated, strict=True)
            for key in CURVE
            for value, other in _pairs(a[key], b[key])
        ]
        return {"numbers": len(pairs), "equal": sum(value == other for value, other in pairs)}

    def _timed(self, name: str, ratio: int, seed: int) -> Record:
        """Return real seconds of the trials that were chosen for the headline's target."""
        task, choice = self.task(name), self.chosen[name, ratio]
        picked = [(method, candidate[HEADLINE]) for method in TIMED for candidate in choice.candidates(method)]
        runs = [
            run_of(
                task,
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
            "averaging_s": _short(float(np.median([s for record in measured for s in record["fenced_s"]]))),
            "scheduling": measured[0]["scheduling"],
            "runs": [
                {
                    "method": method,
                    "trial": i,
                    "times": _finite(_times(record, task)),
                    "step_s": _short(record["took_s"] / record["steps_done"]),
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
    """Return what ends a run: it has come to the target, or another one has long before."""
    best_s = math.inf

    def until(seconds: Sequence[float], losses: Sequence[float]) -> bool:
        nonlocal best_s
        best_s = min(best_s, arrival(seconds, losses, target))
        return seconds[-1] > patience * best_s or math.isfinite(arrival(seconds, losses, target))

    return until


def _times(record: Record, task: Task) -> list[float]:
    return [arrival(record["seconds"], record["losses"], target) for target in task.targets]


def _finite(times: Sequence[float]) -> list[float | None]:
    return [_short(t) if math.isfinite(t) else None for t in times]


def _pairs(numbers: Any, others: Any) -> list[tuple[Any, Any]]:
    if not isinstance(numbers, list):
        return [(numbers, others)]
    return list(zip(numbers, others, strict=True)) if len(numbers) == len(others) else [(numbers, others)]


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS_KEPT}g}")


PRESET = OverlapStudy()
