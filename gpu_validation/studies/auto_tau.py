"""Choosing tau without tau_0: the gradient retention rule against fixed tau, AdaComm and tau*, on real processes.

Fixed beforehand, in this file: the problems, their learning rates and halves, the ratios D/Y and the budgets, the
targets, the fixed taus, and AdaComm's tau_0s and interval.  The rule has no settings; its constants were fixed in a
simulation before any of these runs (``bounds.schedules.gradient_retention``).  The design half was there to find
mistakes of the implementation, the held-out half is run once.

A target is the loss that the synchronous run of the same seed has after ``targets`` local steps, taken from the course
of the smallest D/Y, for it does not depend on the clock.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import fmean, median
from typing import Any, Literal

import numpy as np

from bounds.runtime import ShiftedExponential
from bounds.schedules import AdaComm, Fixed, Schedule
from bounds.tau import tau_star

from ..judging.comparisons import goal_row, unjudged_row
from ..judging.intervals import Median, median_of, number_of, tail_of
from ..judging.iteration_time import smoothed, time_to_loss
from ..judging.plotting import LINES, PALETTE, categories, chart, style
from ..network import Shape
from ..workloads import Kink, LeNet, LogisticRegression, Quadratic, SmallNetwork, Workload
from ..workloads.data import Dirichlet
from .runs.spec import TrainingRun
from .runs.training import run_training
from .study import Comparison, Figure, Record, Study

# -- problems --------------------------------------------------------------------------------------------------------

WORKERS = 4
LONGEST = 512  # local steps of a round, for tau* as for the rule
AUTO, TAU_STAR = "auto", "tau*"
DESIGN, HELD_OUT = "design", "held-out"


@dataclass(frozen=True)
class Problem:
    """Parameters
    ----------
    step_s : seconds
        A local step lasts that much longer than on other problems, as a factor.
    half : str
        DESIGN or HELD_OUT.
    """

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

    Parameters
    ----------
    ratio : float
        Roughly, as the shape of the network makes it on two cores; what is reported is measured.
    step_s : float, seconds
        Y.
    delay_s : float, seconds
        Of the network, one way.
    budget : int
        Of a run, in Y.
    taus : tuple of int
        Fixed ones, 1 first.
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


@lru_cache(maxsize=64)
def theorem_2(workload: Workload, step_s: float, course: Course) -> int:
    """Return tau* for the budget, from 1 to 512."""
    constants = workload.constants()
    optimum = tau_star(
        gap=constants.gap,
        delay_s=course.ratio * step_s,
        eta=workload.eta,
        L=constants.L,
        sigma2=constants.sigma2,
        time_s=course.budget * step_s,
    )
    return LONGEST if optimum.integer is None else max(1, min(LONGEST, optimum.integer))


@dataclass(frozen=True)
class Design:
    """What is run on which problems and networks, and how times to the targets are read.

    Parameters
    ----------
    problems : tuple of str, optional
        By name.
    targets : tuple of int, optional
        Local steps of the synchronous run.
    tau_0s : tuple of int, optional
        Of AdaComm; the default one is ``default_tau_0``.
    interval : float, optional
        Its T_0, in shares of the budget.
    window : float, optional
        Of the smoothing, in the same unit.
    points : int, optional
        Losses of a run.
    jitter : float, optional
        Random part of a local step.
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

    @staticmethod
    def step_s(problem: Problem, course: Course) -> float:
        """Return mean duration of a local step."""
        return problem.step_factor * course.step_s

    def budget_s(self, problem: Problem, course: Course) -> float:
        """Return length of a run."""
        return course.budget * self.step_s(problem, course)


# -- rows ------------------------------------------------------------------------------------------------------------

