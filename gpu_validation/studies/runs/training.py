"""Training against the clock: local-update SGD on real processes, and which loss it reached when. ::

    run = TrainingRun(SmallNetwork(), schedule=20, step=Constant(4e-3), seed=0, budget_s=4.0)
    (record,) = run_training([run], m=4, shape=Shape(rate_bit_per_s=1e8, delay_s=5e-3, jitter_s=2e-3))
    record["seconds"], record["losses"]

The clock runs over local steps, filled up by sleeping to a drawn duration, and over averagings on a shaped network.
Losses are taken afterwards, from the averaged models that were kept.  A run with a ``runtime`` goes by that model's
simulated clock instead: real processes, and nothing that a loaded machine could change.
"""

from __future__ import annotations

import math
import mmap
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, nullcontext
from typing import Any

import numpy as np
import torch

from operators import Key
from operators.feedback.memoryless import BiasWarning
from operators.random import bits32

from ...averaging.merge.rules import Blocking
from ...averaging.pacing.clock import Clock, SimulatedClock, WallClock
from ...averaging.periodic_averaging import PeriodicAveraging
from ...averaging.settings import Pacing
from ...network import Network, Shape
from ...network.streams import StreamCount
from ...processes.collectives import ProcessTransport, barrier, gather_arrays
from ...processes.launch import GLOO, RankContext, run_ranks
from ...processes.linux import Scheduling
from ...processes.tensors import flat, floating_tensors
from ...records.storage import Record
from ...timing import PaddedSteps
from ...timing.padding import SEED_WORDS, step_seconds
from .curves import Snapshots, evaluate_snapshots, gradients, outline
from .local_steps import Replica, common_model, training_rounds
from .spec import MESSAGES, MINI_BATCHES, SLEEPS, STEP_TIMES, TIMED_ALONE, TrainingRun

SPARE_STEPS = 1000  # drawn beyond twice the expected number
POLL_S = 2e-5


def run_training(
    runs: Sequence[TrainingRun],
    *,
    m: int,
    shape: Shape | None,
    scheduling: Scheduling = "realtime",
    hang_timeout_s: float = 60.0,
) -> list[Record]:
    """Carry out the runs one after the other in the same m processes; one record each, of plain values.

    Parameters
    ----------
    shape : Shape or None
        Of the network; None takes the machine's loopback.
    hang_timeout_s : float, seconds, optional
        Longer than any of them.

    Raises
    ------
    RunFailed
        If a rank dies or hangs.
    ValueError
        For a workload made for another number of workers.

    Notes
    -----
    A record holds ``seconds``, ``step``, ``losses``, ``accuracies``, ``bits`` (of all ranks' messages so far), ``taus``
    (of the round that ended) at each point, the start included; ``rounds``, [tau, number of rounds] in order;
    ``steps_done`` and ``took_s`` until the last averaging; ``rule``, what the schedule knows at the end, and its
    ``probes``; ``fenced_s``, the averagings timed by themselves; ``gradient2``, if traced, a value a step.
    """
    for run in runs:
        run.workload.require_workers(m)
        if run.runtime is not None and run.runtime.workers() != m:
            raise ValueError(f"the runtime model is one of {run.runtime.workers()} workers; the run has m = {m}")
        run.workload.objective(run.workload.model())  # loads the data before the processes fork
    with (
        nullcontext() if shape is None else Network.of(shape, m) as network,
        closing(mmap.mmap(-1, _Finish.BYTES)) as shared,
    ):

        def work(place: RankContext, emit: Callable[[Any], None]) -> None:
            for run in runs:
                record = _record(place, run, _Finish(shared))
                if place.rank == 0:
                    emit(record)

        running: Generator[Any, None, None] = run_ranks(
            work, processes=m, hang_timeout_s=hang_timeout_s, network=network, scheduling=scheduling
        )
        with closing(running):
            return list(running)


