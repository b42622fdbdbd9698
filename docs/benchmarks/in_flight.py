"""Seconds of a local step while averages are in flight, between real processes on a shaped network, as JSON lines.

Run ``python docs/measure.py benchmarks/in_flight.py`` on a quiet machine; under four minutes.  A local step is a sleep
of ``step_ms``, and the workers leave the processors alone; the network is one of the benchmark's own, whose latency
and rate make an averaging take about D/Y steps.

hidden : median over the rounds of the seconds of a local step, waits included, for each tau from D/Y / 2 to 2 D/Y and
overlap "delayed" (the whole round in flight), over max(Y, D/tau); D and Y are measured alone before.  goal: 1 to 1.05.
blocking : the same with overlap "none", over Y + D/tau.
peak : the most bytes that a rank's interface sends during one local step, by the operating system's counters, with the
model in 1, 2 and 4 fragments on a network of the same latency without a limit to its rate, over the bytes of a whole
message; and the bytes of all steps, over those of whole messages.  expected: 1, 1/2 and 1/4 of the message, and 1.
thread : seconds of a step of arithmetic, without a sleep, while an averaging travels in its thread, over the same with
nothing under way; blocks of steps take turns.  goal: under 1.05.  On a machine of two cores the other rank and the
network's own switch compete for them, too: core_share is what all threads of a rank but the training's use, in
processor seconds a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from ranks import Record, on_network

from gpu_validation import PeriodicAveraging
from gpu_validation.averaging.merge.rules import Blocking, Corrected, Delayed, Merge
from gpu_validation.network import Shape
from gpu_validation.network.port import Port
from gpu_validation.processes.launch import RankContext

WARM_UP = 2  # rounds that are not counted
ALONE = 6  # averagings timed by themselves
BLOCKS = 20  # of arithmetic with and without a message under way, each as long as an averaging
SIDE = 160  # of the matrices of the arithmetic
AWAKE_S = 5e-4  # of a step, so that its length does not depend on when a sleeper is woken
STEPS_APART = 4  # between the messages of fragments
PEAK_DELAY_S = 1e-3


def padded_step(step_s: float) -> Callable[[], None]:
    """A local step of a length that the load hardly changes: a sleep, and a wait in the end that is awake."""

    def step() -> None:
        end = time.monotonic() + step_s
        time.sleep(step_s - AWAKE_S)
        while time.monotonic() < end:
            pass

    return step


def model_of(d: int) -> torch.nn.Module:
    """One vector of d parameters, in float32, the same on all ranks."""
    torch.manual_seed(0)
    return torch.nn.Linear(d, 1, bias=False)


def alone_s(d: int) -> float:
    """Median seconds of one averaging that all wait for."""
    averaging, seconds = PeriodicAveraging(model_of(d), schedule=1), []
    for _ in range(WARM_UP + ALONE):
        dist.barrier()
        began = time.monotonic()
        averaging.step()
        seconds.append(time.monotonic() - began)
    return median(seconds[WARM_UP:])


def round_seconds(d: int, tau: int, rounds: int, step_s: float, merge: Merge) -> list[float]:
    """Seconds of every round of tau local steps after the first two."""
    averaging, step = PeriodicAveraging(model_of(d), schedule=tau, merge=merge), padded_step(step_s)
    dist.barrier()
    ends = []
    for _ in range(WARM_UP + rounds):
        for _ in range(tau):
            step()
            averaging.step()
        ends.append(time.monotonic())
    averaging.average()
    return [after - before for before, after in pairwise(ends[WARM_UP - 1 :])]


def steps_of_arithmetic(seconds: float, matrix: torch.Tensor) -> float:
    """Seconds of one product of matrices, repeated for so long."""
    began, count = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        matrix @ matrix
        count += 1
    return (time.monotonic() - began) / count


def thread_cost(d: int, block_s: float) -> dict[str, Any]:
    """Arithmetic while a message is under way over arithmetic while none is, in turns."""
    averaging = PeriodicAveraging(model_of(d), schedule=2, merge=Delayed())
    matrix, busy, idle, shares = torch.randn(SIDE, SIDE), [], [], []
    for _ in range(BLOCKS):
        averaging.step()
        averaging.step()  # the message leaves
        began, others_s = time.monotonic(), time.process_time() - time.thread_time()
        busy.append(steps_of_arithmetic(block_s, matrix))
        shares.append((time.process_time() - time.thread_time() - others_s) / (time.monotonic() - began))
        averaging.average()  # it has arrived, and nothing is under way
        dist.barrier()
        idle.append(steps_of_arithmetic(block_s, matrix))
    ratio = median(busy) / median(idle)
    return {
        "ratio": ratio,
        "core_share": median(shares),
        "busy_s": median(busy),
        "idle_s": median(idle),
        "block_s": block_s,
    }


def peak(port: Port, d: int, fragments: int, rounds: int, step_s: float) -> dict[str, Any]:
    """Bytes that leave in the busiest local step, and in all of them."""
    step, tau = padded_step(step_s), 4 * STEPS_APART
    averaging = PeriodicAveraging(model_of(d), schedule=tau, merge=Corrected(delay=1, fragments=fragments))
    dist.barrier()
    counts = []
    for _ in range((WARM_UP + rounds) * tau):
        step()
        averaging.step()
        count = port.count()
        assert count is not None
        counts.append(count.sent_bytes)
    averaging.average()
    sent = [after - before for before, after in pairwise(counts)][WARM_UP * tau - 1 :]
    message = 4 * d * (dist.get_world_size() - 1)  # bytes to all others
    return {
        "fragments": fragments,
        "tau": tau,
        "peak_bytes": max(sent),
        "peak_over_message": max(sent) / message,
        "total_over_messages": sum(sent) / (rounds * message),
    }


def measure_peaks(d: int, rounds: int, step_s: float, place: RankContext) -> Iterator[Record]:
    """One row for every number of fragments."""
    for fragments in (1, 2, 4):
        yield {"kind": "peak", "d": d, "rounds": rounds, **peak(place.port, d, fragments, rounds, step_s)}


def measure(d: int, rounds: int, step_s: float, ratio: int, _: RankContext) -> Iterator[Record]:
    """All rows of one D/Y."""
    D = alone_s(d)
    for tau in sorted({max(1, ratio // 2), ratio, 2 * ratio}):
        merges: dict[str, Merge] = {"hidden": Delayed(), "blocking": Blocking()}
        for kind, merge in merges.items():
            seconds = round_seconds(d, tau, rounds, step_s, merge)
            expected = max(step_s, D / tau) if kind == "hidden" else step_s + D / tau
            row = {"kind": kind, "D/Y": ratio, "tau": tau, "D_s": D, "Y_s": step_s, "expected_s": expected}
            measured = median(seconds) / tau
            yield {**row, "measured_s": measured, "ratio": measured / expected, "rounds": len(seconds)}
    yield {"kind": "thread", "D/Y": ratio, "D_s": D, "d": d, **thread_cost(d, D)}


def main(
    processes: int = 2,
    ratios: tuple[int, ...] = (4, 10, 30),
    rounds: int = 10,
    step_ms: float = 10.0,
    d: int = 250_000,
) -> Iterator[Record]:
    """One record for each measurement."""
    step_s = step_ms * 1e-3
    yield from on_network(partial(measure_peaks, d, rounds, step_s), processes, Shape(delay_s=PEAK_DELAY_S))
    for ratio in ratios:
        # a third of D is the way there and back, the rest the bytes of a vector to every other rank
        length_s = ratio * step_s
        shape = Shape(rate_bit_per_s=32 * d * (processes - 1) / (length_s * 2 / 3), delay_s=length_s / 6)
        yield from on_network(partial(measure, d, rounds, step_s, ratio), processes, shape)
