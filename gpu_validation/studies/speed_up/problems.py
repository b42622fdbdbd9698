"""What is trained, what is tried and where the targets lie: all of it fixed before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from bounds.runtime import RuntimeModel, ShiftedExponential
from bounds.schedules import AdaComm, Fixed, Schedule

from ...measurement.spec import TrainingRun
from ...workloads import Characters, Dirichlet, SmallNetwork, Workload
from ..unit import Unit

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


@dataclass(frozen=True)
class Tune(Unit, kind="tune"):
    """Every trial of every method on one course with m workers."""

    course: str
    m: int
    seed: int


@dataclass(frozen=True)
class Report(Unit, kind="report"):
    """The trials that were chosen."""

    course: str
    m: int
    seed: int


@dataclass(frozen=True)
class Same(Unit, kind="same"):
    """Real processes against their simulation."""

    course: str
    m: int


@dataclass(frozen=True)
class Seconds(Unit, kind="seconds"):
    """Real seconds."""

    seed: int


KINDS: tuple[type[Tune | Report | Same | Seconds], ...] = (Tune, Report, Same, Seconds)


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
    """Return one run; its default budget is that of the course."""
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
