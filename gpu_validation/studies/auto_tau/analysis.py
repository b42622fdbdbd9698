"""What follows from the records of the ``auto-tau`` study: times to the targets, regrets, ratios, costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

import numpy as np

from ...records.storage import Record
from ...verdicts.comparisons import unjudged_row
from ...verdicts.intervals import Median, median_of
from ...verdicts.time_to_target import smoothed, time_to_loss
from ...verdicts.verdict import Comparison, Verdict
from ..unit import read_unit
from .problems import KINDS, PROBLEMS, Design

SYNCHRONOUS = "tau = 1"
DEFAULT = "AdaComm, default tau_0"
TUNED, CHARGED = "AdaComm, tuned tau_0", "AdaComm, tuned tau_0, search charged"
SHOWN_METHODS = ("auto", TUNED, CHARGED, DEFAULT, "tau*", SYNCHRONOUS)
REGRET_GOAL, TAIL_GOAL = 1.25, 2.0
DEFAULT_GOAL, SYNCHRONOUS_GOAL = 0.9, 0.6
PROBE_GOAL = 0.025
SLOW_NETWORK = 4.0  # D/Y from which the ratio to synchronous training has a goal
NO_THEOREM = "no theorem covers it"


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


def runs(records: Sequence[Record]) -> list[Run]:
    """Return the runs both of whose units are recorded."""
    by_key: dict[tuple[str, int, int], Run] = {}
    kinds: dict[tuple[str, int, int], int] = {}
    for record in records:
        unit = read_unit(record["unit"], KINDS)
        key = (unit.problem, unit.course, unit.seed)
        run = by_key.setdefault(key, Run(*key))
        run.races.update({race["name"]: race for race in record["races"]})
        kinds[key] = kinds.get(key, 0) + 1
    return [run for key, run in by_key.items() if kinds[key] == 2]


def cells(design: Design, records: Sequence[Record]) -> list[Cell]:
    """Return all that the records allow, in which the best fixed tau reaches the target."""
    by_place: dict[tuple[str, int], list[Run]] = {}
    for run in runs(records):
        by_place.setdefault((run.problem, run.course), []).append(run)
    all_cells = []
    for (problem, course), placed in by_place.items():
        references = {run.seed: run for run in by_place.get((problem, 0), [])}
        usable = [run for run in placed if run.seed in references]
        for target in design.targets if usable else ():
            cell = _cell(design, problem, course, target, [(run, references[run.seed]) for run in usable])
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


# -- rows ----------------------------------------------------------------------------------------------------
def rows(design: Design, records: Sequence[Record]) -> list[Comparison]:
    """Return each half's regrets, the rule against AdaComm and against tau = 1, losses; then costs and
    diagnostics.
    """
    all_cells, everything = cells(design, records), runs(records)
    rows: list[Comparison] = []
    for half in dict.fromkeys(cell.half for cell in all_cells):
        half_cells = [cell for cell in all_cells if cell.half == half]
        rows += [*_regret_rows(half, half_cells), *_ratio_rows(design, half, half_cells)]
    return [*rows, *_loss_rows(design, everything), *_cost_rows(everything), *_diagnostic_rows(everything)]


def _regret_rows(half: str, mine: Sequence[Cell]) -> Iterable[Comparison]:
    for method in SHOWN_METHODS:
        regrets = [cell.regret(method) for cell in mine]
        goal = REGRET_GOAL if method == "auto" else None
        yield _row(
            method, half, "regret: time to the target over the best fixed tau's, median", median_of(regrets), goal
        )
        tail = float(np.quantile(regrets, 0.9, method="inverted_cdf"))
        goal = TAIL_GOAL if method == "auto" else None
        quantity = "regret, 90th percentile"
        yield _row(method, half, quantity, Median(tail, (tail, max(regrets)), 0.0, len(regrets)), goal)


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
    beside = ""
    if goal is not None:
        beside = f"goal: at most {goal:g}, {'met' if found.value <= goal else 'missed'}; "
    interval = f"; order statistics at level {found.level:.4g}" if found.level else "; interval up to the largest"
    return Comparison(
        operator=method,
        workload=f"{half} half",
        quantity=quantity,
        measured=found.value,
        interval=found.interval,
        bound=None,
        side="upper",
        verdict=Verdict.OUT_OF_SCOPE,
        reason=f"{beside}{NO_THEOREM}{interval}",
        n=found.n,
        decides=False,
    )


def _loss_rows(design: Design, everything: Sequence[Run]) -> Iterable[Comparison]:
    """Return the loss at half the budget and at its end, over that of the best fixed tau there."""
    for share in (0.5, 1.0):
        excess = []
        for run in everything:
            budget_s = design.budget_s(PROBLEMS[run.problem], design.courses[run.course])
            losses = {
                name: float(
                    smoothed(race["seconds"], race["losses"], share * budget_s, window_s=design.window * budget_s)
                )
                for name, race in run.races.items()
            }
            fixed = [loss for name, loss in losses.items() if name.startswith("tau = ")]
            excess.append(losses["auto"] / min(fixed))
        if excess:
            quantity = f"loss at {share:g} of the budget over the least of the fixed taus, median over runs"
            yield _row("auto", "whole", quantity, median_of(excess), None)


def _cost_rows(everything: Sequence[Run]) -> Iterable[Comparison]:
    """Return what the probes took, of the whole time; each was padded to a step."""
    shares = [
        run.races["auto"]["probes"] * run.races["auto"]["mean_step_s"] / run.races["auto"]["took_s"]
        for run in everything
    ]
    if shares:
        share = median_of(shares)
        yield _row("auto", "whole", "share of the time spent on probes, median over runs", share, PROBE_GOAL)
        largest = Median(max(shares), (max(shares), max(shares)), 0.0, len(shares))
        yield _row("auto", "whole", "share of the time spent on probes, largest", largest, PROBE_GOAL)


def _diagnostic_rows(everything: Sequence[Run]) -> Iterable[Comparison]:
    """Return the loss jump and the decline at the end, by problem."""
    for problem in dict.fromkeys(run.problem for run in everything):
        rules = [run.races["auto"]["rule"] for run in everything if run.problem == problem]
        jumps = [rule["loss_jump"] for rule in rules if rule["loss_jump"] is not None]
        about = {"operator": "auto", "workload": problem}
        if len(jumps) > 1:
            reason = "a diagnostic: above 0 the workers move towards different models"
            yield unjudged_row(jumps, reason, quantity="loss jump at the last averaging probed", **about)
        declines = [max(0.0, rule["lost"] / rule["fresh"]) for rule in rules if rule["fresh"] > 0]
        if len(declines) > 1:
            reason = "a measured share of the gradient, lost in one local step"
            yield unjudged_row(declines, reason, quantity="decline a at the end", **about)
        ratios = [median(rule["delays_s"]) / median(rule["steps_s"]) for rule in rules if rule["delays_s"]]
        fenced = [
            _fenced_ratio(run) for run in everything if run.problem == problem and run.races["auto"]["rule"]["delays_s"]
        ]
        if len(ratios) > 1:
            relative = [ratio / other for ratio, other in zip(ratios, fenced, strict=True)]
            reason = "the averagings timed by themselves wait for nobody either"
            yield unjudged_row(
                relative, reason, quantity="D/Y as the rule measured it, over D timed by itself/Y", **about
            )


def _fenced_ratio(run: Run) -> float:
    race = run.races["auto"]
    return fmean(race["fenced_s"]) / race["mean_step_s"]