class _Finish:
    """Which round is the last: rank 0 says so by its clock, and the others wait for what it says of each.

    With averages in flight rank 0 may be a round ahead of them: they ask of their round, not of its latest.
    """

    BYTES = 16

    def __init__(self, shared: mmap.mmap) -> None:
        self._decided, self._last = np.frombuffer(shared, np.int64).reshape(2, 1)

    def clear(self) -> None:
        self._decided[0] = self._last[0] = -1

    def decide(self, round_index: int, over: bool) -> None:
        if over:
            self._last[0] = round_index  # first, for the others read it as soon as the round is decided
        self._decided[0] = round_index

    def await_decision(self, round_index: int) -> bool:
        while self._decided[0] < round_index:
            time.sleep(POLL_S)
        return bool(0 <= self._last[0] <= round_index)


def _record(place: RankContext, run: TrainingRun, finish: _Finish) -> Record:
    alone_s = [] if run.runtime else _timed_alone(place, run)
    if place.rank == 0:
        finish.clear()
    pacing = PaddedSteps(0.0) if run.runtime else PaddedSteps(0.0, _durations(run, place.rank))
    kept = _carried_out(place, run, pacing, finish)
    computed = torch.tensor([float(np.mean(pacing.durations)), float(pacing.overruns)], dtype=torch.float64)
    mean_step_s, overruns = torch.stack(gather_arrays(computed)).mean(dim=0).tolist()
    return {
        **outline(run, place.size, kept.rounds),
        "step_law": repr(run.step),
        **evaluate_snapshots(place, run.workload, kept, run.points, alike=run.merge.is_common),
        "took_s": kept.seconds[-1],
        "fenced_s": alone_s,
        "mean_step_s": mean_step_s,
        "overruns": round(overruns * place.size),
        "gradient2": gradients(place, run.workload, kept.trace),
        "rule": kept.rule,
        "probes": kept.probes,
        "method": place.port.method,
        "scheduling": place.scheduling,
    }


def _durations(run: TrainingRun, rank: int) -> list[float]:
    assert run.step is not None  # of a run against the wall clock
    by_time = math.inf if run.budget_s is None else run.budget_s / run.step.mean_s
    expected = math.ceil(min(by_time, math.inf if run.steps is None else run.steps))
    key = Key(run.seed).fold_in(STEP_TIMES)
    return step_seconds(run.step, key=key, worker=rank, steps=2 * expected + SPARE_STEPS).tolist()


def joined(
    place: RankContext,
    run: TrainingRun,
    *,
    alone: bool = False,
    transport: ProcessTransport | None = None,
    device: torch.device | str | None = None,
) -> tuple[PeriodicAveraging, Replica]:
    """Return this process's worker at the start of a run, joined with those of the other ranks.

    Parameters
    ----------
    place : RankContext
        The rank, and where it runs.
    run : TrainingRun
        What is carried out.
    alone : bool
        Whether synchronisations are to be timed by themselves: one local step a round, on random streams of their own.
    transport : ProcessTransport or None
        Counts the bytes; a new one unless given.
    device : torch.device, str or None
        Of the model; the rank's own unless given.
    """
    key, stream = Key(run.seed), MINI_BATCHES
    if alone:
        key, stream = key.fold_in(TIMED_ALONE), TIMED_ALONE
    replica = Replica.of(run, place.rank, device=device or place.device, stream=stream)
    with warnings.catch_warnings(action="ignore", category=BiasWarning):  # the run measures the bias
        averaging = PeriodicAveraging(
            replica.model,
            replica.optimizer,
            # what travels along sees the clock before the synchronisation, and only where all wait for it
            schedule=Pacing(
                1 if alone else run.schedule,
                run.steps,
                _clock(run, place.size) if run.runtime else None,
                piggyback=run.runtime is None and not run.merge.in_flight,
            ),
            operator=None if alone and run.chooses else run.operator,
            exchange=None if alone and run.chooses else run.exchange,
            process_group=transport,
            key=key.fold_in(MESSAGES),
            outer=run.outer,
            merge=Blocking() if alone else run.merge,
        )
    return averaging, replica


def sleeps(run: TrainingRun, key: Key) -> Callable[[], None]:
    """Return the sleep after a synchronisation; equal keys give all ranks the same ones."""
    law = run.delay
    if law is None or run.runtime is not None:
        return lambda: None
    rng = np.random.default_rng(bits32(key.fold_in(SLEEPS), SEED_WORDS))
    return lambda: time.sleep(float(law.sample(rng, ())))