SYNCHRONOUS = "tau = 1"
DEFAULT = "AdaComm, default tau_0"
TUNED, CHARGED = "AdaComm, tuned tau_0", "AdaComm, tuned tau_0, search charged"
SHOWN_METHODS = ("auto", TUNED, CHARGED, DEFAULT, "tau*", SYNCHRONOUS)
REGRET_GOAL, TAIL_GOAL = 1.25, 2.0
DEFAULT_GOAL, SYNCHRONOUS_GOAL = 0.9, 0.6
PROBE_GOAL = 0.025
SLOW_NETWORK = 4.0  # D/Y from which the ratio to synchronous training has a goal


@dataclass(frozen=True)
class Run:
    """The races of one problem on one course and seed, by method."""

    problem: str
    course: int
    seed: int
    races: dict[str, Record] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One problem, course and target.

    Parameters
    ----------
    times : dict of str to list of float
        Method -> seconds to the target, one a seed; infinite where the budget was too short.
    """

    problem: str
    half: str
    course: int
    target: int
    budget_s: float
    times: dict[str, list[float]]

    @property
    def best_fixed(self) -> str:
        """The fixed tau of the smallest median time, in hindsight."""
        names = [name for name in self.times if name.startswith("tau = ")]
        return min(names, key=lambda name: median(self.times[name]))

    def regret(self, method: str) -> float:
        """Return median time over the best fixed tau's."""
        return median(self.times[method]) / median(self.times[self.best_fixed])

    def ratio(self, other: str) -> float:
        """Return median time of the rule over another's, which counts as its budget where it did not arrive."""
        median_s, theirs = median(self.times["auto"]), min(median(self.times[other]), self.budget_s)
        return median_s / theirs


def cells(study: AutoTau, records: Sequence[Record]) -> list[Cell]:
    """Return all that the records allow, in which the best fixed tau reaches the target."""
    by_place: dict[tuple[str, int], list[Run]] = {}
    for run in study.runs(records):
        by_place.setdefault((run.problem, run.course), []).append(run)
    all_cells = []
    for (problem, course), placed in by_place.items():
        references = {run.seed: run for run in by_place.get((problem, 0), [])}
        usable = [run for run in placed if run.seed in references]
        for target in study.targets if usable else ():
            cell = _cell(study, problem, course, target, [(run, references[run.seed]) for run in usable])
            if math.isfinite(median(cell.times[cell.best_fixed])):
                all_cells.append(cell)
    return all_cells


def _cell(design: Design, problem: str, course: int, target: int, pairs: Sequence[tuple[Run, Run]]) -> Cell:
    budget_s = design.budget_s(PROBLEMS[problem], design.courses[course])
    window_s = design.window * budget_s
    times: dict[str, list[float]] = {}
    for run, reference in pairs:
        level = loss_after(reference.races[SYNCHRONOUS], target, design.window)
        for name, race in run.races.items():
            hit = time_to_loss(race["seconds"], race["losses"], level, window_s=window_s)
            times.setdefault(name, []).append(hit if hit <= budget_s else math.inf)
    times.update(_adacomm(design, times, budget_s))
    return Cell(problem, PROBLEMS[problem].half, course, target, budget_s, times)


def loss_after(race: Record, steps: int, window: float) -> float:
    """Return the smoothed loss of a run after so many local steps;

    Parameters
    ----------
    window : float
        In shares of its steps.
    """
    return float(smoothed(race["step"], race["losses"], steps, window_s=max(1.0, window * race["step"][-1])))


def _adacomm(design: Design, times: dict[str, list[float]], budget_s: float) -> dict[str, list[float]]:
    """Return AdaComm with the default tau_0, and with that of the smallest median time on the other seeds.

    Charged: with the search on one seed before it, in which every run ends at the target or with the budget.
    """
    grid = [times[f"AdaComm, tau_0 = {tau_0}"] for tau_0 in design.tau_0s]
    free, charged = [], []
    for i in range(len(grid[0])):
        others = [j for j in range(len(grid[0])) if j != i] or [i]
        chosen = min(grid, key=lambda times_of_tau: median(times_of_tau[j] for j in others))
        search = sum(min(times_of_tau[others[0]], budget_s) for times_of_tau in grid)
        free.append(chosen[i])
        charged.append(chosen[i] + search)
    return {DEFAULT: times[f"AdaComm, tau_0 = {design.default_tau_0}"], TUNED: free, CHARGED: charged}


