"""What the exact models say beforehand: the quadratic of a task at its minimiser, and seconds to the targets on it.

Curvature, gradient noise and the workers' own gradients are those at the minimiser, in the eigenbasis of the Hessian,
outside of which nothing is kept; the start is scaled so that the loss begins where the task's does.  The directions of
smallest curvature, in which hardly anything happens, are taken together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch
from scipy.stats import qmc
from torch.func import functional_call

from bounds.dynamics.outer import OuterStep, Workers, expected_loss, second_moments
from bounds.runtime import RuntimeModel, ShiftedExponential, seconds_per_step_in_flight
from bounds.schedules import AdaComm

from ..averaging.merge.rules import Blocking, Corrected, Delayed, Eager, Merge, Overwrite
from ..averaging.outer import Nesterov
from ..judging.iteration_time import arrival
from ..network import Shape
from ..processes.tensors import flat
from ..records.storage import Record
from ..workloads import Dirichlet, LogisticRegression, Loss, SmallNetwork, Workload
from ..workloads.supervised import Supervised
from .runs.spec import TrainingRun

# -- methods and races -----------------------------------------------------------------------------------------------

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
    overlap : {"none", "overwrite", "delayed", "eager", "corrected"}
        What becomes of the steps made while it is in flight.
    outer : bool
        Whether an outer Nesterov step is made, whose rate and momentum are tuned.
    """

    overlap: str = "none"
    outer: bool = False

    def merge(self, delay: int | None) -> Merge:
        """Return the merge of an averaging with this delay."""
        in_flight = {"overwrite": Overwrite(delay or 0), "corrected": Corrected(delay)}
        return {**in_flight, "delayed": Delayed(), "eager": Eager()}.get(self.overlap, Blocking())


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


def heterogeneous(task: Task) -> Task:
    """Return the task with data of their own at every worker."""
    split = Dirichlet(WORKERS, alpha=0.1)
    return replace(task, workload=replace(cast(Any, task.workload), split=split))


