"""Pilot: measure a few steps of a training run for a plan, then undo them. ::

    found = pilot(model, optimizer, lambda model, batch: loss(model(batch[0]), batch[1]), loader, path="pilot.json")
    rd.plan(d=found.d, cluster=found.cluster(workers=64), codec=found.codecs(), operators=list(found.codecs()))

Every rank of a process group calls it, or a single process.  At some moments of the path every operator sends a batch's
gradient, and the gradient of the same batch is computed again after some local steps.  The steps in between are timed.
"""

from __future__ import annotations

import json
import math
import resource
import time
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from operators import Key, Operator
from ratedist.pilots.pilot import Pilot
from ratedist.pilots.timings import ExchangeTimings, LinkTimings

from ..processes.tensors import wait_for
from ..records.storage import write_atomically
from .own_training import BeforeStep, Loss, Training, again_and_again
from .rounds import tried_rounds
from .timings import sums_at_once, timed_exchanges, timed_links
from .trials import Trials

OPERATORS = ("cast:bf16,rounding=stochastic", "qsgd:16,bucket=512", "tcdq:omega=0.1", "tcdq:omega=1", "scaled_sign")
TAUS = (1, 2, 4, 8, 16)
ROUND_TAUS = (1, 4, 16)
SHARE = 0.1  # of the steps of a training
MOST_ROUNDS = 4  # that are tried unasked
FORWARD = 1 / 3  # cost of a pass without gradient, over one with
FRESH = 16  # batches of every worker for the loss after a trial
TRIED, TIMED = 2, 3  # folded into the key
WARM_UP = 3
KIB = 1024