def timed_alone(place: RankContext, run: TrainingRun, times: int) -> list[float]:
    """Time synchronisations of a run by themselves; seconds on this rank."""
    assert run.step is not None  # of a run against the wall clock
    averaging, replica = joined(place, run, alone=True)
    sleep = sleeps(run, Key(run.seed).fold_in(TIMED_ALONE))
    return timed_synchronisations(averaging, replica.step, times=times, step_s=run.step.mean_s, sleep=sleep)


def _timed_alone(place: RankContext, run: TrainingRun) -> list[float]:
    """Return the mean over ranks of every timed synchronisation."""
    seconds = torch.tensor(timed_alone(place, run, run.fenced), dtype=torch.float64)
    return torch.stack(gather_arrays(seconds)).mean(dim=0).tolist()


def _carried_out(place: RankContext, run: TrainingRun, pacing: PaddedSteps, finish: _Finish) -> Snapshots:
    averaging, replica = joined(place, run)
    sleep, watched = sleeps(run, Key(run.seed)), floating_tensors(replica.model)
    kept = Snapshots([0.0], [flat(watched)], [], [])
    probing = PaddedSteps(0.0 if run.runtime or run.step is None else run.step.mean_s)

    def trace() -> None:
        if run.trace:
            kept.trace.append(flat(averaging.parameters))

    barrier()
    clock = averaging.engine.clock = _clock(run, place.size)
    rounds = training_rounds(averaging.engine, [replica], before_step=trace, pacing=pacing, probing=probing)
    for (account,) in rounds:
        sleep()
        kept.seconds.append(clock.seconds())
        kept.models.append(common_model(averaging.engine, watched))
        kept.rounds.append(account)
        if place.rank == 0:
            finish.decide(account.index, run.is_over(kept.seconds[-1], averaging.total_steps))
        if finish.await_decision(account.index):
            break
    if averaging.engine.overlapped is not None:  # nothing may be under way when the next run makes groups of its own
        averaging.engine.overlapped.drain(averaging.total_steps)
    kept.rule, kept.probes = averaging.schedule_state.to_dict(), len(probing.durations)
    return kept


def _clock(run: TrainingRun, m: int) -> Clock:
    return SimulatedClock(run.runtime, m=m, key=Key(run.seed).fold_in(STEP_TIMES)) if run.runtime else WallClock()


def timed_synchronisations(
    averaging: PeriodicAveraging,
    local_step: Callable[[int], Any],
    *,
    times: int,
    step_s: float,
    sleep: Callable[[], None] = lambda: None,
) -> list[float]:
    """Time single synchronisations, each after one local step; a first one warms up and is left out.

    Parameters
    ----------
    averaging : PeriodicAveraging
        With one local step a round.
    local_step : callable
        Changes the model as local step k does; given k = 0, 1, ...
    times : int
        How many are timed.
    step_s : float
        To how many seconds a local step is padded, because a synchronisation follows a sleep in a run too.
    sleep : callable
        Called after every synchronisation, and part of its time.

    Returns
    -------
    list of float
        Seconds of every synchronisation on this rank.
    """
    pacing, seconds = PaddedSteps(step_s), []
    for k in range(times + 1):
        with pacing:
            local_step(k)
        barrier()
        began = time.perf_counter()
        averaging.step()
        sleep()
        seconds.append(time.perf_counter() - began)
    return seconds[1:]


def interface_counter(place: RankContext) -> int | None:
    """Return the bytes sent by the interface, where the back end's traffic crosses it."""
    count = place.port.count() if place.backend == GLOO else None
    return None if count is None else count.sent_bytes


def sent_between(before: StreamCount | None, after: StreamCount | None) -> StreamCount | None:
    """Return the difference of two counts of this rank's connections."""
    return None if before is None or after is None else after - before


def interface_bytes(place: RankContext, before: int | None, after: int | None) -> int | None:
    """Return the bytes that all ranks have sent between two counts: the sum of their counters, or the shared one."""
    local_bytes = -1 if before is None or after is None else after - before
    parts = [int(part) for part in gather_arrays(torch.tensor([local_bytes]))]
    if min(parts) < 0:
        return None
    return local_bytes if place.port.shared else sum(parts)