TASKS = {
    "digits": DIGITS,
    "digits, different": heterogeneous(DIGITS),
    "softmax": SOFTMAX,
    "softmax, different": heterogeneous(SOFTMAX),
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
    """Return a run; its default budget is that of its D/Y.

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
        merge=rule.merge(steps_in_flight(method, trial.tau, ratio)),
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


# -- search ----------------------------------------------------------------------------------------------------------

STAGES = 3
SHRINKS = 3  # every stage's box, in every coordinate
LONGEST = 128  # tau tried with the methods that have no grid of them
AUTO_SHARE = 3  # "auto", which has only a rate, is tried less often by this factor
TRIALS_AGAIN, RATES_AGAIN = 7, 3  # finalists of a method for a target; of the fixed tau, for each tau
DIGITS_KEPT = 4  # of a trial's numbers
Measure = Callable[[list[Trial]], list[list[float]]]  # trials -> seconds to every target, infinite without arrival


@dataclass(frozen=True)
class Tried:
    """The trials of a method in their order, and what came of them.

    Parameters
    ----------
    trials : list of Trial
        What was tried.
    times : list of list of float, seconds
        Of each trial, to every target; infinite where it did not arrive.
    """

    trials: list[Trial]
    times: list[list[float]]

    def best(self, target: int, among: Sequence[int] | None = None) -> int:
        """Return the trial that came to a target first; where none did, that which came to the target before.

        Parameters
        ----------
        target : int
            Which target.
        among : sequence of int, optional
            Trials that are compared; by default all.
        """
        return self.first(1, target, among)[0]

    def first(self, n: int, target: int, among: Sequence[int] | None = None) -> list[int]:
        """Return the n trials that came to a target first, in their order.

        Parameters
        ----------
        n : int
            How many.
        target : int
            Which target.
        among : sequence of int, optional
            Trials that are compared; by default all.
        """
        compared = range(len(self.times)) if among is None else among
        return sorted(compared, key=lambda i: self.times[i][target::-1])[:n]

    def by_tau(self) -> list[list[int]]:
        """Return the trials of every tau of the fixed tau's grid."""
        return [[i for i, trial in enumerate(self.trials) if trial.tau == tau] for tau in TAUS]

    def finalists(self, method: str) -> list[int]:
        """Return the trials that are tried again with other seeds: the best for either target, in their order.

        Of the fixed tau, the best rates of every tau.

        Parameters
        ----------
        method : str
            Whose trials these are.
        """
        groups = [(RATES_AGAIN, among) for among in self.by_tau()] if method == FIXED else [(TRIALS_AGAIN, None)]
        targets = range(len(LEFT))
        return sorted({i for n, among in groups for target in targets for i in self.first(n, target, among)})


def search(task: Task, method: str, points: int, measure: Measure) -> Tried:
    """Try settings of a method and return the trials: ``STAGES`` times as many as points.

    The first stage covers the whole range: Halton's sequence, logarithmic in every coordinate.  Each later one covers
    a box a third as wide in every coordinate around the trial that came to the headline's target first.  The fixed tau
    is searched at every tau of its grid, with a share of the points each.

    Parameters
    ----------
    task : Task
        Whose range of rates it is.
    method : str
        Of ``METHODS``.
    points : int
        Trials in a stage.
    measure : callable
        Returns the seconds of trials.
    """
    tried = Tried([], [])
    searches = [_Box(method, points, tau) for tau in (TAUS if method == FIXED else (None,))]
    for _ in range(STAGES):
        stage = [list(box.places()) for box in searches]
        trials = [box.trial(task, place) for box, places in zip(searches, stage, strict=True) for place in places]
        first = len(tried.trials)
        tried.trials.extend(trials)
        tried.times.extend(measure(trials))
        for box, places in zip(searches, stage, strict=True):
            box.close_in(places, tried, first)
            first += len(places)
    return tried


class _Box:
    """What is searched next, in the unit cube."""

    def __init__(self, method: str, points: int, tau: int | None) -> None:
        self.method, self.tau = method, tau
        self.points = max(1, points // {FIXED: len(TAUS), AUTO: AUTO_SHARE}.get(method, 1))
        self.dimension = 4 if method == ADACOMM or METHODS[method].outer else 1 if method in (FIXED, AUTO) else 2
        self.low, self.side = np.zeros(self.dimension), 1.0
        self._best: tuple[list[float], np.ndarray] | None = None

    def places(self) -> Iterator[np.ndarray]:
        """Return the points of this stage, shape (dimension,) each."""
        if self.dimension == 1:
            unit = (np.arange(self.points)[:, None] + 0.5) / self.points
        else:
            unit = qmc.Halton(self.dimension, scramble=False).fast_forward(1).random(self.points)
        yield from self.low + self.side * unit

    def trial(self, task: Task, place: np.ndarray) -> Trial:
        """Return the trial at a point of the unit cube."""
        low, high = task.rates
        u, v, w, x = np.pad(place, (0, 4 - self.dimension)).tolist()
        rate = _short(low * (high / low) ** u)
        if self.tau is not None:
            return Trial(rate, self.tau)
        if self.method == ADACOMM:
            return Trial(rate, round(5 * 40**v), share=_short(16 ** (w - 1) / 4), saturates=x < 0.5)
        tau = round(2 * (LONGEST / 2) ** v)
        return (
            Trial(rate, tau, _short(0.3 * 5**w), _short(1 - 10**-x)) if METHODS[self.method].outer else Trial(rate, tau)
        )

    def close_in(self, places: list[np.ndarray], tried: Tried, first: int) -> None:
        """Shrink around the best so far, of which the last stage's trials begin at ``first``."""
        i = tried.best(HEADLINE, range(first, first + len(places)))
        times = tried.times[i][HEADLINE::-1]
        if self._best is None or times < self._best[0]:
            self._best = times, places[i - first]
        self.side /= SHRINKS
        self.low = np.clip(self._best[1] - self.side / 2, 0, 1 - self.side)


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS_KEPT}g}")


# -- exact predictions -----------------------------------------------------------------------------------------------

DIRECTIONS = 60  # of largest curvature, kept apart
Share = tuple[torch.Tensor, torch.Tensor]  # indices of a worker's samples, and the weight of their mean loss
CHUNK = 64  # vectors that are multiplied by the Hessian at once
SEARCH = 300  # steps of L-BFGS to the minimiser


