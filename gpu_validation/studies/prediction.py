"""What pilots predict of trainings, against those trainings: errors, coverage and regret, held out.

Fixed beforehand, in this folder: problems, learning rates and halves, choices and networks, the target and how it is
read.  The design half was there to find where the model fails, and to make it better; the held-out half was run once.

A training is made of simulated workers; its losses do not depend on the network, so that one run has as many times as
there are networks.  The simulated clock leaves coding out, and a step lasts so long that coding does not matter.
The target is the loss at which the synchronous run had made nine tenths of its fall.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from bounds.estimate import Estimate
from bounds.interval import Interval
from bounds.runtime import Constant
from operators import Feedback, Key
from ratedist.pilots.pilot import Pilot
from ratedist.pilots.plan import ranking_number
from ratedist.plans.run import Rhythm

from ..averaging.exchange.parts import exchange_named
from ..judging.comparisons import Side, goal_row
from ..judging.intervals import Median, median_of, number_of, tail_of
from ..judging.iteration_time import arrival
from ..judging.plotting import categories, chart, style
from ..network import Network, Shape
from ..piloting.pilot import pilot
from ..processes.launch import RankContext, run_ranks
from ..workloads import Draw, SmallNetwork, Workload
from .prediction_problems import (
    HALVES,
    LAW,
    NETWORKS,
    PROBLEMS,
    QSGD,
    WINDOW,
    Choice,
    Design,
    Problem,
    RingOf,
    carried_out,
    piloted,
    target_of,
)
from .runs.spec import TrainingRun
from .runs.training import run_training
from .study import Comparison, Figure, Record, Study

# -- real seconds ----------------------------------------------------------------------------------------------------

WORKLOAD = SmallNetwork(hidden=128)
STEP_S = 20e-3
MOST_BYTES = 1 << 18
HANG_TIMEOUT_S = 120.0
MOMENTS, LONGEST = 4, 8


class Paced:
    """Batches of a worker, and a pause at the end of every step, so that the step takes ``STEP_S``.

    Parameters
    ----------
    workload : Workload
        Whose batches.
    rank : int
        Of the worker.
    """

    def __init__(self, workload: Workload, rank: int) -> None:
        self._draws = (workload.draw(key=Key(1, step=k, rank=rank)) for k in itertools.count())
        self._begun = 0.0

    def __iter__(self) -> Iterator[Draw]:
        return self

    def __next__(self) -> Draw:
        """Return the next batch, with which a step begins."""
        self._begun = time.perf_counter()
        return next(self._draws)

    def wait(self, *_: object) -> None:
        """Wait until the step has taken its time."""
        time.sleep(max(0.0, self._begun + STEP_S - time.perf_counter()))


def measured_seconds(m: int, shape: Shape, choices: list[Choice], *, steps: int) -> Record:
    """Return a pilot of m processes, and seconds of a step of their trainings.

    Parameters
    ----------
    m : int
        Processes.
    shape : Shape
        Of the network.
    choices : list of Choice
        What is trained.
    steps : int
        Of each training, about.
    """
    operators = sorted({choice.operator for choice in choices if choice.operator})
    WORKLOAD.objective(WORKLOAD.model())  # loads the data before the processes fork

    def work(place: RankContext, emit: Callable[[Any], None]) -> None:
        torch.set_num_threads(1)
        model, batches = WORKLOAD.model(), Paced(WORKLOAD, place.rank)
        optimizer = torch.optim.SGD(model.parameters(), lr=WORKLOAD.eta)
        optimizer.register_step_post_hook(batches.wait)
        fields: dict[str, Any] = {"moments": MOMENTS, "taus": (1, LONGEST), "operators": operators}
        measured = pilot(model, optimizer, WORKLOAD.loss_on, batches, most_bytes=MOST_BYTES, **fields)
        if place.rank == 0:
            emit(measured.to_dict())

    settings: dict[str, Any] = {"hang_timeout_s": HANG_TIMEOUT_S, "scheduling": "realtime"}
    with Network.of(shape, m) as network, closing(run_ranks(work, processes=m, network=network, **settings)) as running:
        (measured,) = list(running)
    fields: dict[str, Any] = {"steps": steps, "points": steps, "fenced": 2}
    races = [
        TrainingRun(WORKLOAD, c.tau, Constant(STEP_S), 0, exchange=exchange_named(c.exchange, c.method()), **fields)
        for c in choices
    ]
    trained = run_training(races, m=m, shape=shape)
    return {
        "pilot": measured,
        "choices": [choice.name for choice in choices],
        "seconds_per_step": [_seconds_per_step(race) for race in trained],
        "overruns": [race["overruns"] for race in trained],
        "method": trained[0]["method"],
        "scheduling": trained[0]["scheduling"],
    }


def _seconds_per_step(race: Record) -> float:
    """Return the median over rounds: other programs hold up whole rounds here."""
    return float(np.median(np.diff(race["seconds"]) / np.diff(race["step"])))


def predicted_seconds(found: Pilot, m: int, choices: list[Choice]) -> list[float]:
    """Return the predicted seconds of a step with each choice, on the network that the pilot has timed.

    Parameters
    ----------
    found : Pilot
        Of m processes.
    m : int
        Processes.
    choices : list of Choice
        What is trained.
    """
    cluster = found.cluster(workers=m)
    predict = partial(found.predict, cluster)
    forecasts = (predict(operator=c.operator or None, exchange=c.exchange, tau=c.tau) for c in choices)
    return [forecast.seconds_per_step.value for forecast in forecasts]


# -- rows ------------------------------------------------------------------------------------------------------------

MEDIAN_GOAL, TAIL_GOAL = 0.15, 0.35
REGRET_GOAL, REGRET_TAIL_GOAL = 1.15, 1.5
SECONDS_GOAL = 0.05
TAIL = 0.9
WAITING = Rhythm()  # the trainings that are compared send nothing meanwhile
TRIED, FORMULAS, GUESS = "trial rounds", "formulas alone", "guess without a pilot"
MODELS: dict[str, Callable[[Pilot], Pilot]] = {
    TRIED: lambda pilot: pilot,
    FORMULAS: lambda pilot: replace(pilot, rounds=None),
    GUESS: lambda pilot: replace(pilot, rounds=None),  # its seconds, with progress 1
}
# "A step is worth a step", with less or more time: held nine cells in ten on problems that neither half contains.
GUESSED = (0.85, 1.3)
DIFFERENT = 0.1  # a cell has something to predict if its progress differs from 1 by more
SYNCHRONOUS, CHEAP = "synchronous", "a cheap unbiased operator, tau = 16"
RULES: dict[str, Callable[[Choice], bool]] = {
    SYNCHRONOUS: lambda choice: not choice.operator and choice.tau == 1,
    CHEAP: lambda choice: (choice.operator, choice.exchange, choice.tau) == (QSGD, "gather", 16),
}


@dataclass(frozen=True)
class Cell:
    """One choice on one problem and network: times to the target over those of synchronous uncompressed training.

    Parameters
    ----------
    problem : str
        By name.
    half : str
        DESIGN or HELD_OUT.
    ratio : float
        D/Y of the uncompressed sum.
    choice : Choice
        What was trained.
    predicted : Estimate or None
        By the pilots; None where noise hides it.
    measured : float
        Infinite where the run was too short.
    longest : float
        What a run that was too short had at least.
    progress : float
        Steps of synchronous training to the target, divided by the steps of this choice; 0 where it did not arrive.
    singles : tuple of (float, float), optional
        ``measured`` and ``longest`` of each single training, over the synchronous one with the same seed.
    tried : bool, optional
        Whether the prediction is that of trial rounds.
    """

    problem: str
    half: str
    ratio: float
    choice: Choice
    predicted: Estimate | None
    measured: float
    longest: float
    progress: float
    singles: tuple[tuple[float, float], ...] = ()
    tried: bool = False

    @property
    def is_adaptive(self) -> bool:
        """Whether the optimizer divides by squares of gradients."""
        return PROBLEMS[self.problem].optimizer not in ("sgd", "momentum")

    @property
    def is_different(self) -> bool:
        """Whether a step of this choice is worth clearly more or less than a synchronous one."""
        return abs(self.progress - 1) > DIFFERENT

    @property
    def ranked_by(self) -> float:
        """The number by which a plan ranks the choice."""
        return ranking_number(self.predicted, tried=self.tried or isinstance(self.choice.method(), Feedback))

    @property
    def value(self) -> float:
        """The predicted ratio; infinite without a prediction."""
        return math.inf if self.predicted is None else self.predicted.value

    @property
    def synchronous(self) -> bool:
        """Whether it is what all are compared with."""
        return RULES[SYNCHRONOUS](self.choice)

    @property
    def is_shown(self) -> bool:
        """Whether both times are finite and it is not what all are compared with."""
        return math.isfinite(self.measured + self.value) and not self.synchronous

    @property
    def error(self) -> float:
        """|predicted/measured - 1|; of a run that was too short, how far the prediction lies below what it had."""
        if math.isfinite(self.measured):
            return abs(self.value / self.measured - 1)
        return max(1 - self.value / self.longest, 0.0)

    @property
    def held(self) -> tuple[bool, ...]:
        """Whether the interval holds what a single training measured, for each of them."""
        if self.predicted is None:
            return (True,) * len(self.singles)
        low, high = float(self.predicted.interval.lo), float(self.predicted.interval.hi)
        return tuple(
            high >= longest if math.isinf(measured) else low <= measured <= high for measured, longest in self.singles
        )


@dataclass(frozen=True)
class Curve:
    """The mean over the seeds of one choice's trainings.

    Parameters
    ----------
    step : list of int
        At which losses were taken.
    losses : ndarray
        Shape (n,).
    seconds_per_step : ndarray
        On every network.
    """

    step: list[int]
    losses: np.ndarray
    seconds_per_step: np.ndarray

    def steps_to(self, target: float) -> float:
        """Return local steps to a loss; infinite where it was not reached."""
        return arrival(self.step, self.losses.tolist(), target, share=WINDOW)


def cells(design: PredictionStudy, records: Sequence[Record], model: str = TRIED) -> list[Cell]:
    """Return all that the records allow: those of problems with pilots and trainings.

    Parameters
    ----------
    design : PredictionStudy
        The study.
    records : sequence of Record
        Of its units.
    model : str, optional
        One of ``MODELS``.
    """
    pilots = {unit.problem: record for unit, record in design.table(records, "pilot")}
    trainings: dict[str, list[Record]] = {}
    for unit, record in design.table(records, "training"):
        trainings.setdefault(unit.problem, []).append(record)
    return [
        cell
        for name, record in pilots.items()
        if name in trainings
        for cell in _cells_of(design, name, model, _joined(record), record["steps"], trainings[name])
    ]


def _joined(record: Record) -> Pilot:
    start, later = (Pilot.from_dict(stated) for stated in record["pilots"])
    return start.then(later)


def curves(records: Sequence[Record]) -> dict[str, Curve]:
    """Return the mean curve of every choice.

    Parameters
    ----------
    records : sequence of Record
        One a seed.
    """
    by_choice: dict[str, list[Record]] = {}
    means = ("losses", "seconds_per_step")
    for record in records:
        for run in record["runs"]:
            by_choice.setdefault(run["choice"], []).append(run)
    return {
        name: Curve(runs[0]["step"], *(np.mean([run[key] for run in runs], axis=0) for key in means))
        for name, runs in by_choice.items()
    }


def _cells_of(
    design: Design, name: str, model: str, joined: Pilot, steps: float, trainings: Sequence[Record]
) -> Iterable[Cell]:
    problem, pilot = PROBLEMS[name], MODELS[model](joined)
    times, *single = (_times(problem, curves(records)) for records in (trainings, *([each] for each in trainings)))
    for place, ratio in enumerate(design.ratios):
        ring = RingOf.ratio(ratio, d=pilot.d, m=problem.m)
        links = {"latency_s": ring.latency_s, "bandwidth_bit_per_s": ring.bit_per_s}
        cluster = pilot.cluster(workers=problem.m, compute=LAW, **links)
        predictor = pilot.predictor(cluster, design.level, round(steps), baseline=WAITING)
        for choice in problem.choices():
            sent = pilot.sent(choice.operator, design.level) if choice.operator else None
            forecast = predictor.forecast(sent, choice.exchange, Rhythm(choice.tau))
            ratio_of_steps = predictor.clock.of(forecast.run)[1]
            predicted = _guess(ratio_of_steps) if model == GUESS else forecast.time_ratio
            measured, longest = times[choice].at(place)
            singles = tuple(each[choice].at(place) for each in single)
            progress = times[choice].progress
            yield Cell(
                name, problem.half, ratio, choice, predicted, measured, longest, progress, singles, tried=model == TRIED
            )


@dataclass(frozen=True)
class Times:
    """Times of a choice to the target over those of synchronous training.

    Parameters
    ----------
    progress : float
        Steps of synchronous training to the target, divided by the steps of this choice.
    per_step : ndarray
        Seconds of a step over those of synchronous training to the target, on every network.
    steps : float
        To the target; infinite where it was not reached.
    longest : float
        Steps of the training.
    """

    progress: float
    per_step: np.ndarray
    steps: float
    longest: float

    def at(self, place: int) -> tuple[float, float]:
        """Return the time on a network, and what it is at least if the target was not reached."""
        per_step = float(self.per_step[place])
        return self.steps * per_step, self.longest * per_step


def _times(problem: Problem, trained: dict[str, Curve]) -> dict[Choice, Times]:
    base = trained[problem.choices()[0].name]
    whole = [k for k in base.step if k <= problem.steps]
    target = target_of(whole, base.losses.tolist()[: len(whole)])
    base_steps, times = base.steps_to(target), {}
    for choice in problem.choices():
        curve = trained[choice.name]
        steps, per_step = curve.steps_to(target), curve.seconds_per_step / (base_steps * base.seconds_per_step)
        times[choice] = Times(base_steps / steps, per_step, steps, problem.longer * problem.steps)
    return times


def _guess(ratio: Estimate) -> Estimate:
    """Return the ratio of seconds per step as the ratio of times to the target."""
    less, more = GUESSED
    low, high = float(ratio.interval.lo), float(ratio.interval.hi)
    return Estimate(ratio.value, Interval(less * low, more * high), TAIL)


def regrets(found: Sequence[Cell]) -> list[float]:
    """Return the measured time of the choice predicted best over the best measured, by problem and network.

    Parameters
    ----------
    found : sequence of Cell
        Of one half.
    """
    chosen = ((min(rows, key=lambda cell: cell.ranked_by), rows) for rows in by_place(found))
    return [choice.measured / min(cell.measured for cell in rows) for choice, rows in chosen]


def regrets_of_rule(found: Sequence[Cell], rule: str) -> list[float]:
    """Return the same for a choice that is fixed beforehand, where the problem has it.

    Parameters
    ----------
    found : sequence of Cell
        Of one half.
    rule : str
        One of ``RULES``.
    """
    chosen = ((cell, rows) for rows in by_place(found) for cell in rows if RULES[rule](cell.choice))
    return [choice.measured / min(cell.measured for cell in rows) for choice, rows in chosen]


def by_place(found: Sequence[Cell]) -> Iterable[list[Cell]]:
    """Return the cells of each problem and network.

    Parameters
    ----------
    found : sequence of Cell
        All cells.
    """
    places: dict[tuple[str, float], list[Cell]] = {}
    for cell in found:
        places.setdefault((cell.problem, cell.ratio), []).append(cell)
    return places.values()


# -- rows ----------------------------------------------------------------------------------------------------
def _half_rows(design: Design, model: str, half: str, every: Sequence[Cell]) -> Iterable[Comparison]:
    goals = model == TRIED
    others = [cell for cell in every if not cell.synchronous]
    errors, where = [cell.error for cell in others], f"{half} half"
    quantity = "|predicted/measured - 1| of the time to the target"
    yield _row(model, where, f"{quantity}, median", median_of(errors), MEDIAN_GOAL if goals else None)
    yield _row(model, where, f"{quantity}, 90th percentile", tail_of(errors, TAIL), TAIL_GOAL if goals else None)
    words = f"share of single trainings that intervals at {design.level:.0%} hold"
    yield _row(model, where, words, _held(others), design.level if goals else None, "lower")
    different = [cell for cell in others if cell.is_different]
    if different:
        where_different = f"{where}, progress differs by more than {DIFFERENT:.0%}"
        yield _row(model, where_different, f"{quantity}, median", median_of([cell.error for cell in different]))
        yield _row(model, where_different, words, _held(different))
    adaptive = [cell.error for cell in others if cell.is_adaptive]
    if adaptive:
        yield _row(model, f"{where}, adaptive optimizers", f"{quantity}, median", median_of(adaptive))
    lost = regrets(every)
    words = "time of the choice predicted best over the best measured"
    yield _row(model, where, f"{words}, median", median_of(lost), REGRET_GOAL if goals else None)
    yield _row(model, where, f"{words}, 90th percentile", tail_of(lost, TAIL), REGRET_TAIL_GOAL if goals else None)
    finite = [cell for cell in others if math.isfinite(cell.value)]
    hidden = 1 - len(finite) / len(others)
    words = "share of choices for which the pilot's noise leaves no finite prediction"
    yield _row(model, where, words, number_of(hidden, len(others)))
    if finite:
        tail = tail_of([cell.error for cell in finite], TAIL)
        yield _row(model, where, f"{quantity}, 90th percentile of finite ones", tail)
        words = "share of single trainings that intervals hold, of finite predictions"
        yield _row(model, where, words, _held(finite))
    late = float(sum(math.isinf(cell.measured) for cell in others)) / len(others)
    words = "share of choices that had not arrived when their trainings ended"
    yield _row(model, where, words, number_of(late, len(others)))


def _held(found: Sequence[Cell]) -> Median:
    held = [each for cell in found for each in cell.held]
    return number_of(float(np.mean(held)), len(held))


def _rule_rows(half: str, every: Sequence[Cell]) -> Iterable[Comparison]:
    for rule in RULES:
        lost = regrets_of_rule(every, rule)
        if lost:
            words = "time of this fixed choice over the best measured"
            yield _row(rule, f"{half} half", f"{words}, median", median_of(lost))
            yield _row(rule, f"{half} half", f"{words}, 90th percentile", tail_of(lost, TAIL))


def _second_rows(units: Sequence[tuple[Any, Record]]) -> Iterable[Comparison]:
    for unit, record in units:
        network = NETWORKS[unit.network]
        predicted = predicted_seconds(Pilot.from_dict(record["pilot"]), network.m, list(network.choices))
        for choice, value, seconds in zip(network.choices, predicted, record["seconds_per_step"], strict=True):
            off = abs(value / seconds - 1)
            quantity = "|predicted/measured - 1| of a step's seconds, real processes"
            yield _row(choice.name, unit.network, quantity, number_of(off, 1), SECONDS_GOAL)


def _row(
    model: str, where: str, quantity: str, value: Median, goal: float | None = None, side: Side = "upper"
) -> Comparison:
    return goal_row(value, goal, side, operator=model, workload=where, quantity=quantity)


# -- drawings --------------------------------------------------------------------------------------------------------

LARGEST_REGRET = 5.0


def _draw_times(every: Sequence[Cell]) -> Any:
    halves, taus = list(dict.fromkeys(cell.half for cell in every)), sorted({cell.choice.tau for cell in every})

    def draw(ax: Any, half: str) -> None:
        shown = [cell for cell in every if cell.half == half and cell.is_shown]
        for i, tau in enumerate(taus):
            dots, how = [cell for cell in shown if cell.choice.tau == tau], style(i, "color", "marker")
            label = f"{tau} local steps" if dots else None
            measured, value = [c.measured for c in dots], [c.value for c in dots]
            ax.plot(measured, value, linestyle="none", markersize=3, label=label, **how)
            for cell in dots[::5]:
                assert cell.predicted is not None  # its value is finite
                ends = [float(cell.predicted.interval.lo), min(float(cell.predicted.interval.hi), 10 * cell.value)]
                ax.plot([cell.measured] * 2, ends, color=how["color"], linewidth=0.6)
        line = np.array([min(c.measured for c in shown), max(c.measured for c in shown)])
        ax.plot(line, line, "--", color="black", linewidth=0.8)
        for factor in (1 - TAIL_GOAL, 1 + TAIL_GOAL):
            ax.plot(line, factor * line, ":", color="grey", linewidth=0.8)
        ax.legend()

    settings: dict[str, Any] = {"x": "measured", "y": "predicted", "logs": "xy", "plain": "xy", "legend": False}
    return chart(halves, draw, height=4.2, title="{} half".format, **settings)


def _draw_regrets(by_model: dict[str, list[Cell]]) -> Any:
    def draw(ax: Any, half: str) -> None:
        for x, every in enumerate(by_model.values()):
            values = np.minimum(regrets([cell for cell in every if cell.half == half]), LARGEST_REGRET)
            how = {**style(x, "color", "marker"), "linestyle": "none", "markersize": 3}
            ax.plot(x + np.linspace(-0.3, 0.3, len(values)), values, **how)
            ax.plot([x - 0.35, x + 0.35], [np.median(values)] * 2, color="black", linewidth=1.5)
        ax.axhline(REGRET_GOAL, color="black", linestyle="--", linewidth=0.8)
        categories(ax, [name.replace(" ", "\n", 1) for name in by_model])

    halves = list(dict.fromkeys(cell.half for cell in by_model[TRIED]))
    settings: dict[str, Any] = {"title": "{} half".format, "logs": "y", "plain": "y", "ylabel": "regret"}
    return chart(halves, draw, height=3.2, legend=False, **settings)


# -- the study -------------------------------------------------------------------------------------------------------

PILOT_SEED = 1000


@dataclass(frozen=True)
class PredictionStudy(Design, Study):
    """Pilots, then the trainings of every choice."""

    name = "prediction"
    description = "a pilot's predictions of times to a loss, of intervals and of the best choice against trainings"
    minutes = 40
    processes = 4
    measures_seconds = True

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield the pilot and the trainings of each problem, the design half first, then the networks."""
        for half in HALVES:
            for name in [name for name in self.problems if PROBLEMS[name].half == half]:
                yield "pilot", name
                yield from (("training", name, seed) for seed in _seeds(name))
        yield from (("seconds", name) for name in self.networks)

    def measure_pilot(self, problem: str) -> Record:
        """Make the pilots of a problem: at its start, and halfway to the target of a training of their own."""
        chosen = PROBLEMS[problem]
        return piloted(chosen, seed=PILOT_SEED + chosen.first_seed, moments=self.moments, rounds=self.rounds)

    def measure_training(self, problem: str, seed: int) -> Record:
        """Train with all choices of a problem and one seed."""
        chosen = PROBLEMS[problem]
        rings = [RingOf.ratio(ratio, d=chosen.d, m=chosen.m) for ratio in self.ratios]
        steps = round(chosen.steps * chosen.longer)
        return {"runs": [carried_out(chosen, choice, rings, seed=seed, steps=steps) for choice in chosen.choices()]}

    def measure_seconds(self, network: str) -> Record:
        """Make a pilot of real processes, and time their steps."""
        chosen = NETWORKS[network]
        return measured_seconds(chosen.m, chosen.shape, list(chosen.choices), steps=self.real_steps)

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return errors, coverage and regrets beside their goals; no theorem covers them, so that none decides."""
        rows: list[Comparison] = []
        by_model = {model: cells(self, records, model) for model in MODELS}
        for half in dict.fromkeys(cell.half for cell in by_model[TRIED]):
            for model, every in by_model.items():
                rows += _half_rows(self, model, half, [cell for cell in every if cell.half == half])
            rows += _rule_rows(half, [cell for cell in by_model[TRIED] if cell.half == half])
        quantity = "|predicted/measured - 1| of the time to the target, median"
        for name in dict.fromkeys(cell.problem for cell in by_model[TRIED]):
            errors = [cell.error for cell in by_model[TRIED] if cell.problem == name and not cell.synchronous]
            rows.append(_row(TRIED, name, quantity, median_of(errors)))
        return [*rows, *_second_rows(self.table(records, "seconds"))]

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return predicted against measured times, and regrets."""
        by_model = {model: cells(self, records, model) for model in (TRIED, FORMULAS, GUESS)}
        if not by_model[TRIED]:
            return []
        hidden = sum(math.isinf(cell.value) for cell in by_model[TRIED])
        ratios = ", ".join(f"{ratio:g}" for ratio in self.ratios)
        caption = (
            "Predicted by pilots (vertical) against measured in simulated trainings (horizontal): time to the target "
            f"over that of synchronous uncompressed training; one mark a problem, choice and network (D/Y = {ratios}), "
            f"bars: intervals at {self.level:.0%} of every fifth. Dashed: equal; dotted: {TAIL_GOAL:.0%} off. Choices "
            f"that had not arrived when their trainings ended are left out, and {hidden} whose progress the pilots' "
            "noise hides."
        )
        words = (
            "Measured: time of the choice that was predicted best over that of the best of all choices, one mark a "
            "problem and network; bar: median. Dashed: the goal for the median. Above "
            f"{LARGEST_REGRET:g}: drawn there."
        )
        away = [abs(cell.value / cell.measured - 1) for cell in by_model[TRIED] if cell.is_shown]
        close = f"Predicted times are off by {np.median(away):.0%} in the median" if away else ""
        lost = regrets(by_model[TRIED])
        near = f"The choice of the pilot takes {np.median(lost):.2f} times the time of the best one" if lost else ""
        return [
            Figure(lambda: _draw_times(by_model[TRIED]), caption, finding=close),
            Figure(lambda: _draw_regrets(by_model), words, finding=near),
        ]


def _seeds(name: str) -> range:
    problem = PROBLEMS[name]
    return range(problem.first_seed, problem.first_seed + problem.seeds)


PRESET = PredictionStudy()
