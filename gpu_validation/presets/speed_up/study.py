"""The study: tuning and reported runs on a simulated clock, and real processes that are held against them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bounds.runtime import Constant

from ...lockstep import rehearse_together
from ...race import Race, run_races
from ...records import Comparison
from ...seeds import derived
from ...study import Figure, Record, Study
from ...time_to_loss import arrival
from .analysis import Choice, cells, choose, rows
from .figures import figures
from .problems import DELAY_S, DIGITS, SHARDS, SYNCHRONOUS, TEXT, Course, methods, race, runtime, trials

CURVE = ("seconds", "step", "taus", "bits", "losses", "accuracies", "rounds", "steps_done", "took_s")
DIGITS_KEPT = 5  # of a recorded number


@dataclass(frozen=True)
class SpeedUp(Study):
    """Time to a loss for tau = 1, 5, 20, 100 and the rules of AdaComm, each tuned with the same effort.

    courses : by name.  cells : (course, workers, whether the methods are those whose rate decays).
    points : of the search, the same number for every method.  tuning, seeds : every number is chosen on the first
    and reported from the others.  looks : losses of a run, evenly in the logarithm of time.
    checked_s : simulated seconds of the real processes that must repeat a rehearsal.  timed : seeds of the runs whose
    seconds are real: padded steps, and the delay slept.
    """

    courses: tuple[tuple[str, Course], ...] = (
        ("digits", DIGITS),
        ("text", TEXT),
        ("decayed", DIGITS),
        ("shards", SHARDS),
    )
    cells: tuple[tuple[str, int, bool], ...] = (
        ("digits", 2, False),
        ("digits", 4, False),
        ("digits", 8, False),
        ("text", 4, False),
        ("decayed", 4, True),
        ("shards", 4, False),
    )
    points: int = 8
    tuning: tuple[int, ...] = (0,)
    seeds: tuple[int, ...] = (10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
    looks: int = 60
    checked_s: float = 2.0
    timed: tuple[int, ...] = (100, 101, 102)
    chosen: dict[str, Choice] = field(default_factory=dict, repr=False, compare=False)

    name = "speed-up"
    description = "time to a loss, every schedule tuned alike: fixed tau and AdaComm, m = 2, 4, 8, digits and text"
    minutes = 15
    processes = 4

    def seeded(self, seed: int) -> SpeedUp:
        """Also with other seeds of the timed runs."""
        found = super().seeded(seed)
        assert isinstance(found, SpeedUp)
        return replace(found, timed=tuple(derived(seed, own) for own in self.timed))

    def course(self, name: str) -> Course:
        """By its name."""
        return dict(self.courses)[name]

    def units(self) -> Sequence[str]:
        """For every cell tune:COURSE:M:SEED, report:COURSE:M:SEED and same:COURSE:M; then seconds:SEED."""
        found = []
        for name, m, _ in self.cells:
            found += [f"tune:{name}:{m}:{seed}" for seed in self.tuning]
            found += [f"report:{name}:{m}:{seed}" for seed in self.seeds]
            found.append(f"same:{name}:{m}")
        return [*found, *(f"seconds:{seed}" for seed in self.timed)]

    def informed(self, records: Sequence[Record], folder: Path) -> SpeedUp:
        """With the trials that the tuning records choose."""
        return replace(self, chosen={cell.key: choose(cell) for cell in cells(self, records)})

    # -- one unit ----------------------------------------------------------------------------------------
    def measure(self, unit: str) -> Record:
        """By the kind of unit."""
        kind, *what = unit.split(":")
        if kind == "seconds":
            return self._seconds(int(what[0]))
        name, m = what[0], int(what[1])
        if kind == "same":
            return self._same(name, m)
        decayed = next(d for course, workers, d in self.cells if (course, workers) == (name, m))
        every = range(self.points)
        if kind == "tune":
            wanted = [(method, i) for method in methods(decayed) for i in every]
        else:
            picked = self.chosen[f"{name}:{m}"]
            wanted = [(method, i) for method in methods(decayed) for i in sorted(set(picked.trials[method]))]
        return {"m": m, "races": self._simulated(name, m, int(what[2]), wanted, curves=kind == "report")}

    def _simulated(
        self, name: str, m: int, seed: int, wanted: Sequence[tuple[str, int]], *, curves: bool
    ) -> list[Record]:
        course = self.course(name)
        tried = trials(course, self.points)
        races = [race(course, method, tried[i], seed) for method, i in wanted]
        looks = np.geomspace(course.budget_s / 100, course.budget_s, self.looks).tolist()
        last = course.targets[-1]
        found = rehearse_together(
            races, runtime(m), looks=looks, until=lambda t, losses: math.isfinite(arrival(t, losses, last))
        )
        return [
            {"method": method, "trial": i, **_summary(record, course, curves=curves)}
            for (method, i), record in zip(wanted, found, strict=True)
        ]

    def _checked(self, name: str, m: int) -> list[Race]:
        """All methods as tuned for the transient, cut short."""
        course, picked = self.course(name), self.chosen[f"{name}:{m}"]
        tried = trials(course, self.points)
        return [
            race(course, method, tried[picked.trials[method][1]], self.seeds[0], budget_s=self.checked_s, points=20)
            for method in picked.trials
        ]

    def _same(self, name: str, m: int) -> Record:
        """How many numbers of a real run's record are those of its rehearsal."""
        races = self._checked(name, m)
        twins = rehearse_together(races, runtime(m))
        real = run_races([replace(r, runtime=runtime(m)) for r in races], m=m, shape=None, scheduling="normal")
        pairs = [
            (one, other)
            for a, b in zip(real, twins, strict=True)
            for key in CURVE
            for one, other in _pairs(a[key], b[key])
        ]
        return {"m": m, "numbers": len(pairs), "equal": sum(one == other for one, other in pairs)}

    def _seconds(self, seed: int) -> Record:
        """Real seconds to the transient target, of the digits with four workers."""
        name, m, _ = self.cells[1]
        course, picked = self.course(name), self.chosen[f"{name}:{m}"]
        tried = trials(course, self.points)
        timed = (SYNCHRONOUS, picked.strongest[1], "gamma")
        races = [
            race(course, method, tried[picked.trials[method][1]], seed, budget_s=2 * picked.seconds[method][1] + 1)
            for method in timed
        ]
        slept = [replace(r, delay=Constant(DELAY_S), points=self.looks) for r in races]
        found = run_races(slept, m=m, shape=None)
        return {
            "m": m,
            "races": [
                {"method": method, **_summary(record, course, curves=False), **_paced(record)}
                for method, record in zip(timed, found, strict=True)
            ],
        }

    # -- what follows ------------------------------------------------------------------------------------
    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Real processes against rehearsals, exactly; ratios, that no bound covers."""
        return rows(self, records)

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Speed-up against the target, losses against time, and what one common rate makes of it."""
        return figures(self, records)


def _pairs(one: Any, other: Any) -> list[tuple[Any, Any]]:
    if not isinstance(one, list):
        return [(one, other)]
    return list(zip(one, other, strict=True)) if len(one) == len(other) else [(one, other)]


def _summary(record: Record, course: Course, *, curves: bool) -> Record:
    times = [arrival(record["seconds"], record["losses"], target) for target in course.targets]
    found: Record = {
        "times": [_short(t) if math.isfinite(t) else None for t in times],
        "last": _short(float(np.mean(record["losses"][-4:]))),
        "accuracy": record["accuracies"][-1],
        "took_s": _short(record["took_s"]),
        "diverged": record.get("diverged", False),
    }
    if curves:
        found |= {key: [_short(x) for x in record[key]] for key in ("seconds", "losses")}
        found["taus"] = record["taus"]
    return found


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS_KEPT}g}")


def _paced(record: Record) -> Record:
    names = ("rounds", "steps_done", "took_s", "fenced_s", "mean_step_s", "overruns", "method", "scheduling")
    return {("transport" if name == "method" else name): record[name] for name in names}
