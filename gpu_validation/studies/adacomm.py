"""AdaComm against fixed tau, all at one learning rate: the loss against the wall clock, on real processes.

Nobody's rate is tuned here, so that ratios flatter local steps; the study ``speed-up`` tunes every schedule alike.

After Wang & Joshi (arXiv:1810.08313), on the bundled digits.  Fixed beforehand, in this file: the workloads and their
learning rates, the law of a local step, the network, the budget of seconds, and the target: the smoothed loss of the
synchronous run of the same seed at the end of its budget.  The first tau and the interval T_0 of AdaComm are chosen on
tuning seeds, by the median time to the target under the saturation rule; all other numbers come from other seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from bounds import AssumptionViolated, Bound, theorems
from bounds.runtime import ShiftedExponential
from bounds.runtime.law import Law
from bounds.schedules import AdaComm, Fixed, Schedule
from bounds.theorems.local_sgd import schedule_sums

from ..judging.comparisons import NO_RANGE, mean_row, median_row, unjudged_row
from ..judging.intervals import Median, median_of
from ..judging.iteration_time import seconds_row, smoothed, time_to_loss
from ..judging.plotting import (
    PALETTE,
    canvas,
    categories,
    chart,
    error_bars,
    legend_below,
    plain_ticks,
    style,
    ticks_at,
)
from ..network import Shape
from ..workloads import LeNet, LogisticRegression, SmallNetwork, Workload
from .runs.spec import TrainingRun
from .runs.training import run_training
from .study import Comparison, Figure, Record, Study

# -- courses ---------------------------------------------------------------------------------------------------------

SYNCHRONOUS = 1
CONSTANT, DECAYED = "constant", "decayed"
CROWD = "crowd"  # the course for several numbers of workers
GOAL = 3.0
GAMMA = 0.5  # of the saturation rule, as published


@dataclass(frozen=True)
class Course:
    """What is trained on, and for how long.

    Parameters
    ----------
    step : Law
        Law of a local step, of mean Y.
    shape : Shape or None
        Of a network on which an averaging takes about 4 Y at m = 4; None takes the loopback.
    decay : tuple of (int, float)
        (local step, factor of the learning rate) pairs of the decayed runs.
    """

    workload: Workload
    step: Law
    shape: Shape | None
    budget_s: float
    decay: tuple[tuple[int, float], ...]


NETWORK = Course(
    SmallNetwork(),
    ShiftedExponential(2e-3, 5e-4),
    Shape(rate_bit_per_s=1e8, delay_s=2.4e-3, jitter_s=2e-3, mtu=9000),
    budget_s=4.0,
    decay=((190, 0.1),),
)
CONVOLUTIONS = Course(
    LeNet(),
    ShiftedExponential(5e-3, 1e-3),
    Shape(rate_bit_per_s=1e8, delay_s=4.4e-3, jitter_s=3e-3, mtu=9000),
    budget_s=6.0,
    decay=((125, 0.1),),
)
CROWDED = Course(  # slow enough for eight ranks on two cores
    SmallNetwork(),
    ShiftedExponential(7e-3, 1e-3),
    Shape(rate_bit_per_s=1e8, delay_s=9e-3, jitter_s=5e-3, mtu=9000),
    budget_s=5.0,
    decay=(),
)


@dataclass(frozen=True)
class Proof:
    """Convex runs with known constants, short steps and so few local ones that Theorem 3 covers the capped rule."""

    workload: LogisticRegression = LogisticRegression(eta=0.02)  # noqa: RUF009  frozen
    steps: int = 100
    tau_0: int = 8
    interval_s: float = 0.12


@dataclass(frozen=True)
class Design:
    """What is run, with how many workers, and which seeds tune.

    Parameters
    ----------
    courses : tuple of (str, Course), optional
        By name.
    crowded : Course, optional
        What is run with the numbers of workers in ``crowds``, at the fixed ``crowd_taus`` and as tuned on the first
        course.
    taus : tuple of int, optional
        Fixed ones.
    tau_0s : tuple of int, optional
        What is tried on the tuning seeds; T_0 in shares of the budget, so that tau is chosen a few times before
        the target.
    intervals : tuple of float, optional
        What is tried on the tuning seeds; T_0 in shares of the budget, so that tau is chosen a few times before
        the target.
    points : int, optional
        Losses of a run.
    window : float, optional
        Of the smoothing, in shares of the budget.
    """

    courses: tuple[tuple[str, Course], ...] = (("network", NETWORK), ("lenet", CONVOLUTIONS))
    m: int = 4
    crowded: Course = CROWDED
    crowds: tuple[int, ...] = (2, 4, 8)
    crowd_taus: tuple[int, ...] = (SYNCHRONOUS, 20)
    taus: tuple[int, ...] = (SYNCHRONOUS, 5, 20, 100)
    tau_0s: tuple[int, ...] = (20, 50, 100)
    intervals: tuple[float, ...] = (1 / 16, 1 / 8)
    tuning: tuple[int, ...] = (0, 1, 2)
    seeds: tuple[int, ...] = (10, 11, 12, 13, 14)
    points: int = 80
    window: float = 1 / 40
    proof: Proof = Proof()

    def course(self, name: str) -> Course:
        """Return the course that units and groups call so."""
        return self.crowded if name == CROWD else dict(self.courses)[name]

    def budget_s(self, name: str) -> float:
        """Return the seconds of a run on a course."""
        return self.course(name).budget_s


# -- rows ------------------------------------------------------------------------------------------------------------

ESTIMATED = "Theorem 1 asks for L and sigma2 that hold for all x; for a network they can only be estimated"


@dataclass(frozen=True)
class TimeToTarget:
    """When one run came to the target of its seed.

    Parameters
    ----------
    seconds : float
        Infinite if it did not.
    ratio : float
        The synchronous run's seconds over these; 0 if it did not.
    accuracy : float or None
        On held-out data, of the averaged model at that time or else at the end.
    """

    name: str
    seconds: float
    ratio: float
    accuracy: float | None


@dataclass(frozen=True)
class Group:
    """Runs that differ in schedule and seed alone.

    Parameters
    ----------
    hits
        By schedule, one a seed; the synchronous one first.
    """

    course: str
    rate: str
    m: int
    races: dict[str, list[Record]]
    times_to_target: dict[str, list[TimeToTarget]]

    @property
    def title(self) -> str:
        """In words."""
        return f"{self.course}, {self.rate} rate, m = {self.m}"

    def speedup(self, name: str) -> Median:
        """Return how many times faster than the synchronous run, over the seeds."""
        return median_of([hit.ratio for hit in self.times_to_target[name]])

    @property
    def best_fixed(self) -> str:
        """The fixed tau of the largest median."""
        fixed = [name for name in self.times_to_target if name.startswith("tau")]
        return max(fixed, key=lambda name: self.speedup(name).value)


def times_to_target(unit: Record, budget_s: float, window: float) -> list[TimeToTarget]:
    """Return them of a unit's runs; the first, synchronous one gives the target, its smoothed loss at the budget."""
    synchronous, window_s = unit["races"][0], window * budget_s
    target = float(smoothed(synchronous["seconds"], synchronous["losses"], budget_s, window_s=window_s))
    times = [time_to_loss(r["seconds"], r["losses"], target, window_s=window_s) for r in unit["races"]]
    times[0] = min(times[0], budget_s)  # where the target was taken, should no corner of the curve be as low
    return [
        TimeToTarget(race["name"], seconds, _ratio(times[0], seconds), _accuracy(race, seconds))
        for race, seconds in zip(unit["races"], times, strict=True)
    ]


