"""Periodic averaging against torch's own model averager, in one run of real processes, as JSON lines.

Run ``python docs/measure.py benchmarks/averaging.py`` on a quiet machine; ``--only averaging loop bookkeeping probe``
takes some parts.  0 Mbit/s stands for the loopback interface, where an averaging is hardly more than copies in memory;
any other rate for a network of the benchmark's own (root, or user namespaces).

averaging : seconds of one averaging of a three-layer network's parameters after a barrier, on rank 0.  "whole" is
PeriodicAveraging without operator, "identity" with the operator that leaves a vector as it is, "torch" is
PeriodicModelAverager; they take turns, so that noise hits all alike.  ratio is the median over torch's, with its 95 %
bootstrap interval.  payload_bytes_per_rank is what rank 0 hands over in one averaging (torch's: a ring all-reduce).
loop : seconds a step of training with an averaging every tau steps, by PeriodicAveraging and by a plain loop that
averages by torch's averager; blocks of steps take turns.  ratio - 1 is the overhead of the harness.
bookkeeping : seconds a step of that training, every step filled up to 1 ms by waiting, with a schedule that adapts and
comes to tau = 8, over those with tau = 8 fixed.  "auto" measures times and makes no probe; "adacomm" exchanges losses
after the averaging, "adacomm, piggyback" with it.  ratio - 1 is what choosing tau takes beside gradients.
probe : seconds a step of that training while gradients are probed as often as "auto" does it, over those of the same
training without measurements, tau being the same.  ratio - 1 is the overhead of choosing tau by measurements.
"""

from __future__ import annotations

import importlib
import itertools
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from comparing import quotient
from ranks import Action, Sent, at_rate, in_turns, network, on_network, ring_bytes, size_of
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

from bounds.schedules import AdaComm, GradientRetention, GradientRetentionState, Observation, Schedule
from gpu_validation.averaging.pacing.probing import MeasuredInputs
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.settings import Pacing
from gpu_validation.processes.launch import RankContext
from gpu_validation.processes.linux import Scheduling
from operators import Identity

INPUTS, OUTPUTS, BATCH = 64, 10, 64
TAU, BLOCK = 8, 48  # steps between averagings, and in one timed block of the loop
LONG_BLOCK = 400  # steps in which several probes are made
FILLED_S = 1e-3  # of a step with bookkeeping
WARM_UP = 5


class Training:
    """A network with plain SGD on fixed data."""

    def __init__(self, hidden: int) -> None:
        self.model = network(INPUTS, hidden, OUTPUTS)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.x, self.y = torch.randn(BATCH, INPUTS), torch.randint(OUTPUTS, (BATCH,))

    def closure(self) -> torch.Tensor:
        """Return the loss, and leave its gradient."""
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        return loss

    def step(self) -> torch.Tensor:
        """Make one local step; return the loss before it."""
        loss = self.closure()
        self.optimizer.step()
        return loss


def averagings(hidden: int) -> dict[str, tuple[Action, Sent]]:
    """Name -> (one averaging, bytes that this rank has handed over so far)."""
    found: dict[str, tuple[Action, Sent]] = {}
    for name, operator in (("whole", None), ("identity", Identity())):
        averaging = PeriodicAveraging(network(INPUTS, hidden, OUTPUTS), operator=operator)
        found[name] = averaging.average, lambda own=averaging: own.transport.payload_bytes  # type: ignore[misc]
    training = Training(hidden)
    training.step()  # the averager takes parameters that have a gradient
    averager, calls = PeriodicModelAverager(period=1), [0]

    def average() -> None:
        calls[0] += 1
        averager.average_parameters(training.model.parameters())

    found["torch"] = average, lambda: ring_bytes(size_of(training.model), calls[0])
    return found


def loops(hidden: int) -> dict[str, Action]:
    """Name -> one step of training, averagings included."""
    ours, theirs = Training(hidden), Training(hidden)
    averaging = PeriodicAveraging(ours.model, schedule=TAU)
    averager = PeriodicModelAverager(period=TAU)

    def harness() -> None:
        ours.step()
        averaging.step()

    def plain() -> None:
        theirs.step()
        averager.average_parameters(theirs.model.parameters())

    return {"harness": harness, "plain": plain}


@dataclass(frozen=True)
class Steady(Schedule):
    """Measures and probes as the gradient retention rule does, at a tau that stays."""

    probes: bool = True
    measures: ClassVar[bool] = True

    def init(self) -> GradientRetentionState:
        return GradientRetentionState()

    def __call__(self, state: Any, observation: Observation) -> tuple[GradientRetentionState, int]:
        state, _ = GradientRetention()(state, observation)
        return replace(state, tau=TAU, probe=state.probe and self.probes), TAU


def probed(hidden: int) -> tuple[dict[str, Action], PeriodicAveraging]:
    """Name -> one step of training with and without probes; and the averager of the first."""
    measured, plain = Training(hidden), Training(hidden)
    measuring = PeriodicAveraging(measured.model, measured.optimizer, schedule=Steady())
    averaging = PeriodicAveraging(plain.model, schedule=TAU)

    def without() -> None:
        plain.step()
        averaging.step()

    return {"probes": lambda: measuring.step(measured.step(), measured.closure), "plain": without}, measuring


def adaptive(hidden: int) -> dict[str, Action]:
    """Name -> one step of FILLED_S, averagings included, by a schedule that chooses tau = TAU again and again."""
    steady = AdaComm(tau_0=TAU, interval_s=1e9)
    kinds: dict[str, dict[str, Any]] = {
        "fixed": {"schedule": TAU},
        "auto": {"schedule": Steady(probes=False)},
        "adacomm": {"schedule": steady},
        "adacomm, piggyback": {"schedule": Pacing(steady, piggyback=True)},
    }
    return {name: filled_step(hidden, **settings) for name, settings in kinds.items()}


def filled_step(hidden: int, **settings: Any) -> Action:
    """One step of training that takes FILLED_S, and the averager's."""
    training = Training(hidden)
    averaging = PeriodicAveraging(training.model, training.optimizer, **settings)

    def step() -> None:
        ends = time.perf_counter() + FILLED_S
        loss = training.step()
        while time.perf_counter() < ends:
            pass
        averaging.step(loss, training.closure)

    return step


def turns_of(actions: dict[str, Action], repeats: int) -> dict[str, np.ndarray]:
    """Name -> seconds of its repeats, which take turns."""
    return dict(zip(actions, in_turns(list(actions.values()), repeats, WARM_UP), strict=True))


def ratio(seconds: np.ndarray, plain: np.ndarray) -> dict[str, Any]:
    """Ratio of the medians of paired samples, its interval, and their number."""
    over, interval = quotient(seconds, plain)
    return {"ratio": over, "interval": interval, "repeats": len(plain)}


def measured_averagings(hidden: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Records of single averagings, on rank 0."""
    sides = averagings(hidden)
    before = {name: sent() for name, (_, sent) in sides.items()}
    seconds = turns_of({name: act for name, (act, _) in sides.items()}, repeats)
    for name, (_, sent) in sides.items():
        yield {
            "method": name,
            "median_s": float(np.median(seconds[name])),
            **ratio(seconds[name], seconds["torch"]),
            "payload_bytes_per_rank": (sent() - before[name]) // (repeats + WARM_UP),
        }


def measured_loops(hidden: int, repeats: int) -> Iterator[dict[str, Any]]:
    """The record of training loops, on rank 0."""
    seconds = turns_of(blocks(loops(hidden), BLOCK), max(10, repeats // 4))
    yield {"method": "harness", **per_step(seconds["harness"], seconds["plain"], BLOCK)}


def measured_bookkeeping(hidden: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Records of schedules that adapt, on rank 0."""
    seconds = turns_of(blocks(adaptive(hidden), BLOCK), max(10, repeats // 4))
    for name in sorted(seconds.keys() - {"fixed"}):
        yield {"method": name, **per_step(seconds[name], seconds["fixed"], BLOCK)}


def measured_probes(hidden: int, repeats: int) -> Iterator[dict[str, Any]]:
    """The record of training with and without probes, on rank 0."""
    steps, measuring = probed(hidden)
    seconds = turns_of(blocks(steps, LONG_BLOCK), max(10, repeats // 8))
    assert isinstance(measuring.engine.inputs, MeasuredInputs)
    gradients = 1 + measuring.engine.inputs.evaluations / measuring.total_steps
    over = per_step(seconds["probes"], seconds["plain"], LONG_BLOCK)
    yield {"method": "auto", **over, "gradients_per_step": gradients}


BENCHMARKS = {
    "averaging": measured_averagings,
    "loop": measured_loops,
    "bookkeeping": measured_bookkeeping,
    "probe": measured_probes,
}


def blocks(steps: dict[str, Action], length: int) -> dict[str, Action]:
    """Every step, so many times in a row."""
    return {name: lambda step=step: [step() for _ in range(length)] for name, step in steps.items()}  # type: ignore[misc]


def per_step(seconds: np.ndarray, plain: np.ndarray, length: int) -> dict[str, Any]:
    """Medians of blocks of that length, a step, and their ratio."""
    medians = {"median_s_per_step": seconds, "plain_s_per_step": plain}
    return {
        "tau": TAU,
        **{name: float(np.median(own)) / length for name, own in medians.items()},
        **ratio(seconds, plain),
    }


def measured(sizes: list[int], names: list[str], repeats: int, _: RankContext) -> Iterator[dict[str, Any]]:
    """All records of one network."""
    for hidden in sizes:
        d = size_of(network(INPUTS, hidden, OUTPUTS))
        for name in names:
            for record in BENCHMARKS[name](hidden, repeats):
                yield {"benchmark": name, "d": d, **record}


def main(
    processes: tuple[int, ...] = (2, 4),
    hidden: tuple[int, ...] = (64, 256, 700),
    mbit: tuple[float, ...] = (0.0, 1000.0),
    repeats: int = 200,
    only: tuple[str, ...] = tuple(BENCHMARKS),
    scheduling: Scheduling = "normal",
) -> Iterator[dict[str, Any]]:
    warnings.filterwarnings("ignore", "When period is 1")  # it is what one averaging takes, not how to train
    importlib.import_module("torch._dynamo")  # which every optimizer imports when it first steps; before the fork
    work = partial(measured, hidden, only, repeats)
    for size, rate in itertools.product(processes, mbit):
        yield from on_network(work, size, at_rate(rate), scheduling, mbit_per_s=rate or None)