def pilot(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Loss,
    batches: Iterable[Any],
    *,
    moments: int = 8,
    taus: Sequence[int] = TAUS,
    operators: Sequence[str | Operator] = OPERATORS,
    process_group: dist.ProcessGroup | None = None,
    ranks_per_node: int = 1,
    most_bytes: int = 1 << 24,
    steps: int | None = None,
    share: float = SHARE,
    rounds: int | None = None,
    round_taus: Sequence[int] = ROUND_TAUS,
    worker_batches: Sequence[Iterable[Any]] = (),
    before_step: BeforeStep | None = None,
    seed: int = 0,
    path: str | Path | None = None,
) -> Pilot:
    """Measure a training run for some steps, undo them, and return the measurements.

    Parameters
    ----------
    model : Module
        Model without wrapper: every rank trains its own during the pilot.
    optimizer : Optimizer
        Optimizer of the model.
    loss : callable
        Map from (model, batch) to a scalar tensor.
    batches : iterable
        Batches, such as a DataLoader.  The pilot uses 3 + moments (max(taus) + 3) of them, plus
        rounds (max(round_taus) + 16) of every worker.
    moments : int, optional
        Points of the path at which gradients are measured, >= 2.
    taus : sequence of int, optional
        Numbers of local steps after which a gradient is computed again, increasing, >= 1.
    operators : sequence of str or Operator, optional
        Operators to try, without memory.  Those that are contractive or have omega < 1 are also tried with error
        feedback.
    process_group : ProcessGroup or None, optional
        Process group of the ranks; None takes all ranks, if there is a group.
    ranks_per_node : int, optional
        Number of consecutive ranks that share a node; with more than 1, links are timed on both levels.
    most_bytes : int, bytes, optional
        Length of the longest vector by which links are timed.
    steps : int or None, optional
        Steps of the training to its target, by which the cost of the pilot is judged; None if they are not known.
    share : float, optional
        Largest share of these steps that the pilot may cost, in (0, 1].
    rounds : int or None, optional
        Number of trials of rounds against synchronous steps, with every operator and without; 0 for none, else >= 2.
        None takes as many, up to 4, as fit into the share of ``steps``; none if there are no ``steps`` or no workers.
    round_taus : sequence of int, optional
        Local steps of these rounds, increasing from 1, each a divisor of the largest.
    worker_batches : sequence of iterable, optional
        For a single process: batches of the simulated workers of the rounds, one iterable per worker.  Ranks of a group
        are workers themselves and use their ``batches``.
    before_step : callable, optional
        Map from a model to what happens to its gradients between backward pass and step, such as
        ``lambda model: clip_grad_norm_(model.parameters(), 1.0)``.
    seed : int, optional
        Seeds the operators' random streams.
    path : str or Path or None, optional
        File that rank 0 writes atomically with the result.

    Returns
    -------
    Pilot
        Measurements as plain numbers, on every rank; nothing of the model or the data.

    Raises
    ------
    ValueError
        For arguments out of range, too few batches, a gradient that is zero or not finite, an optimizer that needs a
        closure, or learning rates that are all 0.
    RuntimeError
        If another rank has ended, at the latest after the time limit of the group.
    OSError
        If the file cannot be written.

    Notes
    -----
    Survival is that of one worker's gradient on the same batch along its own path, not that of an average.  Steps
    include the time to load their batch.  Times depend on the load of the machine during the pilot.

    Learning rates stay as they are: schedulers are not called.  Step hooks of the optimizer do not run.  Afterwards
    parameters, buffers, gradients, the optimizer, the generators of torch, ``random``, NumPy and of the loaders are as
    before.  An iterator has lost the batches that were used.
    """
    distance = _checked(moments, taus)
    if rounds is None:
        most = MOST_ROUNDS if steps is not None and _has_workers(worker_batches, process_group) else 0
        numbers = [*range(most, 1, -1), 0]
    else:
        numbers = [rounds]
    costs = [(n, passes(moments, taus, n, round_taus, len(operators))) for n in numbers]
    rounds, cost = next((each for each in costs if steps is None or each[1] <= share * steps), costs[-1])
    _check_cost(cost, steps, share)
    _check_rounds(rounds, round_taus, worker_batches)
    training = Training(model, optimizer, loss, again_and_again(batches), before_step)
    loaders = (batches, *worker_batches)
    grouped = dist.is_available() and dist.is_initialized()
    place = dist.get_rank(process_group) if grouped else 0
    trials = Trials(operators, training.d, Key(seed, rank=place))
    look = _Look(training, trials, tuple(taus))
    with training.undone(loaders=loaders):
        for _ in range(WARM_UP):
            training.step(training.batch())
        for moment in range(moments):
            look.at_a_moment(distance, feed=moment == moments - 1)
    tried = None
    if rounds:
        streams = [again_and_again(each) for each in worker_batches] or [training.batches]
        with training.undone(loaders=loaders):
            tried = tried_rounds(
                training,
                streams,
                trials.operators,
                taus=round_taus,
                moments=rounds,
                fresh=FRESH,
                key=Key(seed).fold_in(TRIED),
                group=process_group,
            )
    seconds, noises = _from_all(look.step_s, process_group), _from_all(look.norms2, process_group)
    backward_s = _from_all(look.backward_s, process_group)
    device = training.device
    links: tuple[LinkTimings, ...] = ()
    exchanges: tuple[ExchangeTimings, ...] = ()
    at_once = 1
    if grouped and dist.get_world_size(process_group) > 1:
        links = timed_links(process_group, device, ranks_per_node=ranks_per_node, most_bytes=most_bytes)
        at_once = sums_at_once(process_group, device)
        pause_s = sum(map(sum, seconds)) / sum(map(len, seconds))
        exchanges = timed_exchanges(
            trials.operators, look.movement, process_group, pause_s=pause_s, key=Key(seed).fold_in(TIMED)
        )
    pairs = list(chain.from_iterable(noises))
    survival, secants, falls, bends = _from_all([look.survival, look.secants, look.falls, look.bends], process_group)[0]
    measured = Pilot(
        d=training.d,
        ranks=len(seconds),
        device=device.type if device.type == "cpu" else torch.cuda.get_device_name(device),
        threads=torch.get_num_threads(),
        step_s=tuple(map(tuple, seconds)),
        losses=tuple(look.losses),
        small_norms2=tuple(small for small, _ in pairs),
        large_norms2=tuple(large for _, large in pairs),
        taus=tuple(taus),
        survival=tuple(survival),
        secants=tuple(secants),
        operators=trials.done(device.type, process_group),
        links=links,
        memory_bytes=_memory_bytes(device),
        falls=tuple(falls),
        bends=tuple(bends),
        rounds=tried,
        exchanges=tuple(_from_all(list(exchanges), process_group)[0]),
        backward_s=tuple(map(tuple, backward_s)),
        sums_at_once=at_once,
        passes=cost,
        steps=steps or 0,
        second_secants=tuple(chain.from_iterable(_from_all(look.second_secants, process_group))),
        noise_norms2=tuple(chain.from_iterable(_from_all(look.noise_norms2, process_group))),
        learning_rate=training.rate(),
    )
    if path is not None and place == 0:
        write_atomically(Path(path), json.dumps(measured.to_dict(), allow_nan=False, indent=1) + "\n")
    return measured