def _ratio(synchronous_s: float, seconds: float) -> float:
    """Return 1 where all begin at the target, because the synchronous run learnt nothing."""
    return 1.0 if seconds == synchronous_s else synchronous_s / seconds


def _accuracy(race: Record, at: float) -> float | None:
    accuracies: list[float | None] = race["accuracies"]
    return next((a for t, a in zip(race["seconds"], accuracies, strict=True) if t >= at), accuracies[-1])


def groups(
    units: Iterable[tuple[tuple[str, str], Record]], budget_s: Callable[[str], float], window: float
) -> list[Group]:
    """Return the reported runs, in order.

    Parameters
    ----------
    units : iterable of ((str, str), Record)
        Names of the course and of the rate's course, and what was measured.
    budget_s : callable
        Seconds of a run, by the name of its course.
    window : float
        Of the smoothing, in shares of the budget.
    """
    by_setting: dict[tuple[str, str, int], Group] = {}
    for names, record in units:
        setting = (*names, record["m"])
        group = by_setting.setdefault(setting, Group(*setting, {}, {}))
        for race, hit in zip(record["races"], times_to_target(record, budget_s(group.course), window), strict=True):
            group.races.setdefault(hit.name, []).append(race)
            group.times_to_target.setdefault(hit.name, []).append(hit)
    return list(by_setting.values())


# -- what is reported --------------------------------------------------------------------------------------------
def ratio_rows(group: Group) -> Iterable[Comparison]:
    """Return how many times faster than the synchronous run, and than the best fixed tau."""
    best = group.best_fixed
    for name in list(group.times_to_target)[1:]:
        speedup = group.speedup(name)
        quantity = "time to the synchronous run's last loss, times faster"
        yield median_row(name, speedup, _beside(group), workload=group.title, quantity=quantity)
        if not name.startswith("tau"):
            pairs = zip(group.times_to_target[best], group.times_to_target[name], strict=True)
            against = median_of([hit.ratio / other.ratio if other.ratio else float("inf") for other, hit in pairs])
            quantity = f"the same against the best fixed tau, {best}"
            reason = "the best fixed tau was found on the same seeds"
            yield median_row(name, against, reason, workload=group.title, quantity=quantity)


def _beside(group: Group) -> str:
    best = group.speedup(group.best_fixed)
    low, high = best.interval
    return (
        f"reported beside the goal of {GOAL:g} for AdaComm: no bound covers it; best fixed: {group.best_fixed}, "
        f"{best.value:.3g} [{low:.3g}, {high:.3g}]"
    )


def end_rows(group: Group) -> Iterable[Comparison]:
    """Return losses at the end, and held-out accuracies at the target."""
    for name, races in group.races.items():
        about: dict[str, Any] = {"operator": name, "workload": group.title}
        yield unjudged_row([r["losses"][-1] for r in races], ESTIMATED, quantity="loss at the end", **about)
        ends = [hit.accuracy for hit in group.times_to_target[name] if hit.accuracy is not None]
        if ends:
            reason = "no theorem speaks of held-out data"
            yield unjudged_row(ends, reason, quantity="held-out accuracy at the target, or else at the end", **about)


def _seconds_rows(group: Group, step: Law) -> Iterable[Comparison]:
    for name, races in group.races.items():
        bounds = [predicted_seconds(race, step, group.m) for race in races]
        machine = f"{races[0]['scheduling']}; {races[0]['method']}"
        yield seconds_row(races, bounds, machine, operator=name, workload=group.title)
    fenced = [fmean(r["fenced_s"]) / step.mean_s for r in next(iter(group.races.values()))]
    reason = "set beforehand by the network's shape, to about 4 at m = 4"
    yield unjudged_row(fenced, reason, operator="", workload=group.title, quantity="D/Y")


def predicted_seconds(race: Record, step: Law, m: int) -> float:
    """Return seconds per iteration by the runtime model, for the rounds that were made: E max of the mean of Y, and
    D/tau.
    """
    delay_s = fmean(race["fenced_s"])
    total = sum(n * (tau * step.expected_max(m=m, tau=tau) + delay_s) for tau, n in race["rounds"])
    return total / race["steps_done"]


# -- what is proved ----------------------------------------------------------------------------------------------
def _theorem_rows(design: Design, proofs: Sequence[Record], false_alarm: float) -> Iterable[Comparison]:
    constants, eta = design.proof.workload.constants(), design.proof.workload.eta
    common = {"L": constants.L, "sigma2": constants.sigma2, "gap": constants.gap, "m": design.m}
    names = [race["name"] for race in proofs[0]["races"]]
    fixed = [name for name in names if name.startswith("tau")]
    level = false_alarm / (2 * len(fixed) + len(names) - len(fixed))
    for i, name in enumerate(names):
        races = [unit["races"][i] for unit in proofs]
        about: dict[str, Any] = {"operator": name, "workload": f"logistic, eta L = {eta * constants.L:.3g}"}
        if name not in fixed:
            yield _variable_row(races, eta, common, level, about)
            continue
        arguments = {**common, "eta": eta, "tau": races[0]["rounds"][0][0], "K": races[0]["steps_done"]}
        means = [fmean(race["gradient2"]) for race in races]
        for bound in (theorems.pasgd_iterations, theorems.pasgd_convex):
            yield _bounded_row(bound, arguments, means, level, about)


def _bounded_row(
    bound: Bound, at: dict[str, float], means: Sequence[float], level: float, about: dict[str, Any]
) -> Comparison:
    about = {**about, "quantity": "squared gradient norm, average over steps", "theorem": bound.name}
    try:
        value = bound(**at)
    except AssumptionViolated as violated:
        return unjudged_row(means, str(violated), **about)
    return mean_row(means, value, "upper", level=level, **about)


def _variable_row(
    races: Sequence[Record], eta: float, common: dict[str, float], level: float, about: dict[str, Any]
) -> Comparison:
    """Compare the sums of Theorem 3, also where tau depends on what happened before: their difference is at most 0."""
    bound, excess = theorems.pasgd_variable, []
    about = {**about, "quantity": "sum of eta |grad F|^2, less the right side of Theorem 3", "theorem": bound.name}
    weighted = [eta * sum(race["gradient2"]) for race in races]
    for race, left in zip(races, weighted, strict=True):
        taus = [tau for tau, n in race["rounds"] for _ in range(n)]
        sums = schedule_sums([eta] * len(taus), taus, L=common["L"])
        try:
            excess.append(left - bound(**common, **sums) * sums["sum_eta"])
        except AssumptionViolated as violated:
            return unjudged_row(weighted, str(violated), **{**about, "quantity": "sum of eta |grad F|^2"})
    return unjudged_row(excess, NO_RANGE, **about)


# -- drawings --------------------------------------------------------------------------------------------------------

GRID = 200  # points of a drawn curve

Styles = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Setting:
    """What the captions say of the runs.

    Parameters
    ----------
    window : float
        Of the smoothing, in shares of the budget.
    seeds : sequence of int
        One run each.
    where : str
        Data and machine, in sentences.
    clock : str, optional
        Label of the time axis.
    """

    budget_s: Callable[[str], float]
    window: float
    seeds: Sequence[int]
    where: str
    clock: str = "seconds"

    @property
    def runs(self) -> str:
        """The seeds in words."""
        return f"seed{'s' * (len(self.seeds) > 1)} {', '.join(map(str, self.seeds))}"


def figures(found: Sequence[Group], setting: Setting) -> list[Figure]:
    """Return the figures for which there are runs."""
    trained, crowd = [g for g in found if g.course != CROWD], [g for g in found if g.course == CROWD]
    styles, drawn = _styles(found), []
    for rate in dict.fromkeys(g.rate for g in trained):
        caption = (
            f"Measured, {rate} learning rate, {setting.runs}. Above: training loss of the averaged model, a mean over "
            f"the last {setting.window:.3g} of the budget; line: median over the seeds, band: from the smallest to the "
            "largest. Cross: median time at which the synchronous run's last loss is reached. Below: held-out "
            f"accuracy, median. {setting.where}"
        )
        drawn.append(Figure(partial(_draw_curves, setting, [g for g in trained if g.rate == rate], styles), caption))
    if trained:
        caption = f"Measured: tau of AdaComm's rules over time, {setting.runs}, one line each. {setting.where}"
        drawn.append(Figure(partial(_draw_taus, setting, trained, styles), caption))
        caption = (
            "Measured: how many times faster than the synchronous run each schedule reached that run's last loss; "
            f"median of {setting.runs}, bars: exact order-statistic intervals. Shaded: the best fixed tau's interval. "
            f"Dashed: the goal of {GOAL:g} for AdaComm. {setting.where}"
        )
        best = [group.speedup(group.best_fixed).value for group in trained]
        faster = " to ".join(dict.fromkeys(f"{value:.1f}" for value in (min(best), max(best))))
        finding = f"At one rate the best fixed tau is {faster} times faster than tau = 1"
        drawn.append(Figure(partial(_draw_ratios, trained, styles), caption, finding=finding))
    if crowd:
        caption = (
            "Measured: the same against the number of workers, small network, constant learning rate, longer steps, "
            f"{setting.runs}. {setting.where}"
        )
        drawn.append(Figure(partial(_draw_crowds, crowd, styles), caption))
    return drawn


def _styles(found: Sequence[Group]) -> Styles:
    """Return colour and line by schedule, the same in all figures of a report."""
    names = dict.fromkeys(name for group in found for name in group.races)
    return {name: style(i, "color", "linestyle") for i, name in enumerate(names)}


def _draw_curves(setting: Setting, found: Sequence[Group], styles: Styles) -> Any:
    figure, axes = canvas(2, len(found), height=3.2)
    for (above, below), group in zip(axes.T, found, strict=True):
        budget_s = setting.budget_s(group.course)
        grid = np.linspace(0, budget_s, GRID)
        for name, races in group.races.items():
            how = styles[name]
            window_s = setting.window * budget_s
            curves = np.array([smoothed(r["seconds"], r["losses"], grid, window_s=window_s) for r in races])
            middle = np.median(curves, axis=0)
            above.plot(grid, middle, **how, linewidth=1.3, label=name)
            above.fill_between(grid, curves.min(axis=0), curves.max(axis=0), color=how["color"], alpha=0.12)
            time = float(np.median([hit.seconds for hit in group.times_to_target[name]]))
            if time <= budget_s:
                above.plot(time, np.interp(time, grid, middle), "x", color=how["color"], markersize=7)
            held = [_steps(r["seconds"], r["accuracies"], grid) for r in races if r["accuracies"][0] is not None]
            if held:
                below.plot(grid, np.median(held, axis=0), **how, linewidth=1.3)
        above.set(title=group.title, yscale="log", ylabel="training loss")
        plain_ticks(above.yaxis)
        below.set(xlabel=setting.clock, ylabel="held-out accuracy")
    legend_below(figure, *axes.flat)
    return figure


def _steps(seconds: Sequence[float], values: Sequence[float], at: np.ndarray) -> np.ndarray:
    """Return the last value at or before each time."""
    return np.asarray(values)[np.searchsorted(seconds, at, side="right") - 1]


def _draw_taus(setting: Setting, found: Sequence[Group], styles: Styles) -> Any:
    def draw(ax: Any, group: Group) -> None:
        for name in (name for name in group.races if not name.startswith("tau")):
            for i, race in enumerate(group.races[name]):
                label = "" if i else name
                ax.step(race["seconds"], race["taus"], where="pre", **styles[name], linewidth=1, label=label)
        ax.title.set_fontsize(9)

    return chart(found, draw, height=3.0, title=_title, x=setting.clock, y="tau", logs="y", plain="y")


def _title(group: Group) -> str:
    return group.title.replace(", ", "\n", 1)


def _draw_ratios(found: Sequence[Group], styles: Styles) -> Any:
    def draw(ax: Any, group: Group) -> None:
        ratios = {name: group.speedup(name) for name in list(group.times_to_target)[1:]}
        ax.axhspan(*group.speedup(group.best_fixed).interval, color=PALETTE[-1], alpha=0.2)
        ax.axhline(GOAL, color=PALETTE[6], linestyle="--", linewidth=1)
        for i, (name, ratio) in enumerate(ratios.items()):
            error_bars(ax, [i], [ratio], fmt=style(i)["marker"], color=styles[name]["color"], capsize=4)
        categories(ax, list(ratios), rotation=45, ha="right")
        ax.set_ylim(0, 1.1 * max(GOAL, *(ratio.interval[1] for ratio in ratios.values())))
        ax.title.set_fontsize(9)

    return chart(found, draw, height=3.2, title=_title, y="times faster", legend=False)


def _draw_crowds(found: Sequence[Group], styles: Styles) -> Any:
    figure, ((ax,),) = canvas(1, 1, height=3.6)
    ordered = sorted(found, key=lambda g: g.m)
    names = [n for n in ordered[0].times_to_target if all(n in g.times_to_target for g in ordered)]
    for i, name in enumerate(names[1:]):
        place = np.array([g.m for g in ordered]) * 1.02 ** (i - len(names) / 2)  # bars beside each other
        how = {**styles[name], "marker": style(i)["marker"], "capsize": 3, "label": name}
        error_bars(ax, place, [g.speedup(name) for g in ordered], **how)
    ax.axhline(GOAL, color=PALETTE[6], linestyle="--", linewidth=1)
    ax.set(xlabel="workers m", ylabel="times faster", xscale="log", ylim=(0, None))
    ticks_at(ax, [g.m for g in ordered])
    ax.legend()
    return figure