def _regret_rows(half: str, mine: Sequence[Cell]) -> Iterable[Comparison]:
    for method in SHOWN_METHODS:
        regrets = [cell.regret(method) for cell in mine]
        goal = REGRET_GOAL if method == "auto" else None
        quantity = "regret: time to the target over the best fixed tau's, median"
        yield _row(method, half, quantity, median_of(regrets), goal)
        goal = TAIL_GOAL if method == "auto" else None
        yield _row(method, half, "regret, 90th percentile", tail_of(regrets, 0.9), goal)


def _ratio_rows(design: Design, half: str, mine: Sequence[Cell]) -> Iterable[Comparison]:
    against = [(DEFAULT, DEFAULT_GOAL, mine), (TUNED, None, mine), (CHARGED, None, mine), ("tau*", None, mine)]
    slow = [cell for cell in mine if design.courses[cell.course].ratio >= SLOW_NETWORK]
    against.append((SYNCHRONOUS, SYNCHRONOUS_GOAL, slow))
    for other, goal, chosen in against:
        if chosen:
            where = f", D/Y >= {SLOW_NETWORK:g}" if other == SYNCHRONOUS else ""
            ratios = median_of([cell.ratio(other) for cell in chosen])
            yield _row("auto", half, f"time to the target over that of {other}{where}, median", ratios, goal)


def _row(method: str, half: str, quantity: str, found: Median, goal: float | None) -> Comparison:
    rest, where = "; interval up to the largest", f"{half} half"
    return goal_row(found, goal, rest=rest, operator=method, workload=where, quantity=quantity)


def _loss_rows(design: Design, everything: Sequence[Run]) -> Iterable[Comparison]:
    """Return the loss at half the budget and at its end, over that of the best fixed tau there."""
    for share in (0.5, 1.0):
        excess = []
        for run in everything:
            budget_s = design.budget_s(PROBLEMS[run.problem], design.courses[run.course])
            end_s, window_s = share * budget_s, design.window * budget_s
            losses = {
                name: float(smoothed(race["seconds"], race["losses"], end_s, window_s=window_s))
                for name, race in run.races.items()
            }
            excess.append(losses["auto"] / min(loss for name, loss in losses.items() if name.startswith("tau = ")))
        if excess:
            quantity = f"loss at {share:g} of the budget over the least of the fixed taus, median over runs"
            yield _row("auto", "whole", quantity, median_of(excess), None)


def _cost_rows(everything: Sequence[Run]) -> Iterable[Comparison]:
    """Return rows of the share of the time that probes took; each was padded to a step."""
    autos = [run.races["auto"] for run in everything]
    shares = [race["probes"] * race["mean_step_s"] / race["took_s"] for race in autos]
    if shares:
        words, largest = "share of the time spent on probes", number_of(max(shares), len(shares))
        yield _row("auto", "whole", f"{words}, median over runs", median_of(shares), PROBE_GOAL)
        yield _row("auto", "whole", f"{words}, largest", largest, PROBE_GOAL)


