"""How much faster local steps reach a loss, every schedule at its own tuned learning rate.

Tuning and reported runs on a simulated clock, and real processes that are held against them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bounds.runtime import Constant

from ...measurement.batched_simulation import simulate_together
from ...measurement.spec import TrainingRun
from ...measurement.training import run_training
from ...records.seeds import derived
from ...records.storage import Record
from ...verdicts.time_to_target import arrival
from ...verdicts.verdict import Comparison
from ..study import Figure, Study
from ..unit import Unit, read_unit
from .analysis import Choice, cells, choose, rows
from .figures import figures
from .problems import (
    DELAY_S,
    KINDS,
    SYNCHRONOUS,
    Course,
    Design,
    Report,
    Same,
    Seconds,
    Tune,
    methods,
    race,
    runtime,
    trials,
)

CURVE = ("seconds", "step", "taus", "bits", "losses", "accuracies", "rounds", "steps_done", "took_s")
DIGITS_KEPT = 5  # of a recorded number


@dataclass(frozen=True)
class SpeedUp(Design, Study):
    """Time to a loss for tau = 1, 5, 20, 100 and the rules of AdaComm, each tuned with the same effort."""

    chosen: dict[tuple[str, int], Choice] = field(default_factory=dict, repr=False, compare=False)

    name = "speed-up"
    description = "time to a loss, every schedule tuned alike: fixed tau and AdaComm, m = 2, 4, 8, digits and text"
    minutes = 15
    processes = 4
    measures_seconds = True

    def seeded(self, seed: int) -> SpeedUp:
        """Return also with other seeds of the timed runs."""
        study = super().seeded(seed)
        assert isinstance(study, SpeedUp)
        return replace(study, timed=tuple(derived(seed, recorded) for recorded in self.timed))

    def units(self) -> Sequence[str]:
        """Return each cell's tune:COURSE:M:SEED, report:COURSE:M:SEED and same:COURSE:M; then seconds:SEED."""
        units: list[Unit] = []
        for name, m, _ in self.cells:
            units += [Tune(name, m, seed) for seed in self.tuning]
            units += [Report(name, m, seed) for seed in self.seeds]
            units.append(Same(name, m))
        return [*map(str, units), *(str(Seconds(seed)) for seed in self.timed)]

    def with_records(self, records: Sequence[Record], folder: Path) -> SpeedUp:
        """Return the study with the trials that the tuning records choose."""
        return replace(self, chosen={cell.key: choose(cell) for cell in cells(self, records)})

    # -- one unit ----------------------------------------------------------------------------------------
    def measure(self, unit: str) -> Record:
        """Simulate trials, compare real processes with their simulation, or time them."""
        match read_unit(unit, KINDS):
            case Seconds(seed):
                return self._seconds(seed)
            case Same(name, m):
                return self._same(name, m)
            case Tune(name, m, seed):
                tried = [(method, i) for method in self._methods(name, m) for i in range(self.points)]
                return {"m": m, "races": self._simulated(name, m, seed, tried, curves=False)}
            case Report(name, m, seed):
                picked = self.chosen[name, m].trials
                tried = [(method, i) for method in self._methods(name, m) for i in sorted(set(picked[method]))]
                return {"m": m, "races": self._simulated(name, m, seed, tried, curves=True)}

    def _methods(self, name: str, m: int) -> Sequence[str]:
        return methods(next(decayed for *setting, decayed in self.cells if setting == [name, m]))

    def _simulated(
        self, name: str, m: int, seed: int, wanted: Sequence[tuple[str, int]], *, curves: bool
    ) -> list[Record]:
        course = self.course(name)
        tried = trials(course, self.points)
        races = [race(course, method, tried[i], seed) for method, i in wanted]
        looks = np.geomspace(course.budget_s / 100, course.budget_s, self.looks).tolist()
        last = course.targets[-1]
        simulated = simulate_together(
            races, runtime(m), looks=looks, until=lambda t, losses: math.isfinite(arrival(t, losses, last))
        )
        return [
            {"method": method, "trial": i, **_summary(record, course, curves=curves)}
            for (method, i), record in zip(wanted, simulated, strict=True)
        ]

    def _checked(self, name: str, m: int) -> list[TrainingRun]:
        """Return all methods as tuned for the transient, cut short."""
        course, picked = self.course(name), self.chosen[name, m]
        tried = trials(course, self.points)
        return [
            race(course, method, tried[picked.trials[method][1]], self.seeds[0], budget_s=self.checked_s, points=20)
            for method in picked.trials
        ]

    def _same(self, name: str, m: int) -> Record:
        """Return how many numbers of a real run's record are those of its simulation."""
        races = self._checked(name, m)
        counterparts = simulate_together(races, runtime(m))
        real = run_training([replace(r, runtime=runtime(m)) for r in races], m=m, shape=None, scheduling="normal")
        pairs = [
            (value, other)
            for a, b in zip(real, counterparts, strict=True)
            for key in CURVE
            for value, other in _pairs(a[key], b[key])
        ]
        return {"m": m, "numbers": len(pairs), "equal": sum(value == other for value, other in pairs)}

    def _seconds(self, seed: int) -> Record:
        """Return real seconds to the transient target, of the digits with four workers."""
        name, m, _ = self.cells[1]
        course, picked = self.course(name), self.chosen[name, m]
        tried = trials(course, self.points)
        timed = (SYNCHRONOUS, picked.strongest[1], "gamma")
        races = [
            race(course, method, tried[picked.trials[method][1]], seed, budget_s=2 * picked.seconds[method][1] + 1)
            for method in timed
        ]
        slept = [replace(r, delay=Constant(DELAY_S), points=self.looks) for r in races]
        measured = run_training(slept, m=m, shape=None)
        return {
            "m": m,
            "races": [
                {"method": method, **_summary(record, course, curves=False), **_paced(record)}
                for method, record in zip(timed, measured, strict=True)
            ],
        }

    # -- what follows ------------------------------------------------------------------------------------
    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return real processes against their simulation, exactly; ratios, that no bound covers."""
        return rows(self, records)

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return speed-up against the target, losses against time, and what one common rate makes of it."""
        return figures(self, records)


def _pairs(one: Any, other: Any) -> list[tuple[Any, Any]]:
    if not isinstance(one, list):
        return [(one, other)]
    return list(zip(one, other, strict=True)) if len(one) == len(other) else [(one, other)]


def _summary(record: Record, course: Course, *, curves: bool) -> Record:
    times = [arrival(record["seconds"], record["losses"], target) for target in course.targets]
    summary: Record = {
        "times": [_short(t) if math.isfinite(t) else None for t in times],
        "last": _short(float(np.mean(record["losses"][-4:]))),
        "accuracy": record["accuracies"][-1],
        "took_s": _short(record["took_s"]),
        "diverged": record.get("diverged", False),
    }
    if curves:
        summary |= {key: [_short(x) for x in record[key]] for key in ("seconds", "losses")}
        summary["taus"] = record["taus"]
    return summary


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS_KEPT}g}")


def _paced(record: Record) -> Record:
    names = ("rounds", "steps_done", "took_s", "fenced_s", "mean_step_s", "overruns", "method", "scheduling")
    return {("transport" if name == "method" else name): record[name] for name in names}