class Landscape:
    """The objective of a workload as a function of a vector, in float64.

    Parameters
    ----------
    workload : Supervised
        Whose samples and losses they are.
    """

    def __init__(self, workload: Supervised) -> None:
        self.workload, model = workload, workload.model().double()
        self.start = flat(list(model.parameters())).detach()
        self._loss = Loss(workload, model)
        self._shapes = {f"model.{name}": p.shape for name, p in model.named_parameters()}

    def value(self, x: torch.Tensor, chosen: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Return the weighted mean loss over some samples, and the decay.

        Parameters
        ----------
        x : tensor, shape (d,)
            Parameters.
        chosen : tensor
            Indices of samples.
        weight : tensor
            Factor of their mean loss.
        """
        parts = x.split([shape.numel() for shape in self._shapes.values()])
        named = {name: part.view(shape) for (name, shape), part in zip(self._shapes.items(), parts, strict=True)}
        return cast(torch.Tensor, functional_call(self._loss, named, (chosen, weight)))

    def shares(self) -> list[Share]:
        """Return the samples of every worker and the weight of their mean loss; one share if all have all of them."""
        n = len(self.workload.data().train)
        parts = [self.workload.shard(rank) for rank in range(self.workload.workers or 1)]
        return [
            (torch.from_numpy(part), torch.tensor(len(part) * len(parts) / n, dtype=torch.float64)) for part in parts
        ]

    def mean(self, x: torch.Tensor) -> torch.Tensor:
        """Return F.

        Parameters
        ----------
        x : tensor, shape (d,)
            Parameters.
        """
        shares = self.shares()
        return torch.stack([self.value(x, *share) for share in shares]).sum() / len(shares)

    def minimiser(self) -> torch.Tensor:
        """Return where L-BFGS from the start ends, shape (d,)."""
        x = self.start.clone().requires_grad_()
        search = torch.optim.LBFGS(
            [x], max_iter=SEARCH, history_size=30, line_search_fn="strong_wolfe", tolerance_grad=1e-9
        )

        def again() -> torch.Tensor:
            value = self.mean(x)
            (x.grad,) = torch.autograd.grad(value, x)
            return value

        search.step(again)
        return x.detach()

    def products(self, x: torch.Tensor, vectors: torch.Tensor, share: Share) -> torch.Tensor:
        """Return the Hessian of a share's loss times vectors, shape (n, d).

        Parameters
        ----------
        x : tensor, shape (d,)
            Where it is taken.
        vectors : tensor, shape (n, d)
            The vectors.
        share : tuple
            Samples and weight.
        """
        y = x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(self.value(y, *share), y, create_graph=True)
        return torch.cat([_batched(slope, y, part) for part in vectors.split(CHUNK)])


def _batched(values: torch.Tensor, x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the gradients of weighted sums of values, a row each."""
    return torch.autograd.grad(values, x, grad_outputs=weights, retain_graph=True, is_grads_batched=True)[0]


@lru_cache(maxsize=8)
def quadratic_of(task: Task) -> Workers:
    """Return the workers' quadratics at a task's minimiser.

    Parameters
    ----------
    task : Task
        Of a supervised workload.
    """
    workload = cast(Supervised, task.workload)
    landscape = Landscape(workload)
    x, shares = landscape.minimiser(), landscape.shares()
    d = len(x)
    hessian = torch.stack([landscape.products(x, torch.eye(d, dtype=torch.float64), s) for s in shares])
    _, basis = torch.linalg.eigh(hessian.mean(dim=0))
    basis = basis.flip(1)  # the largest first
    curvature = torch.einsum("dk,wde,ek->wk", basis, hessian, basis)
    slopes, noise = zip(*(_gradients(landscape, x, share, basis) for share in shares), strict=True)
    displacement = (landscape.start - x) @ basis
    eigenvalues = curvature.clamp(min=workload.decay / 10)
    gap = 0.5 * float(eigenvalues.mean(dim=0) @ displacement.square())
    displacement *= math.sqrt((task.start - task.floor) / gap)
    columns = [_together(v) for v in (eigenvalues, -torch.stack(slopes) / eigenvalues, torch.stack(noise))]
    copies = WORKERS // len(shares)
    eigen, centres, variances = (np.repeat(part.numpy(), copies, axis=0) for part in columns)
    kept = directions(d)
    last = eigenvalues.mean(dim=0)[kept:]
    energy = float(last @ displacement[kept:].square()) / float(eigen.mean(axis=0)[-1])
    eigen[:, -1], centres[:, -1] = eigen[:, -1].mean(), 0.0
    return Workers(eigen, centres, variances, np.append(displacement[:kept].numpy(), math.sqrt(energy)))


def directions(d: int) -> int:
    """Return how many are kept apart.

    Parameters
    ----------
    d : int
        Parameters, two at least.
    """
    return min(DIRECTIONS, d - 1)


def _together(rows: torch.Tensor) -> torch.Tensor:
    """Return the first columns, and the mean of the others in their place."""
    kept = directions(rows.shape[1])
    return torch.cat([rows[:, :kept], rows[:, kept:].mean(dim=1, keepdim=True)], dim=1)


def _gradients(
    landscape: Landscape, x: torch.Tensor, share: Share, basis: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (mean gradient of a share, variance of a mini-batch's) in the eigenbasis, each of shape (d,)."""
    chosen, weight = share
    parts, y = [], x.clone().requires_grad_()
    for part in chosen.split(CHUNK):
        losses = torch.stack([landscape.value(y, sample[None], weight) for sample in part])
        parts.append(_batched(losses, y, torch.eye(len(part), dtype=losses.dtype)))
    rows = torch.cat(parts) @ basis
    variance = rows.var(dim=0, correction=0) / (landscape.workload.batch or 1)
    # the directions that are taken together keep the whole of their noise
    kept = directions(len(variance))
    variance[kept:] = variance[kept:].sum()
    return rows.mean(dim=0), variance


# -- seconds ---------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=4096)
def round_s(overlap: str, tau: int, ratio: int, in_flight: int | None) -> float:
    """Return the mean seconds of a round.

    Parameters
    ----------
    overlap : str
        The merge rule.
    tau : int
        Local steps.
    ratio : int
        D/Y.
    in_flight : int or None
        Steps between send and merge; None for all.
    """
    flight = 0 if overlap == "none" else in_flight
    return tau * seconds_per_step_in_flight(runtime(ratio), tau=tau, in_flight=flight)


def predicted_times(workers: Workers, task: Task, method: str, trial: Trial, ratio: int) -> list[float]:
    """Return the seconds until the expected loss reaches each target; infinite if it does not within the budget.

    Parameters
    ----------
    workers : Workers
        The task's quadratics.
    task : Task
        Whose targets they are.
    method : str
        Of ``PREDICTED``.
    trial : Trial
        Its numbers.
    ratio : int
        D/Y.
    """
    rule, flight = METHODS[method], steps_in_flight(method, trial.tau, ratio)
    length_s = round_s(rule.overlap, trial.tau, ratio, flight)
    rounds = math.ceil(budget_s(ratio) / length_s)
    outer = OuterStep(trial.lr, trial.momentum) if rule.outer else OuterStep()
    merge: Any = "blocking" if rule.overlap == "none" else rule.overlap
    with np.errstate(over="ignore", invalid="ignore"):
        moments = second_moments(
            workers, merge, eta=trial.rate, tau=trial.tau, rounds=rounds, delay=flight or 0, outer=outer
        )
        losses = task.floor + expected_loss(workers, moments)
    finite = int(np.argmin(np.isfinite(losses))) if not np.isfinite(losses).all() else len(losses)
    seconds = (length_s * np.arange(finite)).tolist()
    return [arrival(seconds, losses[:finite].tolist(), target) for target in task.targets]


def predict(task: Task, ratio: int, points: int) -> Record:
    """Return every method's least predicted seconds to every target, and the tau of each.

    Parameters
    ----------
    task : Task
        The task.
    ratio : int
        D/Y.
    points : int
        Of the search's stages, which is that of the runs.
    """
    workers, predictions = quadratic_of(task), {}
    for method in PREDICTED:

        def times_of(trials: list[Trial], method: str = method) -> list[list[float]]:
            return [predicted_times(workers, task, method, trial, ratio) for trial in trials]

        tried = search(task, method, points, times_of)
        best = [tried.best(target) for target in range(len(task.targets))]
        times = [tried.times[i][target] for target, i in enumerate(best)]
        predictions[method] = {
            "times": [t if math.isfinite(t) else None for t in times],
            "trials": [tried.trials[i].numbers() for i in best],
        }
    return predictions