def _diagnostic_rows(everything: Sequence[Run]) -> Iterable[Comparison]:
    """Return the loss jump and the decline at the end, by problem."""
    for problem in dict.fromkeys(run.problem for run in everything):
        races = [run.races["auto"] for run in everything if run.problem == problem]
        rules = [race["rule"] for race in races]
        waits = [race for race in races if race["rule"]["delays_s"]]
        over = [
            median(race["rule"]["delays_s"]) / median(race["rule"]["steps_s"]) / _fenced_ratio(race) for race in waits
        ]
        diagnostics: tuple[tuple[str, str, list[float]], ...] = (
            (
                "loss jump at the last averaging probed",
                "a diagnostic: above 0 the workers move towards different models",
                [rule["loss_jump"] for rule in rules if rule["loss_jump"] is not None],
            ),
            (
                "decline a at the end",
                "a measured share of the gradient, lost in one local step",
                [max(0.0, rule["lost"] / rule["fresh"]) for rule in rules if rule["fresh"] > 0],
            ),
            (
                "D/Y as the rule measured it, over D timed by itself/Y",
                "the averagings timed by themselves wait for nobody either",
                over,
            ),
        )
        for quantity, reason, values in diagnostics:
            if len(values) > 1:
                yield unjudged_row(values, reason, quantity=quantity, operator="auto", workload=problem)


def _fenced_ratio(race: Record) -> float:
    return fmean(race["fenced_s"]) / race["mean_step_s"]


# -- drawings --------------------------------------------------------------------------------------------------------

LARGEST_SHOWN = 20.0  # of the regrets; larger and infinite ones are drawn there


def _draw_regrets(found: Sequence[Cell]) -> Any:
    problems = list(dict.fromkeys(cell.problem for cell in found))

    def draw(ax: Any, half: str) -> None:
        half_cells = [cell for cell in found if cell.half == half]
        for x, method in enumerate(SHOWN_METHODS):
            values = np.minimum([cell.regret(method) for cell in half_cells], LARGEST_SHOWN)
            shifts = np.linspace(-0.25, 0.25, len(half_cells))
            for cell, value, shift in zip(half_cells, values, shifts, strict=True):
                first = x == 0 and cell is next(c for c in half_cells if c.problem == cell.problem)
                how = {**style(problems.index(cell.problem), "color", "marker"), "linestyle": "none", "markersize": 4}
                ax.plot(x + shift, value, **how, label=cell.problem if first else "")
            ax.plot([x - 0.35, x + 0.35], [np.median(values)] * 2, color="black", linewidth=1.5)
        ax.axhline(REGRET_GOAL, color="black", linestyle="--", linewidth=0.8)
        categories(ax, [name.replace(", ", ",\n") for name in SHOWN_METHODS], rotation=60)

    halves = list(dict.fromkeys(cell.half for cell in found))
    settings: dict[str, Any] = {"title": "{} half".format, "logs": "y", "plain": "y", "ylabel": "regret"}
    return chart(halves, draw, height=3.6, **settings)


