"""What follows from the records of the ``auto-tau`` study: times to the targets, regrets, ratios, costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING

import numpy as np

from ..records import Comparison, Verdict
from ..rows import unjudged_row
from ..study import Record
from ..time_to_loss import Median, median_of, smoothed, time_to_loss

if TYPE_CHECKING:
    from .auto_tau import AutoTau

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

    times : method -> seconds to the target, one a seed; infinite where the budget was too short.
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
        """Median time over the best fixed tau's."""
        return median(self.times[method]) / median(self.times[self.best_fixed])

    def ratio(self, other: str) -> float:
        """Median time of the rule over another's, which counts as its budget where it did not arrive."""
        mine, theirs = median(self.times["auto"]), min(median(self.times[other]), self.budget_s)
        return mine / theirs


def runs(records: Sequence[Record]) -> list[Run]:
    """Those of which both units are there."""
    found: dict[tuple[str, int, int], Run] = {}
    kinds: dict[tuple[str, int, int], int] = {}
    for record in records:
        _, problem, course, seed = record["unit"].split(":")
        at = (problem, int(course), int(seed))
        run = found.setdefault(at, Run(*at))
        run.races.update({race["name"]: race for race in record["races"]})
        kinds[at] = kinds.get(at, 0) + 1
    return [run for at, run in found.items() if kinds[at] == 2]


def cells(study: AutoTau, records: Sequence[Record]) -> list[Cell]:
    """All that the records allow, in which the best fixed tau reaches the target."""
    by_place: dict[tuple[str, int], list[Run]] = {}
    for run in runs(records):
        by_place.setdefault((run.problem, run.course), []).append(run)
    found = []
    for (problem, course), mine in by_place.items():
        references = {run.seed: run for run in by_place.get((problem, 0), [])}
        usable = [run for run in mine if run.seed in references]
        for target in study.targets if usable else ():
            cell = _cell(study, problem, course, target, [(run, references[run.seed]) for run in usable])
            if math.isfinite(median(cell.times[cell.best_fixed])):
                found.append(cell)
    return found


def _cell(study: AutoTau, problem: str, course: int, target: int, pairs: Sequence[tuple[Run, Run]]) -> Cell:
    from .auto_tau import PROBLEMS

    budget_s = study.budget_s(PROBLEMS[problem], study.courses[course])
    window_s = study.window * budget_s
    times: dict[str, list[float]] = {}
    for run, reference in pairs:
        level = loss_after(reference.races[SYNCHRONOUS], target, study.window)
        for name, race in run.races.items():
            hit = time_to_loss(race["seconds"], race["losses"], level, window_s=window_s)
            times.setdefault(name, []).append(hit if hit <= budget_s else math.inf)
    times.update(_adacomm(study, times, budget_s))
    return Cell(problem, PROBLEMS[problem].half, course, target, budget_s, times)


def loss_after(race: Record, steps: int, window: float) -> float:
    """The smoothed loss of a run after so many local steps; window : in shares of its steps."""
    return float(smoothed(race["step"], race["losses"], steps, window_s=max(1.0, window * race["step"][-1])))


def _adacomm(study: AutoTau, times: dict[str, list[float]], budget_s: float) -> dict[str, list[float]]:
    """AdaComm with the default tau_0, and with that of the smallest median time on the other seeds.

    Charged: with the search on one seed before it, in which every run ends at the target or with the budget.
    """
    grid = [times[f"AdaComm, tau_0 = {tau_0}"] for tau_0 in study.tau_0s]
    free, charged = [], []
    for i in range(len(grid[0])):
        others = [j for j in range(len(grid[0])) if j != i] or [i]
        chosen = min(grid, key=lambda own: median(own[j] for j in others))
        search = sum(min(own[others[0]], budget_s) for own in grid)
        free.append(chosen[i])
        charged.append(chosen[i] + search)
    return {DEFAULT: times[f"AdaComm, tau_0 = {study.default_tau_0}"], TUNED: free, CHARGED: charged}


# -- rows ----------------------------------------------------------------------------------------------------
def rows(study: AutoTau, records: Sequence[Record]) -> list[Comparison]:
    """For each half: regrets, the rule against AdaComm and against tau = 1, losses; then costs and diagnostics."""
    found, everything = cells(study, records), runs(records)
    rows: list[Comparison] = []
    for half in dict.fromkeys(cell.half for cell in found):
        mine = [cell for cell in found if cell.half == half]
        rows += [*_regret_rows(half, mine), *_ratio_rows(study, half, mine)]
    return [*rows, *_loss_rows(study, everything), *_cost_rows(everything), *_diagnostic_rows(everything)]


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


def _ratio_rows(study: AutoTau, half: str, mine: Sequence[Cell]) -> Iterable[Comparison]:
    against = [(DEFAULT, DEFAULT_GOAL, mine), (TUNED, None, mine), (CHARGED, None, mine), ("tau*", None, mine)]
    slow = [cell for cell in mine if study.courses[cell.course].ratio >= SLOW_NETWORK]
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


def _loss_rows(study: AutoTau, everything: Sequence[Run]) -> Iterable[Comparison]:
    """The loss at half the budget and at its end, over that of the best fixed tau there."""
    from .auto_tau import PROBLEMS

    for share in (0.5, 1.0):
        excess = []
        for run in everything:
            budget_s = study.budget_s(PROBLEMS[run.problem], study.courses[run.course])
            losses = {
                name: float(
                    smoothed(race["seconds"], race["losses"], share * budget_s, window_s=study.window * budget_s)
                )
                for name, race in run.races.items()
            }
            fixed = [loss for name, loss in losses.items() if name.startswith("tau = ")]
            excess.append(losses["auto"] / min(fixed))
        if excess:
            quantity = f"loss at {share:g} of the budget over the least of the fixed taus, median over runs"
            yield _row("auto", "whole", quantity, median_of(excess), None)


def _cost_rows(everything: Sequence[Run]) -> Iterable[Comparison]:
    """What the probes took, of the whole time; each was padded to a step."""
    shares = [
        run.races["auto"]["probes"] * run.races["auto"]["mean_step_s"] / run.races["auto"]["took_s"]
        for run in everything
    ]
    if shares:
        found = median_of(shares)
        yield _row("auto", "whole", "share of the time spent on probes, median over runs", found, PROBE_GOAL)
        largest = Median(max(shares), (max(shares), max(shares)), 0.0, len(shares))
        yield _row("auto", "whole", "share of the time spent on probes, largest", largest, PROBE_GOAL)


def _diagnostic_rows(everything: Sequence[Run]) -> Iterable[Comparison]:
    """The loss jump and the decline at the end, by problem."""
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
            relative = [own / other for own, other in zip(ratios, fenced, strict=True)]
            reason = "the averagings timed by themselves wait for nobody either"
            yield unjudged_row(
                relative, reason, quantity="D/Y as the rule measured it, over D timed by itself/Y", **about
            )


def _fenced_ratio(run: Run) -> float:
    race = run.races["auto"]
    return fmean(race["fenced_s"]) / race["mean_step_s"]
