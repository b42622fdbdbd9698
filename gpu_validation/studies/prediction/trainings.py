"""Pilots of simulated workers, and trainings that are timed on several networks at once."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from bounds.runtime import Communication, Ring, RingGather, RuntimeModel, ShiftedExponential, TwoShotRing
from operators import Key
from ratedist.pilots.pilot import Pilot

from ...distributed.tensors import flat, floating_tensors
from ...local_sgd.clock import Clock, SimulatedClock, Synchronisation
from ...measurement.curves import objective
from ...measurement.local_steps import Replica, training_rounds
from ...measurement.simulation import engine_of
from ...measurement.spec import TrainingRun
from ...measurement.streams import MINI_BATCHES, STEP_TIMES
from ...piloting.pilot import pilot
from ...records.storage import Record
from ...verdicts.time_to_target import arrival, smoothed
from ...workloads import Draw, Workload
from .problems import JITTER, LATENCY_SHARE, SHARE, STEP_S, WINDOW, Choice, Problem

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
        """Return what messages take on it."""
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
    run = TrainingRun(
        problem.workload,
        choice.tau,
        LAW,
        seed,
        steps=steps,
        operator=choice.method(),
        exchange=choice.exchange,
        optimizer=problem.optimizer,
    )
    problem.workload.require_workers(problem.m)
    key = Key(seed).fold_in(STEP_TIMES)
    models = [RuntimeModel(LAW, communication=ring.communication(choice), m=problem.m) for ring in rings]
    bits = None if choice.operator else 32 * problem.d
    clocks = Clocks([SimulatedClock(model, m=problem.m, key=key) for model in models], bits)
    replicas = [Replica.of(run, rank) for rank in range(problem.m)]
    return replicas, clocks, training_rounds(engine_of(run, replicas, clocks), replicas)


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
    pilots = [
        _pilot(problem, *states[place], seed=seed, stage=stage, moments=moments, rounds=rounds)
        for stage, place in enumerate((0, halfway))
    ]
    return {"pilots": [each.to_dict() for each in pilots], "steps": steps, "halfway": halfway * every}


def _pilot(
    problem: Problem,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    seed: int,
    stage: int,
    moments: int,
    rounds: int,
) -> Pilot:
    workload = problem.workload
    return pilot(
        model,
        optimizer,
        workload.loss_on,
        _draws(workload, seed, 0, stage + 1),
        moments=moments,
        operators=problem.operators,
        rounds=rounds,
        round_taus=problem.taus,
        worker_batches=[_draws(workload, seed, rank, stage + 3) for rank in range(problem.m)],
        seed=seed,
    )


def _draws(workload: Workload, seed: int, rank: int, stream: int) -> Iterator[Draw]:
    """Yield the mini-batches of a worker, on a stream that no training has."""
    for k in itertools.count():
        yield workload.draw(key=Key(seed, step=k, rank=rank).fold_in(MINI_BATCHES).fold_in(stream))
