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
from functools import lru_cache
from typing import Literal

from bounds.runtime import ShiftedExponential
from bounds.schedules import AdaComm, Fixed, Schedule
from bounds.tau import tau_star

from ..network import Shape
from ..race import Race, run_races
from ..records import Comparison
from ..study import Figure, Record, Study
from ..workloads import Kink, LeNet, LogisticRegression, Quadratic, SmallNetwork, Workload
from ..workloads.data import Dirichlet
from . import auto_tau_figures, auto_tau_rows

WORKERS = 4
LONGEST = 512  # local steps of a round, for tau* as for the rule
AUTO, TAU_STAR = "auto", "tau*"
FIXED, RULES = "fixed", "rules"  # what a unit races
DESIGN, HELD_OUT = "design", "held-out"


@dataclass(frozen=True)
class Problem:
    """half : DESIGN or HELD_OUT.  step_s : a local step lasts that much longer than on other problems, as a factor."""

    half: str
    workload: Workload
    optimizer: str = "sgd"
    decay: tuple[tuple[int, float], ...] = ()
    step_factor: float = 1.0


PROBLEMS: dict[str, Problem] = {
    "quadratic": Problem(DESIGN, Quadratic(copies=5, noise=0.08, eta=0.08)),
    "logistic": Problem(DESIGN, LogisticRegression()),
    "mlp": Problem(DESIGN, SmallNetwork()),
    "mlp, Dirichlet(.5)": Problem(DESIGN, SmallNetwork(split=Dirichlet(WORKERS, alpha=0.5))),
    "mlp, momentum": Problem(DESIGN, SmallNetwork(eta=0.03), optimizer="momentum"),
    "kink": Problem(HELD_OUT, Kink.hard(tau=16, d=100, noise=2.0, eta=0.08)),
    "logistic, Dirichlet(.2)": Problem(HELD_OUT, LogisticRegression(split=Dirichlet(WORKERS, alpha=0.2))),
    "lenet": Problem(HELD_OUT, LeNet(), step_factor=5 / 3),
    "mlp, decay": Problem(HELD_OUT, SmallNetwork(), decay=((120, 0.1),)),
    "mlp, Adam": Problem(HELD_OUT, SmallNetwork(eta=0.01), optimizer="adam"),
}


@dataclass(frozen=True)
class Course:
    """One D/Y.

    ratio : roughly, as the shape of the network makes it on two cores; what is reported is measured.
    step_s : Y.  delay_s : of the network, one way.  budget : of a run, in Y.  taus : fixed ones, 1 first.
    """

    ratio: float
    step_s: float
    delay_s: float
    budget: int
    taus: tuple[int, ...]


COURSES = (
    Course(0.5, 6e-3, 3e-4, 450, (1, 2, 5, 15)),
    Course(4.0, 4e-3, 6.5e-3, 1300, (1, 4, 12, 36, 108)),
    Course(20.0, 3e-3, 28e-3, 2200, (1, 5, 20, 60, 180)),
)


@dataclass(frozen=True)
class AutoTau(Study):
    """m ranks on a shaped network, steps padded to drawn durations; the races of a unit in one set of processes.

    problems : by name.  targets : local steps of the synchronous run.  tau_0s : of AdaComm; the default one is
    ``default_tau_0``.  interval : its T_0, in shares of the budget.  window : of the smoothing, likewise.
    points : losses of a run.  jitter : random part of a local step.
    """

    problems: tuple[str, ...] = tuple(PROBLEMS)
    courses: tuple[Course, ...] = COURSES
    targets: tuple[int, ...] = (100, 200)
    seeds: tuple[int, ...] = (20, 21, 22)
    tau_0s: tuple[int, ...] = (4, 16, 64)
    default_tau_0: int = 16
    interval: float = 1 / 16
    window: float = 1 / 50
    points: int = 100
    jitter: float = 0.1

    name = "auto-tau"
    description = "the rule that needs no tau_0 against fixed tau, AdaComm and tau*, at three ratios D/Y"
    minutes = 120
    processes = WORKERS

    def units(self) -> Sequence[str]:
        """KIND:PROBLEM:COURSE:SEED, the fixed taus and then the rules of every run; the design half first."""
        halves = [[name for name in self.problems if PROBLEMS[name].half == half] for half in (DESIGN, HELD_OUT)]
        return [
            f"{kind}:{name}:{i}:{seed}"
            for names in halves
            for seed in self.seeds
            for name in names
            for i in range(len(self.courses))
            for kind in (FIXED, RULES)
        ]

    def measure(self, unit: str) -> Record:
        """All races of a unit, one after the other on one network."""
        kind, name, i, seed = unit.split(":")
        course, problem = self.courses[int(i)], PROBLEMS[name]
        schedules = self.fixed(problem, course) if kind == FIXED else self.rules(problem, course)
        races = [self._race(problem, course, schedule, int(seed)) for schedule in schedules.values()]
        found = run_races(races, m=WORKERS, shape=Shape(delay_s=course.delay_s * problem.step_factor, mtu=9000))
        kept = [{key: value for key, value in record.items() if key not in UNUSED} for record in found]
        return {"races": [{"name": own, **record} for own, record in zip(schedules, kept, strict=True)]}

    def fixed(self, problem: Problem, course: Course) -> dict[str, Schedule]:
        """The fixed taus, and Theorem 2's with the workload's constants, or estimates of them."""
        star = theorem_2(problem.workload, self.step_s(problem, course), course)
        return {**{f"tau = {tau}": Fixed(tau) for tau in course.taus}, TAU_STAR: Fixed(star)}

    def rules(self, problem: Problem, course: Course) -> dict[str, Schedule | Literal["auto"]]:
        """The rule, and AdaComm as published from every tau_0: saturation rule, eta to the power -1/2."""
        interval_s = self.interval * self.budget_s(problem, course)
        names = {tau_0: f"AdaComm, tau_0 = {tau_0}" for tau_0 in self.tau_0s}
        published = {
            name: AdaComm(tau_0, interval_s, gamma=0.5, eta_exponent=0.5, cap=LONGEST) for tau_0, name in names.items()
        }
        return {AUTO: "auto", **published}

    def _race(self, problem: Problem, course: Course, schedule: Schedule | Literal["auto"], seed: int) -> Race:
        step_s = self.step_s(problem, course)
        return Race(
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

    @staticmethod
    def step_s(problem: Problem, course: Course) -> float:
        """Mean duration of a local step."""
        return problem.step_factor * course.step_s

    def budget_s(self, problem: Problem, course: Course) -> float:
        """Length of a run."""
        return course.budget * self.step_s(problem, course)

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Regrets and ratios beside their goals; no theorem covers them, so that none decides."""
        return auto_tau_rows.rows(self, records)

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Regrets by method, and tau over time."""
        return auto_tau_figures.figures(self, records)


UNUSED = ("bits", "accuracies", "gradient2", "schedule", "workload", "step_law")


@lru_cache(maxsize=64)
def theorem_2(workload: Workload, step_s: float, course: Course) -> int:
    """tau* for the budget, from 1 to 512."""
    known = workload.constants()
    found = tau_star(
        gap=known.gap,
        delay_s=course.ratio * step_s,
        eta=workload.eta,
        L=known.L,
        sigma2=known.sigma2,
        time_s=course.budget * step_s,
    )
    return LONGEST if found.integer is None else max(1, min(LONGEST, found.integer))


PRESET = AutoTau()