# -- the study -------------------------------------------------------------------------------------------------------


def _fixed(taus: Sequence[int]) -> dict[str, Schedule]:
    return {f"tau = {tau}": Fixed(tau) for tau in taus}


@dataclass(frozen=True)
class AdaCommStudy(Design, Study):
    """m ranks on a shaped network, steps padded to drawn durations; one set of processes a unit.

    Parameters
    ----------
    chosen : dict of str to (int, float), optional
        (tau_0, T_0's share) by course, once it is tuned.
    """

    chosen: dict[str, tuple[int, float]] = field(default_factory=dict, repr=False, compare=False)

    name = "adacomm"
    description = "loss against wall-clock: tau = 1, 5, 20, 100 and AdaComm's rules on the digits, m = 2, 4, 8"
    minutes = 21
    processes = 8
    measures_seconds = True

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield the tuning; then for every seed the races, the crowds and the proof."""
        names = [name for name, _ in self.courses]
        yield from (("tune", name, seed) for name in names for seed in self.tuning)
        for seed in self.seeds:
            yield from (("race", name, rate, seed) for name in names for rate in (CONSTANT, DECAYED))
            yield from ((CROWD, m, seed) for m in self.crowds)
            yield "proof", seed

    # -- tuning ------------------------------------------------------------------------------------------
    def with_records(self, records: Sequence[Record], folder: Path) -> AdaCommStudy:
        """Return the study with the tau_0 and T_0 that the tuning records choose."""
        return replace(self, chosen={name: self._choice(name, course, records) for name, course in self.courses})

    @property
    def candidates(self) -> list[tuple[int, float]]:
        """(tau_0, T_0's share of the budget)."""
        return [(tau_0, share) for tau_0 in self.tau_0s for share in self.intervals]

    def _choice(self, name: str, course: Course, records: Sequence[Record]) -> tuple[int, float]:
        """Return the candidate of the smallest median time to the target; the first one before anything is tuned."""
        tuned = [r for _, r in self.table(records, "tune", course=name)]
        times = [[hit.seconds for hit in times_to_target(r, course.budget_s, self.window)[1:]] for r in tuned]
        medians = [median_of(column).value for column in zip(*times, strict=True)] if tuned else [0.0]
        return self.candidates[medians.index(min(medians))]

    # -- one unit ----------------------------------------------------------------------------------------
    def _measured(self, races: dict[str, TrainingRun], course: Course, m: int) -> Record:
        """Return all schedules of a unit, one after the other on one network."""
        measured = run_training(list(races.values()), m=m, shape=course.shape)
        return {"m": m, "races": [{"name": name, **record} for name, record in zip(races, measured, strict=True)]}

    def measure_tune(self, course: str, seed: int) -> Record:
        """Run every candidate of AdaComm against the synchronous run.

        Each candidate runs half as long: whatever is slower than that is not chosen.
        """
        on = self.course(course)
        races = {"tau = 1": self._on(on, Fixed(SYNCHRONOUS), seed)}
        for tau_0, share in self.candidates:
            race = self._on(on, AdaComm(tau_0, share * on.budget_s, gamma=GAMMA), seed)
            races[f"tau_0 = {tau_0}, T_0 = {share:g} T"] = replace(race, budget_s=on.budget_s / 2)
        return self._measured(races, on, self.m)

    def measure_race(self, course: str, rate: str, seed: int) -> Record:
        """Run every schedule at one course of the learning rate."""
        on = self.course(course)
        rules = self.rules(course, on.budget_s)
        kept = ("basic", "gamma") if rate == CONSTANT else ("published", "derived")
        schedules = {**_fixed(self.taus), **{rule: rules[rule] for rule in kept}}
        decay = on.decay if rate == DECAYED else ()
        races = {schedule: replace(self._on(on, rule, seed), decay=decay) for schedule, rule in schedules.items()}
        return self._measured(races, on, self.m)

    def measure_crowd(self, m: int, seed: int) -> Record:
        """Run a few schedules with m workers."""
        rules = self.rules(self.courses[0][0], self.crowded.budget_s)
        schedules = {**_fixed(self.crowd_taus), "gamma": rules["gamma"]}
        races = {name: self._on(self.crowded, schedule, seed) for name, schedule in schedules.items()}
        return self._measured(races, self.crowded, m)

    def rules(self, name: str, budget_s: float) -> dict[str, Schedule]:
        """Return AdaComm as tuned on a course.

        Notes
        -----
        derived
            Also times (eta_0/eta)^p with p = 1/2 as in the paper, and 3/2 as Theorem 2 has it; capped at the largest
            fixed tau.

        published
            Also times (eta_0/eta)^p with p = 1/2 as in the paper, and 3/2 as Theorem 2 has it; capped at the largest
            fixed tau.

        gamma
            Halved where that does not fall.

        basic
            tau_0 sqrt(F/F_0).
        """
        tau_0, share = self.chosen[name]
        basic = AdaComm(tau_0, share * budget_s)
        gamma = replace(basic, gamma=GAMMA)
        return {
            "basic": basic,
            "gamma": gamma,
            "published": replace(gamma, eta_exponent=0.5, cap=max(self.taus)),
            "derived": replace(gamma, eta_exponent=1.5, cap=max(self.taus)),
        }

    def _on(self, course: Course, schedule: Schedule, seed: int) -> TrainingRun:
        return TrainingRun(course.workload, schedule, course.step, seed, budget_s=course.budget_s, points=self.points)

    def measure_proof(self, seed: int) -> Record:
        """Run the convex ones."""
        proof, course = self.proof, self.courses[0][1]
        rule = AdaComm(proof.tau_0, proof.interval_s)
        capped = replace(rule, L=proof.workload.constants().L)
        races = {
            name: TrainingRun(proof.workload, schedule, course.step, seed, steps=proof.steps, trace=True, points=1)
            for name, schedule in {**_fixed(self.taus), "capped": capped, "basic": rule}.items()
        }
        return self._measured(races, course, self.m)

    # -- what follows ------------------------------------------------------------------------------------
    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Judge theorems on the convex runs; seconds against the model, deciding nothing; ratios beside the goal."""
        all_groups, proofs = self.groups(records), [r for _, r in self.table(records, "proof")]
        return [
            *(row for group in all_groups for row in ratio_rows(group)),
            *(row for group in all_groups for row in end_rows(group)),
            *(row for group in all_groups for row in _seconds_rows(group, self.course(group.course).step)),
            *(_theorem_rows(self, proofs, self.false_alarm) if proofs else ()),
        ]

    def groups(self, records: Sequence[Record]) -> list[Group]:
        """Return the reported runs, in order."""
        names = {"race": lambda axes: (axes.course, axes.rate), CROWD: lambda axes: (CROWD, CONSTANT)}
        units = [(*self.read(record["unit"]), record) for record in records]
        reported = [(names[kind](axes), record) for kind, axes, record in units if kind in names]
        return groups(reported, self.budget_s, self.window)

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return loss and accuracy against the clock, tau, speed-ups, and speed-up against m."""
        all_groups = self.groups(records)
        if not all_groups:
            return []
        how = next(iter(all_groups[0].races.values()))[0]
        shapes = dict.fromkeys(f"{group.course}: {self.course(group.course).shape}" for group in all_groups)
        kind = how["method"].rsplit("; ", 1)[0]
        tuned = [
            f"{name}: tau_0 = {tau_0}, T_0 = {share * self.budget_s(name):.3g} s"
            for name, (tau_0, share) in self.with_records(records, Path()).chosen.items()
        ]
        where = (
            f"The bundled digits, real processes; {how['scheduling']}; {kind}; {'; '.join(shapes)}. "
            f"Chosen on seeds {', '.join(map(str, self.tuning))}: {'; '.join(tuned)}. All schedules run at one "
            "learning rate, tuned for none of them."
        )
        return figures(all_groups, Setting(self.budget_s, self.window, self.seeds, where))


PRESET = AdaCommStudy()