def _draw_taus(design: Design, everything: Sequence[Run]) -> Any:
    """Draw one panel a network and half of the problems."""
    courses = sorted({run.course for run in everything})
    problems = list(dict.fromkeys(run.problem for run in everything))
    halves = [half for half in (problems[: len(problems) // 2], problems[len(problems) // 2 :]) if half]

    def draw(ax: Any, panel: tuple[list[str], int]) -> None:
        half, course = panel
        for i, problem in enumerate(half):
            race = next((r.races["auto"] for r in everything if (r.course, r.problem) == (course, problem)), None)
            if race is not None:
                how = {"color": PALETTE[i], "linestyle": LINES[i % len(LINES)], "linewidth": 1.2, "label": problem}
                ax.step(race["seconds"], race["taus"], where="pre", **how)
        for tau in design.courses[course].taus:
            ax.axhline(tau, color="grey", linestyle=":", linewidth=0.6)
        if course == courses[-1]:
            ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))

    settings: dict[str, Any] = {"x": "seconds", "y": "tau", "logs": "y", "plain": "y", "legend": False}
    settings["title"] = lambda panel: f"D/Y about {design.courses[panel[1]].ratio:g}"
    return chart([*itertools.product(halves, courses)], draw, columns=len(courses), height=2.8, **settings)


# -- the study -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AutoTau(Design, Study):
    """m ranks on a shaped network, steps padded to drawn durations; the races of a unit in one set of processes."""

    name = "auto-tau"
    description = "the rule that needs no tau_0 against fixed tau, AdaComm and tau*, at three ratios D/Y"
    minutes = 120
    processes = WORKERS
    measures_seconds = True

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield the fixed taus and then the rules of every run; the design half first."""
        halves = [[name for name in self.problems if PROBLEMS[name].half == half] for half in (DESIGN, HELD_OUT)]
        for names, seed in itertools.product(halves, self.seeds):
            for name, course in itertools.product(names, range(len(self.courses))):
                yield from ((kind, name, course, seed) for kind in ("fixed", "rules"))

    def measure_fixed(self, problem: str, course: int, seed: int) -> Record:
        """Train with the fixed taus."""
        return self._measure(PROBLEMS[problem], self.courses[course], seed, self.fixed)

    def measure_rules(self, problem: str, course: int, seed: int) -> Record:
        """Train with the rules."""
        return self._measure(PROBLEMS[problem], self.courses[course], seed, self.rules)

    def _measure(self, problem: Problem, course: Course, seed: int, rules: Callable[[Problem, Course], Any]) -> Record:
        """Return all races of a unit, one after the other on one network."""
        schedules = rules(problem, course)
        races = [self._race(problem, course, schedule, seed) for schedule in schedules.values()]
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

    def runs(self, records: Sequence[Record]) -> list[Run]:
        """Return the runs both of whose units are recorded."""
        by_key: dict[tuple[str, int, int], Run] = {}
        units = [(self.read(record["unit"])[1], record) for record in records]
        n_units = Counter(key for key, _ in units)
        for key, record in units:
            run = by_key.setdefault(key, Run(*key))
            run.races.update({race["name"]: race for race in record["races"]})
        return [run for key, run in by_key.items() if n_units[key] == 2]

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return regrets and ratios beside their goals; no theorem covers them, so that none decides."""
        all_cells, everything = cells(self, records), self.runs(records)
        rows: list[Comparison] = []
        for half in dict.fromkeys(cell.half for cell in all_cells):
            half_cells = [cell for cell in all_cells if cell.half == half]
            rows += [*_regret_rows(half, half_cells), *_ratio_rows(self, half, half_cells)]
        return [*rows, *_loss_rows(self, everything), *_cost_rows(everything), *_diagnostic_rows(everything)]

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return regrets by method, and tau over time."""
        all_cells, everything = cells(self, records), self.runs(records)
        if not all_cells:
            return []
        how = everything[0].races["auto"]
        wires = how["method"].rsplit("; ", 1)[0]  # the last part is the first network's delay
        delays = ", ".join(f"{1e3 * course.delay_s:g}" for course in self.courses)
        seeds = f"median of seeds {', '.join(map(str, self.seeds))}"
        regrets = (
            f"Measured: time to the target over that of the best fixed tau in hindsight, {seeds}; one mark a problem, "
            f"ratio D/Y and target, bar: their median. Regrets above {LARGEST_SHOWN:g}, or of runs that did not "
            "arrive, are drawn at the upper edge. Dashed: the goal for the rule's median. "
            f"{how['scheduling']}; {wires}; one-way delays of the three networks: {delays} ms, longer in proportion "
            "where steps are."
        )
        taus = "Measured: tau of the rule over time, one line a problem, the first seed. Dotted: the fixed taus."
        middle = median(cell.regret(AUTO) for cell in all_cells)
        finding = f"The rule takes {middle:.2f} times the time of the best fixed tau in the median"
        return [
            Figure(lambda: _draw_regrets(all_cells), regrets, finding=finding),
            Figure(lambda: _draw_taus(self, everything), taus),
        ]


UNUSED = ("bits", "accuracies", "gradient2", "schedule", "workload", "step_law")
PRESET = AutoTau()
