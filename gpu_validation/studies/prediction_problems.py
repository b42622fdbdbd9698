"""Pilots of simulated workers, and trainings that are timed on several networks at once."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from bounds.runtime import Communication, Ring, RingGather, RuntimeModel, ShiftedExponential, TwoShotRing
from operators import ErrorFeedback, Feedback, Key, Operator, compressor
from operators.exchange import Exchange
from operators.random import normal, uniform

from ..averaging.engine import Engine
from ..averaging.exchange.parts import exchange_named
from ..averaging.pacing.clock import Clock, SimulatedClock, Synchronisation
from ..judging.iteration_time import arrival, smoothed
from ..network import Shape
from ..piloting.pilot import pilot
from ..processes.tensors import flat, floating_tensors
from ..records.round import Round
from ..records.storage import Record
from ..workloads import (
    Characters,
    DigitImages,
    Draw,
    Kink,
    LeNet,
    LogisticRegression,
    MultiplicativeQuadratic,
    Quadratic,
    ResNet20,
    Ridge,
    SmallNetwork,
    Workload,
)
from ..workloads.data import Bundled, Dirichlet
from ..workloads.data.dataset import Dataset, Samples, Source
from ..workloads.network import Network
from .runs.curves import objective
from .runs.local_steps import Replica, training_rounds
from .runs.simulation import engine_of
from .runs.spec import MINI_BATCHES, STEP_TIMES, TrainingRun


class Gru(torch.nn.Module):
    """Map letters (n, window) to logits (n, letters, window) of the next letter by one gated recurrent unit."""

    def __init__(self, *, letters: int, width: int) -> None:
        super().__init__()
        self.letters, self.width = letters, width
        self.of_letter = torch.nn.Linear(letters, 3 * width)
        self.of_state = torch.nn.Linear(width, 3 * width)
        self.logits = torch.nn.Linear(width, letters)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next letter at every place."""
        weight = self.logits.weight
        one_hot = (letters.unsqueeze(-1) == torch.arange(self.letters, device=weight.device)).to(weight.dtype)
        state, states = torch.zeros(len(letters), self.width, dtype=weight.dtype, device=weight.device), []
        for given in self.of_letter(one_hot).unbind(dim=1):
            reset, update, new = given.split(self.width, dim=1)
            reset_state, update_state, new_state = self.of_state(state).split(self.width, dim=1)
            kept = torch.sigmoid(update + update_state)
            candidate = torch.tanh(new + torch.sigmoid(reset + reset_state) * new_state)
            state = kept * state + (1 - kept) * candidate
            states.append(state)
        result: torch.Tensor = self.logits(torch.stack(states, dim=1)).transpose(1, 2)
        return result


@dataclass(frozen=True)
class Recurrent(Characters):
    """The character-level language model with a gated recurrent unit in place of the transformer."""

    name = "recurrent"

    def network(self) -> torch.nn.Module:
        """Return the recurrent unit."""
        return Gru(letters=self.source.letters, width=self.width)


@dataclass(frozen=True)
class Ratings(Source):
    """Ratings of items by users: a product of factors with the rank 3, and normal noise.

    Parameters
    ----------
    users, items : int, optional
        Numbers of rows and columns.
    samples : int, optional
        Number of ratings, of random pairs.
    noise : float, optional
        Standard deviation of the noise; that of the product is about 1.
    seed : int, optional
        Seed of factors, pairs and noise.
    """

    users: int = 40
    items: int = 30
    samples: int = 1500
    noise: float = 0.3
    seed: int = 0

    def read(self) -> Dataset:
        """Return pairs (user, item) and their ratings."""
        keys = [Key(self.seed, rank=None).fold_in(part) for part in range(5)]
        rows, columns = normal(keys[0], self.users * 3), normal(keys[1], self.items * 3)
        product = rows.reshape(self.users, 3) @ columns.reshape(self.items, 3).T / 3**0.5
        i = (uniform(keys[2], self.samples) * self.users).astype(int)
        j = (uniform(keys[3], self.samples) * self.items).astype(int)
        ratings = torch.from_numpy(product[i, j] + self.noise * normal(keys[4], self.samples))
        inputs = torch.stack([torch.from_numpy(each) for each in (i, j)], dim=1).double()
        train, none = Samples(inputs, ratings), Samples(inputs[:0], ratings[:0])
        return Dataset(f"{self.samples} ratings", train, none, classes=0, synthetic=True)


