"""Choosing tau without tau_0: the gradient retention rule against fixed tau, AdaComm and tau*, on real processes.

Fixed beforehand, in this file: the problems, their learning rates and halves, the ratios D/Y and the budgets, the
targets, the fixed taus, and AdaComm's tau_0s and interval.  The rule has no settings; its constants were fixed in a
simulation before any of these runs (``bounds.schedules.gradient_retention``).  The design half was there to find
mistakes of the implementation, the held-out half is run once.

A target is the loss that the synchronous run of the same seed has after ``targets`` local steps, taken from the course
of the smallest D/Y, for it does not depend on the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bounds.runtime import ShiftedExponential
from bounds.schedules import AdaComm, Fixed, Schedule

from ...measurement.spec import TrainingRun
from ...measurement.training import run_training
from ...network import Shape
from ...records.storage import Record
from ...verdicts.verdict import Comparison
from ..study import Figure, Study
from ..unit import read_unit
from . import analysis, figures
from .problems import (
    AUTO,
    DESIGN,
    HELD_OUT,
    KINDS,
    LONGEST,
    PROBLEMS,
    TAU_STAR,
    WORKERS,
    Course,
    Design,
    FixedTaus,
    Problem,
    Rules,
    theorem_2,
)


@dataclass(frozen=True)
class AutoTau(Design, Study):
    """m ranks on a shaped network, steps padded to drawn durations; the races of a unit in one set of processes."""

    name = "auto-tau"
    description = "the rule that needs no tau_0 against fixed tau, AdaComm and tau*, at three ratios D/Y"
    minutes = 120
    processes = WORKERS
    measures_seconds = True

    def units(self) -> Sequence[str]:
        """Return KIND:PROBLEM:COURSE:SEED, the fixed taus and then the rules of every run; the design half first."""
        halves = [[name for name in self.problems if PROBLEMS[name].half == half] for half in (DESIGN, HELD_OUT)]
        return [
            str(kind(name, i, seed))
            for names in halves
            for seed in self.seeds
            for name in names
            for i in range(len(self.courses))
            for kind in (FixedTaus, Rules)
        ]

    def measure(self, unit: str) -> Record:
        """Return all races of a unit, one after the other on one network."""
        parts = read_unit(unit, KINDS)
        course, problem = self.courses[parts.course], PROBLEMS[parts.problem]
        schedules = self.fixed(problem, course) if isinstance(parts, FixedTaus) else self.rules(problem, course)
        races = [self._race(problem, course, schedule, parts.seed) for schedule in schedules.values()]
        measured = run_training(races, m=WORKERS, shape=Shape(delay_s=course.delay_s * problem.step_factor, mtu=9000))
        kept = [{key: value for key, value in record.items() if key not in UNUSED} for record in measured]
        return {"races": [{"name": method, **record} for method, record in zip(schedules, kept, strict=True)]}

    def fixed(self, problem: Problem, course: Course) -> dict[str, Schedule]:
        """Return the fixed taus, and Theorem 2's with the workload's constants, or estimates of them."""
        star = theorem_2(problem.workload, self.step_s(problem, course), course)
        return {**{f"tau = {tau}": Fixed(tau) for tau in course.taus}, TAU_STAR: Fixed(star)}

    def rules(self, problem: Problem, course: Course) -> dict[str, Schedule | Literal["auto"]]:
        """Return the rule, and AdaComm as published from every tau_0: saturation rule, eta to the power -1/2."""
        interval_s = self.interval * self.budget_s(problem, course)
        names = {tau_0: f"AdaComm, tau_0 = {tau_0}" for tau_0 in self.tau_0s}
        published = {
            name: AdaComm(tau_0, interval_s, gamma=0.5, eta_exponent=0.5, cap=LONGEST) for tau_0, name in names.items()
        }
        return {AUTO: "auto", **published}

    def _race(self, problem: Problem, course: Course, schedule: Schedule | Literal["auto"], seed: int) -> TrainingRun:
        step_s = self.step_s(problem, course)
        return TrainingRun(
            problem.workload,
            schedule,
            ShiftedExponential((1 - self.jitter) * step_s, self.jitter * step_s),
            seed,
            budget_s=self.budget_s(problem, course),
            decay=problem.decay,
            optimizer=problem.optimizer,
            points=self.points,
            fenced=2,
        )

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return regrets and ratios beside their goals; no theorem covers them, so that none decides."""
        return analysis.rows(self, records)

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return regrets by method, and tau over time."""
        return figures.figures(self, records)


UNUSED = ("bits", "accuracies", "gradient2", "schedule", "workload", "step_law")
PRESET = AutoTau()
