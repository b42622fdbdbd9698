"""What is trained, what is tried and where the targets lie: all of it fixed before anything is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from typing import Any, cast

from bounds.runtime import RuntimeModel, ShiftedExponential
from bounds.schedules import AdaComm

from ...local_sgd.merge_rules import Overlap
from ...local_sgd.outer import Nesterov
from ...measurement.spec import TrainingRun
from ...network import Shape
from ...workloads import Dirichlet, LogisticRegression, SmallNetwork, Workload
from ..unit import Unit

STEP = ShiftedExponential(7e-3, 1e-3)  # law of a local step: Y = 8 ms
WORKERS = 4
SHAPE = Shape(delay_s=0.032)  # of the network in real seconds: an averaging takes 2.5 of these, ten steps
LEFT = (1 / 2, 1 / 8)  # of the loss above its floor, at the targets
HEADLINE = 1  # which of them the goals are set for
GAMMA = 0.5  # of AdaComm's saturation rule, as published
TAUS = (1, 4, 8, 16, 32, 64, 128)  # fixed ones
FIXED, ADACOMM, AUTO = "fixed tau", "AdaComm", "auto"


@dataclass(frozen=True)
class Method:
    """What is done with an average.

    Parameters
    ----------
    overlap : Overlap
        What becomes of the steps made while it is in flight.
    outer : bool
        Whether an outer Nesterov step is made, whose rate and momentum are tuned.
    """

    overlap: Overlap = "none"
    outer: bool = False


METHODS = {
    FIXED: Method(),
    ADACOMM: Method(),
    AUTO: Method(),
    "fixed tau + outer": Method(outer=True),
    "overwrite": Method("overwrite"),
    "delayed": Method("delayed"),
    "eager": Method("eager"),
    "corrected": Method("corrected"),
    "corrected + outer": Method("corrected", outer=True),
    "delayed + outer": Method("delayed", outer=True),
}
TIMED = (FIXED, ADACOMM, "fixed tau + outer", "corrected", "corrected + outer")  # in real seconds, too
PREDICTED = tuple(name for name in METHODS if name not in (ADACOMM, AUTO))  # rounds of one length: the model has them


@dataclass(frozen=True)
class Task:
    """A workload and the losses to be reached on it.

    Parameters
    ----------
    workload : Workload
        What is trained by four workers.
    floor : float
        Of its objective.
    rates : tuple of float
        Least and largest learning rate tried.
    """

    workload: Workload
    floor: float
    rates: tuple[float, float]

    @property
    def start(self) -> float:
        """The objective at the start."""
        return _start(self.workload)

    @property
    def targets(self) -> tuple[float, ...]:
        """Losses to be reached, falling."""
        return tuple(self.floor + left * (self.start - self.floor) for left in LEFT)


@lru_cache(maxsize=16)
def _start(workload: Workload) -> float:
    return float(workload.objective(workload.model()).detach())


DIGITS = Task(SmallNetwork(batch=4, decay=1e-2), floor=0.587, rates=(0.02, 1.6))
SOFTMAX = Task(LogisticRegression(batch=4, decay=1e-2), floor=0.741057, rates=(0.02, 1.6))  # on the same digits


def apart(task: Task) -> Task:
    """Return the task with data of their own at every worker."""
    split = Dirichlet(WORKERS, alpha=0.1)
    return replace(task, workload=replace(cast(Any, task.workload), split=split))


TASKS = {
    "digits": DIGITS,
    "digits, different": apart(DIGITS),
    "softmax": SOFTMAX,
    "softmax, different": apart(SOFTMAX),
}


@dataclass(frozen=True)
class Trial:
    """One point of the search: numbers that a method does not have are not used.

    Parameters
    ----------
    rate : float
        Learning rate inside.
    tau : int
        Local steps of a round; AdaComm's first.
    lr : float
        Outer rate nu.
    momentum : float
        Outer beta.
    share : float
        AdaComm's T_0 over the budget.
    saturates : bool
        Whether AdaComm has its saturation rule.
    """

    rate: float
    tau: int
    lr: float = 1.0
    momentum: float = 0.0
    share: float = 0.25
    saturates: bool = True

    def numbers(self) -> list[float]:
        """Return the fields in their order, as they are recorded."""
        return list(astuple(self))


def budget_s(ratio: int) -> float:
    """Return the seconds that a run may take.

    Parameters
    ----------
    ratio : int
        D/Y.
    """
    return (300 + 20 * ratio) * STEP.mean_s


def steps_in_flight(method: str, tau: int, ratio: int) -> int | None:
    """Return the local steps between send and merge: those that hide D, if the round is long enough.

    Parameters
    ----------
    method : str
        Of ``METHODS``.
    tau : int
        Local steps of a round.
    ratio : int
        D/Y.
    """
    match METHODS[method].overlap:
        case "corrected":
            return min(ratio, tau)
        case "overwrite":
            return min(ratio, tau - 1)
        case _:
            return None


def run_of(task: Task, method: str, trial: Trial, ratio: int, seed: int, **fields: Any) -> TrainingRun:
    """Return one run; its default budget is that of its ratio.

    Parameters
    ----------
    task : Task
        What is trained.
    method : str
        Of ``METHODS``.
    trial : Trial
        Its numbers.
    ratio : int
        D/Y.
    seed : int
        Of all randomness.
    **fields
        Others of ``TrainingRun``.
    """
    schedule: Any = trial.tau
    if method == ADACOMM:
        interval_s, gamma = trial.share * budget_s(ratio), GAMMA if trial.saturates else None
        schedule = AdaComm(trial.tau, interval_s, loss_inf=0.0, gamma=gamma)
    elif method == AUTO:
        schedule = "auto"
    rule = METHODS[method]
    return TrainingRun(
        replace(cast(Any, task.workload), eta=trial.rate),
        schedule,
        STEP,
        seed,
        outer=Nesterov(trial.lr, trial.momentum) if rule.outer else None,
        overlap=rule.overlap,
        steps_in_flight=steps_in_flight(method, trial.tau, ratio),
        **{"budget_s": budget_s(ratio), **fields},
    )


def runtime(ratio: int) -> RuntimeModel:
    """Return the imposed clock.

    Parameters
    ----------
    ratio : int
        D/Y.
    """
    return RuntimeModel(step=STEP, delay_s=ratio * STEP.mean_s, m=WORKERS)


# -- units -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Predict(Unit, kind="predict"):
    """The exact model of a task's quadratic."""

    task: str