def passes(moments: int, taus: Sequence[int], rounds: int, round_taus: Sequence[int], operators: int) -> int:
    """Return what a pilot costs a worker, in forward and backward passes.

    Parameters
    ----------
    moments : int
        Points of the path at which gradients are measured.
    taus : sequence of int
        Local steps after which a gradient is computed again.
    rounds : int
        Number of trials of rounds.
    round_taus : sequence of int
        Local steps of these rounds.
    operators : int
        Number of operators.

    Notes
    -----
    A pass without gradient counts a third.  Every choice of a trial is taken to have residuals.
    """
    look = WARM_UP + moments * (3 + len(taus) + taus[-1])
    choices = (operators + 1) * len(round_taus)
    trial = choices * round_taus[-1] + FORWARD * FRESH * (1 + 2 * choices) if rounds else 0
    return look + math.ceil(rounds * trial)


def _check_cost(cost: int, steps: int | None, share: float) -> None:
    if isinstance(share, bool) or not (isinstance(share, int | float) and 0 < share <= 1):
        raise ValueError(f"share must be in (0, 1]; got share = {share}: 0.1 is a tenth of the training")
    if steps is not None and (isinstance(steps, bool) or not (isinstance(steps, int) and steps >= 1)):
        raise ValueError(f"steps must be the whole steps of the training, >= 1; got steps = {steps}: leave it out")
    if steps is not None and cost > share * steps:
        raise ValueError(
            f"a pilot may cost at most {share:.0%} of the steps of the training; got {cost} passes of {steps} steps: "
            f"take fewer moments, taus or rounds{_larger_share(cost, steps)}"
        )


def _larger_share(cost: int, steps: int) -> str:
    return f", or share={math.ceil(100 * cost / steps) / 100:g}" if cost <= steps else ""


def _has_workers(worker_batches: Sequence[Iterable[Any]], group: dist.ProcessGroup | None) -> bool:
    grouped = dist.is_available() and dist.is_initialized()
    return len(worker_batches) >= 2 or (grouped and dist.get_world_size(group) > 1)


