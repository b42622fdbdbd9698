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
from scipy.stats import qmc

from bounds.runtime import Constant, RuntimeModel, ShiftedExponential
from bounds.schedules import AdaComm, Fixed, Schedule

from ..judging.comparisons import median_row
from ..judging.intervals import Median, median_of
from ..judging.iteration_time import arrival, seconds_row
from ..judging.plotting import chart, error_bars, style
from ..records.seeds import derived
from ..workloads import Characters, Dirichlet, SmallNetwork, Workload
from .adacomm import predicted_seconds
from .races import arrivals, equal_numbers, faster, of_trial, same_row, short, times_of
from .runs.batched_simulation import simulate_together
from .runs.spec import TrainingRun
from .runs.training import run_training
from .study import Comparison, Figure, Record, Study

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
    places = qmc.Halton(4, scramble=False).fast_forward(1).random(n).tolist()
    return [
        Trial(low * (high / low) ** u, round(5 * 40**v), 16 ** (w - 1) / 4, round(50 * 32**x)) for u, v, w, x in places
    ]


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
        Runs of its tuning units so far.
    reported : list of Record
        Runs of the units with other seeds so far.
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
        units = {kind: design.table(records, kind, course=name, m=m) for kind in ("tune", "report")}
        tuned, reported = ([race for _, r in of_kind for race in r["races"]] for of_kind in units.values())
        if units["tune"]:
            tuned_cells.append(Cell(name, m, design.course(name), methods(decayed), tuned, reported))
    return tuned_cells


def choose(cell: Cell) -> Choice:
    """Return every method's trial of the smallest median time to every target, of the lowest last loss where none
    arrives.
    """
    picked: dict[str, list[int]] = {method: [] for method in cell.methods}
    seconds: dict[str, list[float]] = {method: [] for method in cell.methods}
    indices = range(len(cell.course.targets))
    for method in cell.methods:
        tried = sorted({r["trial"] for r in cell.tuned if r["method"] == method})
        for target in indices:
            medians = {i: median_of(arrivals(cell.tuned, method, i, target).tolist()).value for i in tried}
            best = min(tried, key=lambda i: (medians[i], _last(cell.tuned, method, i)))
            picked[method].append(best)
            seconds[method].append(medians[best])
    fixed = [name for name in cell.methods if name in UNCHANGING]
    strongest = [min((seconds[name][target], name) for name in fixed)[1] for target in indices]
    return Choice(picked, seconds, strongest, sum(map(math.isfinite, seconds[cell.methods[0]])))


def _last(races: Sequence[Record], method: str, trial: int) -> float:
    return fmean(math.inf if r["diverged"] else r["last"] for r in of_trial(races, method, trial))


def speedup(cell: Cell, choice: Choice, method: str, target: int, than: str = "") -> Median:
    """Return how many times faster than synchronous SGD, or another method, each at its choice for this target."""
    slow, fast = (
        arrivals(cell.reported, name, choice.trials[name][target], target) for name in (than or cell.methods[0], method)
    )
    return faster(slow, fast, cell.course.budget_s)


def at_one_rate(cell: Cell, method: str, target: int) -> list[tuple[float, float]]:
    """Return (rate, times faster than synchronous SGD at that same rate), of the tuning seeds, where both arrive."""
    ratios = []
    for i, trial in enumerate(trials(cell.course, 1 + max(r["trial"] for r in cell.tuned))):
        slow, fast = (arrivals(cell.tuned, name, i, target) for name in (SYNCHRONOUS, method))
        if np.isfinite([*slow, *fast]).all():
            ratios.append((trial.rate, float(np.median(slow / fast))))
    return sorted(ratios)


# -- rows ------------------------------------------------------------------------------------------------------------
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
                ratio, reason = speedup(cell, choice, method, target, strongest), f"{NO_BOUND}; {strongest}"
                facts = {"target_loss": loss, "baseline_time": choice.seconds[strongest][target]}
                yield median_row(method, ratio, reason, workload=cell.title, quantity=quantity, facts=facts)


def _common_rate_rows(cell: Cell, choice: Choice) -> Iterator[Comparison]:
    for method in [name for name in cell.methods if name in ("tau = 20", "gamma")]:
        for rate, ratio in at_one_rate(cell, method, 1):
            quantity = f"times faster to loss {cell.course.transient:g}, both at rate {rate:.3g}"
            n = len(of_trial(cell.tuned, method, 0))
            reason = f"{NO_BOUND}; tuning seeds; the baseline is not tuned"
            facts = {"target_loss": cell.course.transient, "common_rate": rate}
            shown = Median(ratio, (ratio, ratio), 0.0, n)
            yield median_row(method, shown, reason, workload=cell.title, quantity=quantity, facts=facts)


def _seconds_rows(records: Sequence[Record]) -> Iterator[Comparison]:
    """Return real seconds per iteration against the runtime model: decides nothing, for a shared machine
    has no bound.
    """
    for i, race in enumerate(records[0]["races"] if records else ()):
        races = [unit["races"][i] for unit in records]
        m, scheduling = records[0]["m"], race["scheduling"]
        about: dict[str, Any] = {"operator": race["method"], "workload": f"real seconds, m = {m}"}
        row = seconds_row(races, [predicted_seconds(r, STEP, m) for r in races], scheduling, **about)
        yield row
        ratios = [_paired(unit["races"][0], unit["races"][i]) for unit in records]
        if i and all(ratios):
            about |= {"quantity": "times faster in real seconds", "facts": {"real_seconds_per_step": row.measured}}
            yield replace(median_row(about.pop("operator"), median_of(ratios), NO_BOUND, **about), reason=NO_BOUND)


def _paired(slow: Record, fast: Record) -> float:
    return slow["times"][1] / fast["times"][1] if slow["times"][1] and fast["times"][1] else 0.0