class Factors(torch.nn.Module):
    """Map pairs (n, 2) of user and item to the product of their factors, shape (n,)."""

    def __init__(self, *, users: int, items: int, rank: int) -> None:
        super().__init__()
        self.users, self.items = (torch.nn.Linear(rank, n, bias=False) for n in (users, items))

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        """Return the predicted ratings."""
        i, j = pairs.long().unbind(dim=1)
        return (self.users.weight[i] * self.items.weight[j]).sum(dim=1)


@dataclass(frozen=True)
class Factorisation(Network):
    """Mean squared error of factors, as of a recommender.

    Parameters
    ----------
    source : Ratings, optional
        Source of the ratings.
    rank : int, optional
        Factors of each user and item.
    """

    source: Ratings = Ratings()
    rank: int = 4

    name = "factorisation"

    def network(self) -> torch.nn.Module:
        """Return the factors."""
        return Factors(users=self.source.users, items=self.source.items, rank=self.rank)

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the squared error of every rating."""
        return (outputs - targets.to(outputs.dtype)).square()


# -- problems --------------------------------------------------------------------------------------------------------

DESIGN, HELD_OUT, HELD_OUT_LATER = "design", "held-out", "held out later"  # the last after the second was looked at
DESIGN_OTHERS, FROZEN = "second design", "frozen"  # the last was fixed before any of the two was run
FRESH = "fresh"  # run before the intervals were widened, judged once after it
HALVES = DESIGN, HELD_OUT, HELD_OUT_LATER, DESIGN_OTHERS, FROZEN, FRESH
SIGN, TOP = "scaled_sign", "topk:0.05"
QSGD, TCDQ = "qsgd:16,bucket=512", "tcdq:omega=1"
TAUS = (1, 4, 16)
LONGER = 1.5  # times the synchronous run's steps: so long are the others, unless a problem says otherwise
SHARE = 0.9  # of the fall of the synchronous run is the target
LEAST_IN_SHARDS = 1000  # parameters; of shorter shards the headers would count, which a pilot's messages do not have
WINDOW = 1 / 8  # of the steps so far, over which losses are averaged


@dataclass(frozen=True)
class Problem:
    """Parameters
    ----------
    half : str
        One of ``HALVES``.
    workload : Workload
        What is trained.
    m : int
        Workers.
    steps : int, optional
        Of the synchronous run, which has the target in it.
    operators : tuple of str, optional
        That compress; contractive ones with error feedback.
    optimizer : str, optional
        As of a training run.
    taus : tuple of int, optional
        Local steps between averages.
    seeds : int, optional
        How many trainings of each choice.
    first_seed : int, optional
        Of the first training; pilots have others.
    longer : float, optional
        Steps of a training over those of the synchronous run.
    """

    half: str
    workload: Workload
    m: int
    steps: int = 256
    operators: tuple[str, ...] = (QSGD, TCDQ, SIGN)
    optimizer: str = "sgd"
    taus: tuple[int, ...] = TAUS
    seeds: int = 3
    first_seed: int = 0
    longer: float = LONGER

    @property
    def d(self) -> int:
        """Trained parameters."""
        return sum(p.numel() for p in self.workload.model().parameters())

    def choices(self) -> list[Choice]:
        """Return the choices that are trained, synchronous uncompressed training first."""
        names = ("", *self.operators)
        choices = [Choice(name, "gather", tau) for name in names for tau in self.taus]
        unbiased = [name for name in self.operators if isinstance(Choice(name, "gather", 1).method(), Operator)]
        shot = unbiased[-1:] if self.d >= LEAST_IN_SHARDS else []
        return choices + [Choice(name, "two_shot", tau) for name in shot for tau in self.taus[:2]]


@dataclass(frozen=True)
class Choice:
    """Parameters
    ----------
    operator : str
        Its specification; "" without compression.
    exchange : Exchange
        How messages travel.
    tau : int
        Local steps between two averages.
    """

    operator: str
    exchange: Exchange
    tau: int

    @property
    def name(self) -> str:
        """In words."""
        words = [self.operator or "binary32", f"tau = {self.tau}"]
        return ", ".join(words[:1] + [self.exchange.replace("_", " ")] * (self.exchange != "gather") + words[1:])

    def method(self) -> Operator | Feedback | None:
        """Return the operator or feedback method, or None without compression."""
        if not self.operator:
            return None
        operator = compressor(self.operator)
        assert isinstance(operator, Operator)  # none has a memory of its own
        return ErrorFeedback(operator) if self.operator in (SIGN, TOP) else operator


# Learning rates are those of the workloads or of the other studies; steps and seeds are what the time allows.
PROBLEMS: dict[str, Problem] = {
    "quadratic": Problem(DESIGN, Quadratic(copies=5, noise=0.02, eta=0.08), m=4),
    "multiplicative": Problem(DESIGN, MultiplicativeQuadratic(copies=5, noise=0.01, noise_growth=1.0, eta=0.1), m=8),
    "ridge": Problem(DESIGN, Ridge(batch=16, eta=0.02), m=2),
    "logistic": Problem(DESIGN, LogisticRegression(), m=4),
    "logistic, Dirichlet(.5)": Problem(DESIGN, LogisticRegression(split=Dirichlet(8, alpha=0.5)), m=8),
    "mlp": Problem(DESIGN, SmallNetwork(), m=4),
    "mlp, Dirichlet(.5)": Problem(DESIGN, SmallNetwork(split=Dirichlet(4, alpha=0.5)), m=4),
    "mlp, momentum": Problem(DESIGN, SmallNetwork(eta=0.03), m=2, optimizer="momentum"),
    "characters, 4": Problem(DESIGN, Characters(), m=4, seeds=1),
    "quadratic, many": Problem(HELD_OUT, Quadratic(copies=20, noise=0.02, eta=0.1), m=2),
    "kink": Problem(HELD_OUT, Kink.hard(tau=16, d=100, noise=2.0, eta=0.08), m=4, seeds=2),
    "ridge, classes": Problem(HELD_OUT, Ridge(source=Bundled("breast_cancer"), batch=16, eta=0.01), m=8, seeds=2),
    "logistic, classes": Problem(HELD_OUT, LogisticRegression(source=Bundled("breast_cancer"), batch=8), m=2),
    "logistic, Dirichlet(.2)": Problem(HELD_OUT, LogisticRegression(split=Dirichlet(4, alpha=0.2)), m=4),
    "mlp, wide": Problem(HELD_OUT, SmallNetwork(hidden=64, eta=0.1), m=8, seeds=1),
    "mlp, Adam": Problem(HELD_OUT, SmallNetwork(eta=0.01), m=4, optimizer="adam"),
    "lenet": Problem(HELD_OUT, LeNet(), m=4, seeds=1),
    "characters": Problem(HELD_OUT, Characters(), m=2, seeds=2),
}

RESNET = ResNet20(source=DigitImages(side=16, held_out=0.65), batch=8, decay=0.0, eta=0.03, augmentation="none")
FEW: dict[str, Any] = {"operators": (QSGD, SIGN), "steps": 96}  # a gradient of eight images takes 8 ms on a core


_anew: Callable[..., Problem] = partial(Problem, HELD_OUT_LATER, seeds=1, first_seed=100)
# The pilot was corrected after HELD_OUT had been run. These problems were run once, after the correction.
PROBLEMS |= {
    "resnet20": _anew(RESNET, 2, **FEW),
    "characters, 8": _anew(Characters(batch=8, start=1), 2),
    "kink, slight": _anew(Kink.hard(tau=4, d=60, noise=1.0, eta=0.05), 2, seeds=2),
    "lenet, 16": _anew(LeNet(batch=16, eta=0.2, start=1), 2),
    "mlp, narrow": _anew(SmallNetwork(hidden=16, eta=0.3), 2),
    "mlp, Dirichlet(.3)": _anew(SmallNetwork(split=Dirichlet(4, seed=1, alpha=0.3)), 4),
    "quadratic, noisy": _anew(Quadratic(copies=10, noise=0.05, eta=0.06), 8, seeds=2),
    "resnet20, Dirichlet(.5)": _anew(replace(RESNET, split=Dirichlet(2, seed=1, alpha=0.5)), 2, **FEW),
    "logistic, Dirichlet(.3)": _anew(LogisticRegression(batch=16, split=Dirichlet(2, seed=1, alpha=0.3)), 2),
    "mlp, momentum, 24": _anew(SmallNetwork(hidden=24, eta=0.02), 4, optimizer="momentum"),
    "ridge, slow": _anew(Ridge(batch=8, eta=0.015), 4, seeds=2),
}


def _table(name: str, hidden: int, eta: float, split: Dirichlet | None = None) -> SmallNetwork:
    return SmallNetwork(source=Bundled(name), hidden=hidden, eta=eta, batch=16, split=split)


def _classes(name: str, eta: float, split: Dirichlet) -> LogisticRegression:
    return LogisticRegression(source=Bundled(name), batch=8, eta=eta, split=split)


def _uneven(m: int, seed: int, alpha: float) -> Dirichlet:
    return Dirichlet(m, seed=seed, alpha=alpha)


# Models, data and optimizers that the halves above do not have: study `prediction-others`.
OTHERS: dict[str, Any] = {"operators": (QSGD, SIGN, TOP), "seeds": 2, "first_seed": 200}
_second: Callable[..., Problem] = partial(Problem, DESIGN_OTHERS, **OTHERS)
_frozen: Callable[..., Problem] = partial(Problem, FROZEN, **OTHERS)
SHORT: dict[str, Any] = {"operators": (QSGD, SIGN), "steps": 96, "seeds": 2, "first_seed": 300, "longer": 2.5}
_fresh: Callable[..., Problem] = partial(Problem, FRESH, **SHORT)
CANCER = "breast_cancer"
ADAM = SmallNetwork(eta=0.003, split=_uneven(4, 2, 0.2))  # here local steps need up to 4.2 times the synchronous ones
MOMENTUM = SmallNetwork(hidden=28, eta=0.02, start=3, split=_uneven(4, 3, 0.1))
FEW_RATINGS = Factorisation(source=Ratings(users=24, items=20, seed=7), rank=3, eta=0.04)
SMALLEST = SmallNetwork(hidden=10, batch=8, eta=0.01, start=8, split=_uneven(2, 8, 0.3))
SMALL = SmallNetwork(hidden=14, batch=8, eta=0.2, start=9, split=_uneven(4, 9, 0.15))
PROBLEMS |= {
    "mlp, Adagrad": _second(SmallNetwork(hidden=20, eta=0.02), 4, optimizer="adagrad"),
    "gru, Adam": _second(Recurrent(batch=8, eta=0.02), 2, optimizer="adam"),
    "conv net, momentum": _second(LeNet(batch=8, eta=0.02, start=1), 2, optimizer="momentum"),
    "factors, AdamW": _second(Factorisation(eta=0.03), 4, optimizer="adamw"),
    "wine, Dirichlet(.3), momentum": _second(_table("wine", 8, 0.004, _uneven(4, 2, 0.3)), 4, optimizer="momentum"),
    "mlp, Dirichlet(.2), Adam": _second(ADAM, 4, optimizer="adam", longer=2.5),
    "gru, Adagrad": _frozen(Recurrent(batch=4, width=10, eta=0.1, start=2), 4, optimizer="adagrad"),
    "conv net, AdamW": _frozen(LeNet(batch=16, eta=0.003, start=2), 2, optimizer="adamw"),
    "factors, momentum": _frozen(
        Factorisation(source=Ratings(users=30, seed=1), rank=6, eta=0.1), 2, optimizer="momentum"
    ),
    "breast cancer, Dirichlet(.3), Adam": _frozen(_table(CANCER, 12, 0.001, _uneven(2, 3, 0.3)), 2, optimizer="adam"),
    "mlp, Dirichlet(.1), momentum": _frozen(MOMENTUM, 4, optimizer="momentum"),
    "wine, Dirichlet(.5)": _frozen(_classes("wine", 0.03, _uneven(4, 4, 0.5)), 4),
    "wine, Dirichlet(.4), Adagrad": _fresh(_table("wine", 10, 0.03, _uneven(4, 5, 0.4)), 4, optimizer="adagrad"),
    "breast cancer, Dirichlet(.2), AdamW": _fresh(_classes(CANCER, 0.01, _uneven(4, 6, 0.2)), 4, optimizer="adamw"),
    "factors, Adam": _fresh(FEW_RATINGS, 2, optimizer="adam"),
    "mlp, Dirichlet(.3), momentum": _fresh(SMALLEST, 2, optimizer="momentum"),
    "mlp, Dirichlet(.15)": _fresh(SMALL, 4),
}

RATIOS = (0.5, 4.0, 20.0, 50.0)  # D/Y of the uncompressed sum
LATENCY_SHARE = 0.2  # of D
STEP_S = 10.0  # so long that the milliseconds of coding, which the simulated clock leaves out, do not matter
JITTER = 0.1  # random part of a step


@dataclass(frozen=True)
class RealNetwork:
    """Parameters
    ----------
    m : int
        Processes.
    shape : Shape
        Of the network.
    choices : tuple of Choice
        What is timed.
    """

    m: int
    shape: Shape
    choices: tuple[Choice, ...]


TIMED = (
    Choice("", "gather", 1),
    Choice("", "gather", 8),
    Choice(SIGN, "gather", 1),
    Choice(QSGD, "gather", 4),
    Choice(TCDQ, "two_shot", 1),
)
NETWORKS = {
    "2 processes, 10 Mbit/s, 1 ms": RealNetwork(2, Shape(rate_bit_per_s=1e7, delay_s=1e-3), TIMED),
    "4 processes, 50 Mbit/s, 2 ms": RealNetwork(4, Shape(rate_bit_per_s=5e7, delay_s=2e-3), TIMED),
}


@dataclass(frozen=True)
class Design:
    """What is piloted and trained, and how well a prediction is to be.

    Parameters
    ----------
    problems : tuple of str, optional
        By name.
    ratios : tuple of float, optional
        D/Y of the uncompressed sum on each network.
    networks : tuple of str, optional
        Of real processes, by name.
    moments : int, optional
        Of a pilot.
    rounds : int, optional
        Trial rounds of a pilot.
    level : float, optional
        Confidence of a prediction's interval.
    real_steps : int, optional
        Of a training by real processes.
    """

    problems: tuple[str, ...] = tuple(name for name, problem in PROBLEMS.items() if problem.half in (DESIGN, HELD_OUT))
    ratios: tuple[float, ...] = RATIOS
    networks: tuple[str, ...] = tuple(NETWORKS)
    moments: int = 8
    rounds: int = 3
    level: float = 0.9
    real_steps: int = 96


# -- trainings -------------------------------------------------------------------------------------------------------

LAW = ShiftedExponential((1 - JITTER) * STEP_S, JITTER * STEP_S)


class Clocks(Clock):
    """The same run's time on several networks.

    Parameters
    ----------
    clocks : list of SimulatedClock
        One a network.
    bits : int or None
        Of every message; None for what was sent.  Uncompressed models of some problems are binary64, and a plan sends
        binary32.
    """

    def __init__(self, clocks: list[SimulatedClock], bits: int | None) -> None:
        super().__init__()
        self.clocks, self.bits = clocks, bits

    def seconds(self) -> float:
        """Return simulated seconds on the slowest network."""
        return max((clock.seconds() for clock in self.clocks), default=0.0)

    def _pass(self, sync: Synchronisation) -> None:
        bits = sync.bits if self.bits is None else [self.bits] * len(sync.bits)
        for clock in self.clocks:
            clock.advance_round(sync.steps, bits, sync.participants, sync.mean_bits, sync.flight)

    def computed(self, ranks: Any) -> list[float]:
        """Return the computing seconds on the first network."""
        return self.clocks[0].computed(ranks)

    def averaged(self, ranks: Any) -> list[float]:
        """Return the averaging seconds on the first network."""
        return self.clocks[0].averaged(ranks)

    def state_dict(self) -> dict[str, Any]:
        """Return the clocks of all networks."""
        return {"clocks": [clock.state_dict() for clock in self.clocks]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        for clock, stated in zip(self.clocks, state["clocks"], strict=True):
            clock.load_state_dict(stated)


@dataclass(frozen=True)
class RingOf:
    """A ring of equal links.

    Parameters
    ----------
    latency_s : float, seconds
        Of a hop.
    bit_per_s : float, bit/s
        Of a link.
    """

    latency_s: float
    bit_per_s: float

    @classmethod
    def ratio(cls, ratio: float, *, d: int, m: int) -> RingOf:
        """Return the ring on which an uncompressed sum takes so many steps.

        Parameters
        ----------
        ratio : float
            D/Y.
        d : int
            Trained parameters.
        m : int
            Workers.
        """
        hops, sum_s = 2 * (m - 1), ratio * STEP_S
        return cls(LATENCY_SHARE * sum_s / hops, hops / m * 32 * d / ((1 - LATENCY_SHARE) * sum_s))

    def communication(self, choice: Choice) -> Communication:
        """Return the model of the seconds of messages on this network."""
        link = self.latency_s, self.bit_per_s / 8
        if not choice.operator:
            return Ring(*link)
        return RingGather(*link) if choice.exchange == "gather" else TwoShotRing(*link)


def carried_out(problem: Problem, choice: Choice, rings: Sequence[RingOf], *, seed: int, steps: int) -> Record:
    """Train with one choice; losses at every ``max(taus)`` steps, and what all steps took on every ring.

    Parameters
    ----------
    problem : Problem
        What is trained.
    choice : Choice
        How.
    rings : sequence of RingOf
        The networks on which the training is timed.
    seed : int
        Of all randomness.
    steps : int
        Local ones.
    """
    replicas, clocks, rounds = _started(problem, choice, rings, seed=seed, steps=steps)
    watched, looker = floating_tensors(replicas[0].model), problem.workload.model()
    every, done = max(problem.taus), 0
    at_steps, losses = [0], [objective(problem.workload, looker, flat(watched))]
    for accounts in rounds:
        done += accounts[0].tau
        if done % every == 0:
            at_steps.append(done)
            losses.append(objective(problem.workload, looker, flat(watched)))
        if done >= steps:
            break
    return {
        "choice": choice.name,
        "step": at_steps,
        "losses": [float(f"{loss:.7g}") for loss in losses],
        "seconds_per_step": [float(f"{clock.seconds() / done:.7g}") for clock in clocks.clocks],
    }


def _started(
    problem: Problem, choice: Choice, rings: Sequence[RingOf], *, seed: int, steps: int
) -> tuple[list[Replica], Clocks, Iterator[Any]]:
    exchange = exchange_named(choice.exchange, choice.method())
    fields: dict[str, Any] = {"exchange": exchange, "optimizer": problem.optimizer}
    run = TrainingRun(problem.workload, choice.tau, LAW, seed, steps=steps, **fields)
    problem.workload.require_workers(problem.m)
    key = Key(seed).fold_in(STEP_TIMES)
    models = [RuntimeModel(LAW, communication=ring.communication(choice), m=problem.m) for ring in rings]
    bits = None if choice.operator else 32 * problem.d
    clocks = Clocks([SimulatedClock(model, m=problem.m, key=key) for model in models], bits)
    replicas = [Replica.of(run, rank) for rank in range(problem.m)]
    engine = engine_of(run, replicas, clocks)
    rounds = synchronous_rounds if choice == problem.choices()[0] else training_rounds
    return replicas, clocks, rounds(engine, replicas)


def synchronous_rounds(engine: Engine, replicas: Sequence[Replica]) -> Iterator[list[Round]]:
    """Step with the mean gradient, as DistributedDataParallel does; with Adam it is not the mean of local steps."""
    while True:
        losses = [replica.gradient(engine.periods.total_steps).detach() for replica in replicas]
        for parameters in zip(*(replica.model.parameters() for replica in replicas), strict=True):
            gradients = [p.grad for p in parameters if p.grad is not None]
            mean = torch.stack(gradients).mean(dim=0)
            for gradient in gradients:
                gradient.copy_(mean)
        for replica in replicas:
            replica.optimizer.step()
        accounts = engine.count(losses, [])
        assert accounts is not None  # a round has one step
        yield accounts


def steps_to_share(step: Sequence[int], losses: Sequence[float]) -> float:
    """Return the steps until a run had made ``SHARE`` of its fall, in the mean over a window.

    Parameters
    ----------
    step : sequence of int
        At which losses were taken.
    losses : sequence of float
        The first that of the start.
    """
    return arrival(step, losses, target_of(step, losses), share=WINDOW)


def target_of(step: Sequence[int], losses: Sequence[float]) -> float:
    """Return the loss at which a run had made ``SHARE`` of its fall.

    Parameters
    ----------
    step : sequence of int
        At which losses were taken.
    losses : sequence of float
        The first that of the start.
    """
    last = float(smoothed(step, losses, step[-1], window_s=WINDOW * step[-1]))
    return losses[0] - SHARE * (losses[0] - last)


def piloted(problem: Problem, *, seed: int, moments: int, rounds: int) -> Record:
    """Return pilots of a synchronous training, at its start and halfway to its target, and its steps to that.

    Parameters
    ----------
    problem : Problem
        What is trained.
    seed : int
        Of the training that leads there, and of the batches.
    moments : int
        Of each pilot.
    rounds : int
        Trial rounds of each.
    """
    synchronous, workload, every = problem.choices()[0], problem.workload, max(problem.taus)
    replicas, _, trained = _started(problem, synchronous, [], seed=seed, steps=problem.steps)
    model, looker = replicas[0].model, workload.model()
    states = [copy.deepcopy((model, replicas[0].optimizer))]
    losses = [objective(workload, looker, flat(floating_tensors(model)))]
    for k, _ in enumerate(itertools.islice(trained, problem.steps), 1):
        if k % every == 0:
            states.append(copy.deepcopy((model, replicas[0].optimizer)))
            losses.append(objective(workload, looker, flat(floating_tensors(model))))
    steps = steps_to_share(range(0, problem.steps + 1, every), losses)
    halfway = round(steps / 2 / every)
    fields: dict[str, Any] = {"operators": problem.operators, "moments": moments, "seed": seed}
    fields |= {"rounds": rounds, "round_taus": problem.taus}
    pilots = []
    for stage, place in enumerate((0, halfway)):
        batches = [_draws(workload, seed, rank, stage + 3) for rank in range(problem.m)]
        draws = _draws(workload, seed, 0, stage + 1)
        pilots.append(pilot(*states[place], workload.loss_on, draws, worker_batches=batches, **fields))
    return {"pilots": [each.to_dict() for each in pilots], "steps": steps, "halfway": halfway * every}


def _draws(workload: Workload, seed: int, rank: int, stream: int) -> Iterator[Draw]:
    """Yield the mini-batches of a worker, on a stream that no training has."""
    for k in itertools.count():
        yield workload.draw(key=Key(seed, step=k, rank=rank).fold_in(MINI_BATCHES).fold_in(stream))