@dataclass(frozen=True)
class Tune(Unit, kind="tune"):
    """The search of every method at one D/Y."""

    task: str
    ratio: int
    seed: int


@dataclass(frozen=True)
class Confirm(Unit, kind="confirm"):
    """The finalists of every search with another seed."""

    task: str
    ratio: int
    seed: int


@dataclass(frozen=True)
class Report(Unit, kind="report"):
    """The trials that were chosen."""

    task: str
    ratio: int
    seed: int


@dataclass(frozen=True)
class Same(Unit, kind="same"):
    """Real processes against their simulation."""

    task: str
    ratio: int


@dataclass(frozen=True)
class Timed(Unit, kind="seconds"):
    """Real seconds of the chosen trials on a shaped network."""

    task: str
    ratio: int
    seed: int


KINDS: tuple[type[Predict | Tune | Confirm | Report | Same | Timed], ...] = (
    Predict,
    Tune,
    Confirm,
    Report,
    Same,
    Timed,
)


@dataclass(frozen=True)
class Design:
    """What is tuned and reported.

    Parameters
    ----------
    tasks : tuple of (str, Task), optional
        By name.
    ratios : tuple of int, optional
        D/Y.
    points : int, optional
        Trials of a method in every stage of its search.
    tuning : tuple of int, optional
        Seeds on which every number is chosen: the first by the search, all by the median among its finalists.
    seeds : tuple of int, optional
        Seeds from which it is reported.
    looks : int, optional
        Losses of a run, evenly in the logarithm of time.
    checked : tuple of (str, int), optional
        Tasks and D/Y whose tuned runs real processes repeat.
    checked_s : float, seconds, optional
        Simulated seconds of those.
    timed : tuple of (str, int), optional
        Tasks and D/Y whose chosen trials are run again in real seconds, with the seeds from which all is reported.
    shape : Shape, optional
        Of the network of those runs.
    """

    tasks: tuple[tuple[str, Task], ...] = tuple(TASKS.items())
    ratios: tuple[int, ...] = (4, 10, 30)
    points: int = 35
    tuning: tuple[int, ...] = (0, 1, 2)
    seeds: tuple[int, ...] = (10, 11, 12, 13, 14)
    looks: int = 24
    checked: tuple[tuple[str, int], ...] = (("digits", 10), ("digits, different", 10), ("softmax", 4))
    checked_s: float = 1.5
    timed: tuple[tuple[str, int], ...] = (("digits", 10),)
    shape: Shape = SHAPE

    def task(self, name: str) -> Task:
        """Return the task of this name.

        Parameters
        ----------
        name : str
            Of a task.
        """
        return dict(self.tasks)[name]

    def cells(self) -> Sequence[tuple[str, int]]:
        """Return (task, D/Y) of everything that is tuned."""
        return [(name, ratio) for name, _ in self.tasks for ratio in self.ratios]


def excess_left(task: Task, loss: float) -> float:
    """Return the share of the loss above its floor that is left.

    Parameters
    ----------
    task : Task
        Of which.
    loss : float
        The loss.
    """
    return (loss - task.floor) / (task.start - task.floor) if math.isfinite(loss) else math.inf