# -- drawings --------------------------------------------------------------------------------------------------------

Tuned = list[tuple[Cell, Choice]]


def _named(seeds: Sequence[int]) -> str:
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 3 else ", ".join(map(str, seeds))


def _style(method: str, cell: Cell, *keys: str) -> dict[str, Any]:
    return style(list(cell.methods).index(method), *keys)


def _title(tuned: tuple[Cell, Choice]) -> str:
    return tuned[0].title


def _draw_speed_ups(ready: Tuned) -> Any:
    def draw(ax: Any, tuned: tuple[Cell, Choice]) -> None:
        cell, choice = tuned
        reached = range(choice.reached)
        excess = np.array([cell.course.targets[i] - cell.course.floor for i in reached])
        strongest = [speedup(cell, choice, choice.strongest[i], i).value for i in reached]
        ax.plot(excess, strongest, color="#999999", linewidth=5, alpha=0.5, label="strongest fixed")
        for method in cell.methods[1:]:
            ratios = [speedup(cell, choice, method, i) for i in reached]
            error_bars(ax, excess, ratios, **_style(method, cell), markersize=4, capsize=2, label=method)
        ax.axhline(1, color="black", linewidth=0.6)
        ax.invert_xaxis()

    settings: dict[str, Any] = {"x": "target above the floor", "y": "times faster", "logs": "x", "plain": "x"}
    return chart(ready, draw, columns=3, height=3.4, title=_title, ylim=(0, None), **settings)


def _draw_curves(ready: Tuned) -> Any:
    def draw(ax: Any, tuned: tuple[Cell, Choice]) -> None:
        cell, choice = tuned
        last, grid = max(choice.reached - 1, 0), np.linspace(0, cell.course.budget_s, 300)
        for method in cell.methods:
            races = of_trial(cell.reported, method, choice.trials[method][last])
            curves = [np.interp(grid, r["seconds"], r["losses"], right=np.nan) for r in races]
            how = _style(method, cell, "color", "linestyle")
            ax.plot(grid, np.median(curves, axis=0) - cell.course.floor, **how, linewidth=1.1, label=method)
        ax.axhline(cell.course.targets[last] - cell.course.floor, color="black", linewidth=0.6)

    settings: dict[str, Any] = {"x": "simulated seconds", "y": "loss above the floor", "logs": "y", "plain": "y"}
    return chart(ready, draw, columns=3, height=3.2, title=_title, **settings)


def _draw_rates(every: Tuned) -> Any:
    def draw(ax: Any, tuned: tuple[Cell, Choice]) -> None:
        cell, choice = tuned
        for method in (*[name for name in FIXED if name != SYNCHRONOUS], "gamma"):
            by_rate = at_one_rate(cell, method, 1)
            if by_rate:
                ax.plot(*zip(*by_rate, strict=True), **_style(method, cell), markersize=4, label=method)
        if cell.reported:
            ax.plot(_tuned_rate(cell, choice), 1.0, "kx")

    tuned = [(cell, choice) for cell, choice in every if SYNCHRONOUS in cell.methods]
    settings: dict[str, Any] = {"x": "common learning rate", "y": "times faster", "logs": "x", "plain": "x"}
    return chart(tuned, draw, columns=3, height=3.0, title=_title, ylim=(0, None), **settings)


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
        rows: list[Comparison] = []
        for cell in cells(self, records):
            choice = choose(cell)
            rows += [*(_ratio_rows(cell, choice) if cell.reported else ()), *_common_rate_rows(cell, choice)]
        rows += [same_row(r, f"{u.course}, m = {u.m}", *SAME) for u, r in self.table(records, "same")]
        return [*rows, *_seconds_rows([r for _, r in self.table(records, "seconds")])]

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return speed-up against the target, losses against time, and what one common rate makes of it."""
        tuned = [(cell, choose(cell)) for cell in cells(self, records)]
        ready = [(cell, choice) for cell, choice in tuned if cell.reported]
        how = (
            f"Simulated clock with steps of 7 ms and an exponential 1 ms, averagings of 32 ms: D/Y = 4 is imposed, and "
            f"no schedule could be more than about 5 times faster a step. Every method tried {self.points} points "
            f"(rate; tau_0 and T_0; step of the decay) on seeds {_named(self.tuning)}, the best for each target is "
            f"reported from seeds {_named(self.seeds)}; losses are those of real processes bit for bit."
        )
        speed_ups = (
            "Measured: how many times faster than tuned synchronous SGD each schedule reached a loss, against how far "
            "the loss lies above its floor; medians of paired ratios, bars: exact order-statistic intervals. Tau is "
            f"fixed at the strongest value for each target in the grey line. {how}"
        )
        curves = (
            "Measured: loss of the averaged model against simulated seconds, each method as tuned for the last target "
            f"that synchronous SGD reaches; median over the seeds. {how}"
        )
        rates = (
            "Measured: times faster to the target in the transient if both sides run at one common rate, against that "
            f"rate, on the tuning seeds; crosses: the rate tuned for synchronous SGD. {how}"
        )
        ratios = [speedup(cell, choice, choice.strongest[1], 1).value for cell, choice in ready]
        drawn = [Figure(partial(_draw_rates, tuned), rates)] if tuned else []
        if ready:
            finding = f"Tuned local steps reach the transient loss {min(ratios):.2g} to {max(ratios):.2g} times faster"
            first = Figure(partial(_draw_speed_ups, ready), speed_ups, finding=finding)
            drawn = [first, Figure(partial(_draw_curves, ready), curves), *drawn]
        return drawn


def _summary(record: Record, course: Course, *, curves: bool) -> Record:
    summary: Record = {
        "times": times_of(record, course.targets),
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