class _Look:
    """Measurements of one rank along its path."""

    def __init__(self, training: Training, trials: Trials, taus: tuple[int, ...]) -> None:
        self.training, self.trials, self.taus = training, trials, taus
        self.step_s: list[float] = []
        self.backward_s: list[float] = []
        self.losses: list[float] = []
        self.norms2: list[tuple[float, float]] = []
        self.survival: list[tuple[float, ...]] = []
        self.secants: list[tuple[float, ...]] = []
        self.falls: list[tuple[float, ...]] = []
        self.bends: list[tuple[float, ...]] = []
        self.second_secants: list[float] = []
        self.noise_norms2: list[float] = []
        self.movement = torch.zeros(0)

    def at_a_moment(self, steps: int, *, feed: bool) -> None:
        """Measure gradients, then make ``steps`` local steps and recompute the first gradient on the way.

        ``feed`` also tries error feedback in these steps.
        """
        training = self.training
        batch, states = training.batch(), training.randomness()
        first, start = training.gradient(batch), training.point()
        energy = float(first.double().square().sum())
        if not energy:
            raise ValueError("a gradient of the pilot is zero: check that the loss depends on the parameters")
        second = training.gradient(training.batch())
        mean = (first + second) / 2
        self.norms2.append((_norm2(first), _norm2(mean)))
        self.noise_norms2.append(_norm2(first - second))
        self.trials.send(first)
        left, secants, falls, bends = [], [], [], []
        for step in range(1, steps + 1):
            self._timed_step(feed=feed)
            if step in self.taus:
                after = training.randomness()
                states.restore()
                again = training.gradient(batch)
                after.restore()
                left.append(float(again.double() @ first.double()) / energy)
                movement = start - training.point()
                if step == self.taus[0]:
                    self.movement = movement
                    self.trials.send_movement(movement)
                change, turn = movement.double(), (first - again).double()
                moved = float(change.norm())
                secants.append(float(turn.norm()) / moved if moved else 0.0)
                falls.append(float(mean.double() @ change))
                bends.append(float(turn @ change))
        after = training.randomness()
        states.restore()
        with training.placed((start + training.point()) / 2):
            halfway = training.gradient(batch)
        after.restore()
        bent, moved = (again - 2 * halfway.double() + first).double(), float(change.norm())
        self.second_secants.append(4 * float(bent.norm()) / moved**2 if moved else 0.0)
        self.survival.append(tuple(left))
        self.secants.append(tuple(secants))
        self.falls.append(tuple(falls))
        self.bends.append(tuple(bends))

    def _timed_step(self, *, feed: bool) -> None:
        training = self.training
        wait_for(training.device)
        begun = time.perf_counter()
        value = training.step(training.batch())
        wait_for(training.device)
        self.step_s.append(time.perf_counter() - begun)
        self.backward_s.append(training.backward_s())
        self.losses.append(value)
        if feed:
            self.trials.feed(training.last_gradient())


def _norm2(gradient: torch.Tensor) -> float:
    return float(gradient.double().square().sum())


def _checked(moments: int, taus: Sequence[int]) -> int:
    """Check the arguments; return the local steps between two moments."""
    rising = all(isinstance(tau, int) for tau in taus) and list(taus) == sorted(set(taus))
    if not (isinstance(moments, int) and moments >= 2 and len(taus) and rising and taus[0] >= 1):
        raise ValueError(
            f"a pilot needs moments >= 2 and rising whole taus >= 1; got moments = {moments}, taus = {tuple(taus)}"
        )
    return taus[-1]


def _check_rounds(rounds: int, taus: Sequence[int], worker_batches: Sequence[Iterable[Any]]) -> None:
    whole = all(isinstance(tau, int) and tau >= 1 for tau in taus)
    rising = whole and list(taus) == sorted(set(taus)) and taus[0] == 1 and all(taus[-1] % tau == 0 for tau in taus)
    if not (isinstance(rounds, int) and (rounds == 0 or (rounds >= 2 and len(taus) and rising))):
        raise ValueError(
            "trial rounds need rounds = 0 or rounds >= 2, and rising round_taus from 1 on that divide the largest; got "
            f"rounds = {rounds}, round_taus = {tuple(taus)}"
        )
    grouped = dist.is_available() and dist.is_initialized()
    if worker_batches and grouped:
        raise ValueError(
            f"worker_batches are for a single process; got {len(worker_batches)} in a process group: its ranks are the "
            "workers, give each its own batches"
        )
    if rounds and len(worker_batches) < 2 and not grouped:
        raise ValueError(
            f"trial rounds in a single process need worker_batches of at least two workers; got {len(worker_batches)}: "
            "repeat the same batches where workers have the same data"
        )


def _from_all(mine: list[Any], group: dist.ProcessGroup | None) -> list[list[Any]]:
    """Return the lists of all ranks."""
    if not (dist.is_available() and dist.is_initialized()):
        return [mine]
    gathered: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(gathered, mine, group)
    return gathered


def _memory_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB
