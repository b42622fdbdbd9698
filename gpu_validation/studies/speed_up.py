"""How much faster local steps reach a loss, every schedule at its own tuned learning rate.

Tuning and reported runs on a simulated clock, and real processes that are held against them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import numpy as np

from bounds.runtime import Constant, RuntimeModel, ShiftedExponential
from bounds.schedules import AdaComm, Fixed, Schedule

from ..measurement.batched_simulation import simulate_together
from ..measurement.spec import TrainingRun
from ..measurement.training import run_training
from ..records.seeds import derived
from ..records.storage import Record
from ..reporting.plotting import LINES, MARKS, PALETTE, legend_below, panels, plain_ticks
from ..verdicts.comparisons import median_row
from ..verdicts.intervals import Median, median_of
from ..verdicts.iteration_time import near
from ..verdicts.time_to_target import arrival
from ..verdicts.verdict import Comparison, Verdict
from ..workloads import Characters, Dirichlet, SmallNetwork, Workload
from .adacomm import predicted_seconds
from .races import equal_numbers, same_row, short
from .study import Figure, Study

# -- courses and races -----------------------------------------------------------------------------------------------

STEP = ShiftedExponential(7e-3, 1e-3)  # law of a local step: Y = 8 ms
DELAY_S = 32e-3  # of an averaging, imposed: D/Y = 4
GAMMA = 0.5  # of the saturation rule, as published
CAP = 100  # of tau under the rules that raise it when the rate decays
FACTOR = 0.1  # of the learning rate after its decay
SYNCHRONOUS = "tau = 1"
FIXED = {SYNCHRONOUS: 1, "tau = 5": 5, "tau = 20": 20, "tau = 100": 100}
CONSTANT = (*FIXED, "basic", "gamma")
DECAYED = ("tau = 1, decayed", "tau = 20, decayed", "published", "derived")
UNCHANGING = (*FIXED, *DECAYED[:2])
EXPONENTS = {"published": 0.5, "derived": 1.5}


@dataclass(frozen=True)
class Course:
    """A workload and the losses to be reached on it.

    Parameters
    ----------
    targets : tuple of float
        Falling; the second lies in the transient, with about half of the excess over ``floor`` gone; the last one that
        tuned synchronous SGD reaches within the budget is called near the floor.
    floor : float
        Of the objective, found by L-BFGS or known; for captions and axes.
    rates : tuple of float
        Least and largest ones tried.
    """

    workload: Workload
    targets: tuple[float, ...]
    floor: float
    budget_s: float
    rates: tuple[float, float]

    @property
    def transient(self) -> float:
        """The target in the transient."""
        return self.targets[1]


DIGITS = Course(
    SmallNetwork(batch=4, decay=1e-2),
    targets=(1.8, 1.4, 1.1, 0.9, 0.8, 0.72, 0.68, 0.65),
    floor=0.587,
    budget_s=16.0,
    rates=(0.02, 1.6),
)
SHARDS = replace(DIGITS, workload=replace(cast(Any, DIGITS.workload), split=Dirichlet(4, alpha=0.1)))
TEXT = Course(
    Characters(),
    targets=(1.6, 1.45, 1.35, 1.25, 1.18, 1.14),
    floor=1.081,
    budget_s=28.0,
    rates=(0.05, 1.6),
)


@dataclass(frozen=True)
class Trial:
    """One point of the search.

    Parameters
    ----------
    share : float
        T_0 over the budget.
    decay_step : int
        Local step at which the rate falls.
    """

    rate: float
    tau_0: int
    share: float
    decay_step: int


def trials(course: Course, n: int) -> list[Trial]:
    """Return n points of Halton's sequence, logarithmic in every coordinate, so that all methods are tried at equal
    rates.

    A method without a first tau, an interval or a decay uses the rate alone; one with them pays for them by trying
    as many points as the others, not more.
    """
    low, high = course.rates
    points = []
    for i in range(1, n + 1):
        u, v, w, x = (_radical_inverse(i, base) for base in (2, 3, 5, 7))
        points.append(Trial(low * (high / low) ** u, round(5 * 40**v), 16 ** (w - 1) / 4, round(50 * 32**x)))
    return points


def _radical_inverse(i: int, base: int) -> float:
    value, scale = 0.0, 1.0
    while i:
        i, digit = divmod(i, base)
        scale /= base
        value += digit * scale
    return value


def schedule(method: str, trial: Trial, course: Course) -> Schedule:
    """Return the rule for tau of a method."""
    name = method.removesuffix(", decayed")
    if name in FIXED:
        return Fixed(FIXED[name])
    rule = AdaComm(trial.tau_0, trial.share * course.budget_s, loss_inf=0.0)
    if name == "basic":
        return rule
    if name in EXPONENTS:
        rule = replace(rule, eta_exponent=EXPONENTS[name], cap=CAP)
    return replace(rule, gamma=GAMMA)


def race(course: Course, method: str, trial: Trial, seed: int, **fields: Any) -> TrainingRun:
    """Return a run; its default budget is that of the course."""
    workload = replace(cast(Any, course.workload), eta=trial.rate)
    decay = ((trial.decay_step, FACTOR),) if method in DECAYED else ()
    fields = {"budget_s": course.budget_s, **fields}
    return TrainingRun(workload, schedule(method, trial, course), STEP, seed, decay=decay, **fields)


def runtime(m: int) -> RuntimeModel:
    """Return the imposed clock of m workers."""
    return RuntimeModel(step=STEP, delay_s=DELAY_S, m=m)


def methods(decayed: bool) -> Sequence[str]:
    """Return the methods of a cell, the baseline first."""
    return DECAYED if decayed else CONSTANT


@dataclass(frozen=True)
class Design:
    """What is tuned and reported: courses, cells, points of the search and seeds.

    Parameters
    ----------
    courses : tuple of (str, Course), optional
        By name.
    cells : tuple of (str, int, bool), optional
        (course, workers, whether the methods are those whose rate decays).
    points : int, optional
        Of the search, the same number for every method.
    tuning : tuple of int, optional
        Seeds on which every number is chosen.
    seeds : tuple of int, optional
        Seeds from which it is reported.
    looks : int, optional
        Losses of a run, evenly in the logarithm of time.
    checked_s : float, seconds, optional
        Simulated seconds of the real processes that must repeat a simulation.
    timed : tuple of int, optional
        Seeds of the runs whose seconds are real: padded steps, and the delay slept.
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

    def course(self, name: str) -> Course:
        """Return the course of this name."""
        return dict(self.courses)[name]


# -- choices and rows ------------------------------------------------------------------------------------------------

NO_BOUND = "no bound covers a ratio of times; D/Y = 4 is imposed"
SAME = ("numbers of a run that equal its rehearsal's, bit for bit", "the rehearsal")


@dataclass(frozen=True)
class Choice:
    """The outcome of tuning, for every target.

    Parameters
    ----------
    trials : dict of str to list of int
        Of a method, by target.
    seconds : dict of str to list of float
        median time of that trial on the tuning seeds, infinite if it did not arrive.
    strongest : list of str
        The fixed tau that is soonest, tau = 1 included.
    reached : int
        How many targets synchronous SGD reaches.
    """

    trials: dict[str, list[int]]
    seconds: dict[str, list[float]]
    strongest: list[str]
    reached: int


@dataclass(frozen=True)
class Cell:
    """One course with m workers.

    Parameters
    ----------
    tuned : list of Record
        Of its tuning units so far.
    reported : list of Record
        Of the units with other seeds so far.
    """

    name: str
    m: int
    course: Course
    methods: Sequence[str]
    tuned: list[Record]
    reported: list[Record]

    @property
    def key(self) -> tuple[str, int]:
        """As in the units."""
        return self.name, self.m

    @property
    def title(self) -> str:
        """In words."""
        return f"{self.name}, m = {self.m}"


def cells(design: SpeedUp, records: Sequence[Record]) -> list[Cell]:
    """Return the cells that have been tuned; methods[0] is synchronous SGD."""
    tuned_cells = []
    for name, m, decayed in design.cells:
        tuned, reported = ([r for _, r in design.table(records, kind, course=name, m=m)] for kind in ("tune", "report"))
        if tuned:
            tuned_cells.append(Cell(name, m, design.course(name), methods(decayed), tuned, reported))
    return tuned_cells


def times(records: Sequence[Record], method: str, trial: int, target: int) -> list[float]:
    """Return seconds to a target, one for each record that has the run; infinite where it did not arrive."""
    races = [r for unit in records for r in unit["races"] if (r["method"], r["trial"]) == (method, trial)]
    arrivals_s = [r["times"][target] for r in races]
    return [float("inf") if t is None else t for t in arrivals_s]


def choose(cell: Cell) -> Choice:
    """Return every method's trial of the smallest median time to every target, of the lowest last loss where none
    arrives.
    """
    picked: dict[str, list[int]] = {method: [] for method in cell.methods}
    seconds: dict[str, list[float]] = {method: [] for method in cell.methods}
    for method in cell.methods:
        tried = sorted({r["trial"] for r in cell.tuned[0]["races"] if r["method"] == method})
        last = {i: _last(cell.tuned, method, i) for i in tried}
        for target in range(len(cell.course.targets)):
            medians = {i: median_of(times(cell.tuned, method, i, target)).value for i in tried}
            best = min(tried, key=lambda i: (medians[i], last[i]))
            picked[method].append(best)
            seconds[method].append(medians[best])
    fixed = [name for name in cell.methods if name in UNCHANGING]
    indices = range(len(cell.course.targets))
    strongest = [min((seconds[name][target], name) for name in fixed)[1] for target in indices]
    reached = sum(bool(np.isfinite(t)) for t in seconds[cell.methods[0]])
    return Choice(picked, seconds, strongest, reached)


def _last(records: Sequence[Record], method: str, trial: int) -> float:
    return fmean(
        float("inf") if r["diverged"] else r["last"]
        for unit in records
        for r in unit["races"]
        if (r["method"], r["trial"]) == (method, trial)
    )


def arrivals(cell: Cell, choice: Choice, method: str, target: int) -> np.ndarray:
    """Return seconds to a target of the reported seeds, at the rate and parameters chosen for this method
    and target.
    """
    return np.array(times(cell.reported, method, choice.trials[method][target], target))


def speedup(cell: Cell, choice: Choice, method: str, target: int) -> Median:
    """Return paired ratios over the seeds: 0 where the method did not arrive; the budget, where the
    baseline did not.
    """
    slow = np.minimum(arrivals(cell, choice, cell.methods[0], target), cell.course.budget_s)
    return median_of((slow / arrivals(cell, choice, method, target)).tolist())


def against(cell: Cell, choice: Choice, method: str, target: int) -> Median:
    """Return how many times faster than the strongest fixed tau."""
    slow = np.minimum(arrivals(cell, choice, choice.strongest[target], target), cell.course.budget_s)
    return median_of((slow / arrivals(cell, choice, method, target)).tolist())


def at_one_rate(cell: Cell, method: str, target: int) -> list[tuple[float, float]]:
    """Return (rate, times faster than synchronous SGD at that same rate), of the tuning seeds, where both arrive."""
    ratios = []
    tried = trials(cell.course, 1 + max(r["trial"] for r in cell.tuned[0]["races"]))
    for i, trial in enumerate(tried):
        slow, fast = (np.array(times(cell.tuned, name, i, target)) for name in (SYNCHRONOUS, method))
        if np.isfinite([*slow, *fast]).all():
            ratios.append((trial.rate, float(np.median(slow / fast))))
    return sorted(ratios)


# -- rows ------------------------------------------------------------------------------------------------------------
def rows(design: SpeedUp, records: Sequence[Record]) -> list[Comparison]:
    """Return ratios of every cell, then what real processes say."""
    comparisons: list[Comparison] = []
    for cell in cells(design, records):
        choice = choose(cell)
        if cell.reported:
            comparisons += _ratio_rows(cell, choice)
        comparisons += _common_rate_rows(cell, choice)
    comparisons += [same_row(r, f"{u.course}, m = {u.m}", *SAME) for u, r in design.table(records, "same")]
    return [*comparisons, *_seconds_rows([r for _, r in design.table(records, "seconds")])]


def _ratio_rows(cell: Cell, choice: Choice) -> Iterator[Comparison]:
    for target in range(choice.reached):
        loss, strongest = cell.course.targets[target], choice.strongest[target]
        shown: dict[str, Any] = {
            "workload": cell.title,
            "quantity": f"times faster to loss {loss:g}",
            "facts": {"target_loss": loss},
        }
        reason = f"{NO_BOUND}; {strongest}, chosen on the tuning seeds"
        yield median_row("strongest fixed", speedup(cell, choice, strongest, target), reason, **shown)
        for method in cell.methods[1:]:
            rate = trials(cell.course, choice.trials[method][target] + 1)[-1].rate
            yield median_row(method, speedup(cell, choice, method, target), f"{NO_BOUND}; rate {rate:.3g}", **shown)
            if method not in UNCHANGING:
                quantity = f"times faster to loss {loss:g} than the strongest fixed tau"
                ratio, reason = against(cell, choice, method, target), f"{NO_BOUND}; {strongest}"
                facts = {"target_loss": loss, "baseline_time": choice.seconds[strongest][target]}
                yield median_row(method, ratio, reason, workload=cell.title, quantity=quantity, facts=facts)


def _common_rate_rows(cell: Cell, choice: Choice) -> Iterator[Comparison]:
    for method in [name for name in cell.methods if name in ("tau = 20", "gamma")]:
        for rate, ratio in at_one_rate(cell, method, 1):
            quantity = f"times faster to loss {cell.course.transient:g}, both at rate {rate:.3g}"
            speedup = Median(ratio, (ratio, ratio), 0.0, len(cell.tuned))
            reason = f"{NO_BOUND}; tuning seeds; the baseline is not tuned"
            facts = {"target_loss": cell.course.transient, "common_rate": rate}
            yield median_row(method, speedup, reason, workload=cell.title, quantity=quantity, facts=facts)


def _seconds_rows(records: Sequence[Record]) -> Iterator[Comparison]:
    """Return real seconds per iteration against the runtime model: decides nothing, for a shared machine
    has no bound.
    """
    for i, race in enumerate(records[0]["races"] if records else ()):
        races = [unit["races"][i] for unit in records]
        measured = [r["took_s"] / r["steps_done"] for r in races]
        bound = float(np.median([predicted_seconds(r, STEP, records[0]["m"]) for r in races]))
        value = float(np.median(measured))
        verdict, reason = near(value, bound)
        about: dict[str, Any] = {"operator": race["method"], "workload": f"real seconds, m = {records[0]['m']}"}
        yield Comparison(
            quantity="seconds per iteration, median over the seeds",
            measured=value,
            interval=(min(measured), max(measured)),
            bound=bound,
            side="tight",
            verdict=verdict,
            reason=reason,
            theorem=f"E max of mean Y + D / tau; {race['scheduling']}",
            n=len(races),
            decides=False,
            unit="s",
            **about,
        )
        ratios = [_paired(unit["races"][0], unit["races"][i]) for unit in records]
        if i and all(ratios):
            speedup = median_of([r for r in ratios if r])
            yield Comparison(
                quantity="times faster in real seconds", measured=speedup.value, interval=speedup.interval, bound=None,
                side="lower", verdict=Verdict.OUT_OF_SCOPE, reason=NO_BOUND, n=speedup.n, decides=False,
                facts={"real_seconds_per_step": value}, **about,
            )  # fmt: skip


def _paired(slow: Record, fast: Record) -> float:
    return slow["times"][1] / fast["times"][1] if slow["times"][1] and fast["times"][1] else 0.0


# -- drawings --------------------------------------------------------------------------------------------------------

Tuned = list[tuple[Cell, Choice]]


def figures(design: SpeedUp, records: Sequence[Record]) -> list[Figure]:
    """Draw the cells that have been tuned and reported so far."""
    tuned = [(cell, choose(cell)) for cell in cells(design, records)]
    ready = [(cell, choice) for cell, choice in tuned if cell.reported]
    if not tuned:
        return []
    how = (
        f"Simulated clock with steps of 7 ms and an exponential 1 ms, averagings of 32 ms: D/Y = 4 is imposed, and no "
        f"schedule could be more than about 5 times faster a step. Every method tried {design.points} points (rate; "
        f"tau_0 and T_0; step of the decay) on seeds {_named(design.tuning)}, the best for each target is reported "
        f"from seeds {_named(design.seeds)}; losses are those of real processes bit for bit."
    )
    drawn = []
    if ready:
        caption = (
            "Measured: how many times faster than tuned synchronous SGD each schedule reached a loss, against how far "
            "the loss lies above its floor; medians of paired ratios, bars: exact order-statistic intervals. Tau is "
            f"fixed at the strongest value for each target in the grey line. {how}"
        )
        ratios = [speedup(cell, choice, choice.strongest[1], 1).value for cell, choice in ready]
        finding = f"Tuned local steps reach the transient loss {min(ratios):.2g} to {max(ratios):.2g} times faster"
        drawn.append(Figure(partial(_draw_speed_ups, ready), caption, finding=finding))
        caption = (
            "Measured: loss of the averaged model against simulated seconds, each method as tuned for the last target "
            f"that synchronous SGD reaches; median over the seeds. {how}"
        )
        drawn.append(Figure(partial(_draw_curves, ready), caption))
    caption = (
        "Measured: times faster to the target in the transient if both sides run at one common rate, against that "
        f"rate, on the tuning seeds; crosses: the rate tuned for synchronous SGD. {how}"
    )
    drawn.append(Figure(partial(_draw_rates, tuned), caption))
    return drawn


def _named(seeds: Sequence[int]) -> str:
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 3 else ", ".join(map(str, seeds))


def _style(method: str, cell: Cell) -> dict[str, Any]:
    i = list(cell.methods).index(method)
    return {"color": PALETTE[i % len(PALETTE)], "linestyle": LINES[i % len(LINES)], "marker": MARKS[i % len(MARKS)]}


def _draw_speed_ups(ready: Tuned) -> Any:
    figure, axes = panels(len(ready), height=3.4)
    for ax, (cell, choice) in zip(axes, ready, strict=True):
        reached = range(choice.reached)
        excess = np.array([cell.course.targets[i] - cell.course.floor for i in reached])
        strongest = [speedup(cell, choice, choice.strongest[i], i).value for i in reached]
        ax.plot(excess, strongest, color="#999999", linewidth=5, alpha=0.5, label="strongest fixed")
        for method in cell.methods[1:]:
            speedups = [speedup(cell, choice, method, i) for i in reached]
            middle = np.array([ratio.value for ratio in speedups])
            low, high = np.array([ratio.interval for ratio in speedups]).reshape(-1, 2).T
            bars = [middle - low, high - middle]
            ax.errorbar(excess, middle, bars, **_style(method, cell), markersize=4, capsize=2, label=method)
        ax.axhline(1, color="black", linewidth=0.6)
        ax.set(title=cell.title, xscale="log", xlabel="target above the floor", ylim=(0, None))
        ax.invert_xaxis()
        plain_ticks(ax.xaxis)
    axes[0].set_ylabel("times faster")
    legend_below(figure, *axes)
    return figure


def _draw_curves(ready: Tuned) -> Any:
    figure, axes = panels(len(ready), height=3.2)
    for ax, (cell, choice) in zip(axes, ready, strict=True):
        last, grid = max(choice.reached - 1, 0), np.linspace(0, cell.course.budget_s, 300)
        for method in cell.methods:
            picked = choice.trials[method][last]
            races = [r for u in cell.reported for r in u["races"] if (r["method"], r["trial"]) == (method, picked)]
            curves = [np.interp(grid, r["seconds"], r["losses"], right=np.nan) for r in races]
            style = {k: v for k, v in _style(method, cell).items() if k != "marker"}
            ax.plot(grid, np.median(curves, axis=0) - cell.course.floor, **style, linewidth=1.1, label=method)
        ax.axhline(cell.course.targets[last] - cell.course.floor, color="black", linewidth=0.6)
        ax.set(title=cell.title, xlabel="simulated seconds", yscale="log")
        plain_ticks(ax.yaxis)
    axes[0].set_ylabel("loss above the floor")
    legend_below(figure, *axes)
    return figure


def _draw_rates(tuned: Tuned) -> Any:
    tuned = [(cell, choice) for cell, choice in tuned if SYNCHRONOUS in cell.methods]
    figure, axes = panels(len(tuned), height=3.0)
    for ax, (cell, choice) in zip(axes, tuned, strict=True):
        for method in (*[name for name in FIXED if name != SYNCHRONOUS], "gamma"):
            by_rate = at_one_rate(cell, method, 1)
            if by_rate:
                rates, ratios = zip(*by_rate, strict=True)
                ax.plot(rates, ratios, **_style(method, cell), markersize=4, label=method)
        if cell.reported:
            ax.plot(_tuned_rate(cell, choice), 1.0, "kx")
        ax.set(title=cell.title, xscale="log", xlabel="common learning rate", ylim=(0, None))
        plain_ticks(ax.xaxis)
    axes[0].set_ylabel("times faster")
    legend_below(figure, *axes)
    return figure


def _tuned_rate(cell: Cell, choice: Choice) -> float:
    index = choice.trials[SYNCHRONOUS][1]
    return trials(cell.course, index + 1)[index].rate


# -- the study -------------------------------------------------------------------------------------------------------


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
        """Return the study with another seed, for the timed runs too."""
        study = super().seeded(seed)
        assert isinstance(study, SpeedUp)
        return replace(study, timed=tuple(derived(seed, recorded) for recorded in self.timed))

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield each cell's tuning, reports and comparison with its simulation; then the timed runs."""
        for name, m, _ in self.cells:
            yield from (("tune", name, m, seed) for seed in self.tuning)
            yield from (("report", name, m, seed) for seed in self.seeds)
            yield "same", name, m
        yield from (("seconds", seed) for seed in self.timed)

    def with_records(self, records: Sequence[Record], folder: Path) -> SpeedUp:
        """Return the study with the trials that the tuning records choose."""
        return replace(self, chosen={cell.key: choose(cell) for cell in cells(self, records)})

    # -- one unit ----------------------------------------------------------------------------------------
    def measure_tune(self, course: str, m: int, seed: int) -> Record:
        """Simulate every trial of every method with m workers."""
        tried = [(method, i) for method in self._methods(course, m) for i in range(self.points)]
        return {"m": m, "races": self._simulated(course, m, seed, tried, curves=False)}

    def measure_report(self, course: str, m: int, seed: int) -> Record:
        """Simulate the trials that were chosen."""
        picked = self.chosen[course, m].trials
        tried = [(method, i) for method in self._methods(course, m) for i in sorted(set(picked[method]))]
        return {"m": m, "races": self._simulated(course, m, seed, tried, curves=True)}

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

    def measure_same(self, course: str, m: int) -> Record:
        """Compare all methods as tuned for the transient, cut short, with their simulation."""
        on, picked = self.course(course), self.chosen[course, m].trials
        tried, ends = trials(on, self.points), {"points": 20, "budget_s": self.checked_s}
        runs = [race(on, method, tried[picked[method][1]], self.seeds[0], **ends) for method in picked]
        return {"m": m, **equal_numbers(runs, runtime(m), m)}

    def measure_seconds(self, seed: int) -> Record:
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


def _summary(record: Record, course: Course, *, curves: bool) -> Record:
    times = [arrival(record["seconds"], record["losses"], target) for target in course.targets]
    summary: Record = {
        "times": [short(t) if math.isfinite(t) else None for t in times],
        "last": short(float(np.mean(record["losses"][-4:]))),
        "accuracy": record["accuracies"][-1],
        "took_s": short(record["took_s"]),
        "diverged": record.get("diverged", False),
    }
    if curves:
        summary |= {key: [short(x) for x in record[key]] for key in ("seconds", "losses")}
        summary["taus"] = record["taus"]
    return summary


def _paced(record: Record) -> Record:
    names = ("rounds", "steps_done", "took_s", "fenced_s", "mean_step_s", "overruns", "method", "scheduling")
    return {("transport" if name == "method" else name): record[name] for name in names}


PRESET = SpeedUp()
