"""Seconds of steps in every rhythm of a plan, as it predicts them and between real ranks, as JSON lines.

Run ``python docs/measure.py benchmarks/rhythms.py [--processes 2] [--mbit 100 200 800] [--delay_ms 2] [--step_ms 100]
[--repeats 8] [--scheduling realtime]`` (root, or user namespaces, for the networks; realtime keeps other programs out);
some three minutes.

A model of eight equal layers, whose passes sleep, a third of a step forwards and two thirds backwards, so that other
programs and the network's own switch change little.  On every network the ranks time sums of vectors, as a pilot does;
link and the step alone are all that the predictions know.  Then the steps: DistributedDataParallel with buckets of one,
two and four layers and of all, and ``PeriodicAveraging`` after four steps, waiting or in flight, whole or in fragments.

rhythm : tau, steps in flight, fragments and buckets; "predicted_s" of a step, the median "measured_s" on rank 0 and all
"seconds", and "waiting_s", what a step would take without overlap, predicted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from ranks import MTU, Record, on_network
from torch.nn.parallel import DistributedDataParallel

from bounds.claims import Unbiased
from gpu_validation import PeriodicAveraging
from gpu_validation.averaging.merge.rules import Corrected
from gpu_validation.network import Shape
from gpu_validation.piloting.timings import sums_at_once, timed_links
from gpu_validation.processes.launch import RankContext
from gpu_validation.processes.linux import Scheduling
from gpu_validation.processes.vectors import SETTLED
from ratedist.cluster.cluster import Cluster
from ratedist.cluster.travel import DENSE_BITS, Travel
from ratedist.plans.run import BACKWARD_SHARE, PlannedRun, Rhythm

LAYERS, LENGTH = 8, 1 << 16  # parameters of each
D, LAYER_BYTES = LAYERS * LENGTH, 4 * LENGTH
WARM_UP = 2
MOST_BYTES = 1 << 23  # of the longest vector that times a link
RHYTHMS = (
    *(Rhythm(buckets=buckets) for buckets in (1, 2, 4, 8)),
    *(Rhythm(4), Rhythm(4, 4), Rhythm(4, 2), Rhythm(4, 2, 2), Rhythm(4, 1, 2), Rhythm(4, 1, 4)),
)


class Sleep(torch.autograd.Function):
    """A layer whose passes take so long."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, step_s: float) -> torch.Tensor:
        ctx.step_s = step_s
        time.sleep((1 - BACKWARD_SHARE) * step_s)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        time.sleep(BACKWARD_SHARE * ctx.step_s)
        return gradients[0], torch.zeros(LENGTH), None


class Sleeper(torch.nn.Module):
    """Equal layers that sleep."""

    def __init__(self, step_s: float) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(LENGTH)) for _ in range(LAYERS))
        self.step_s = step_s

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for weight in self.weights:
            x = Sleep.apply(x, weight, self.step_s / LAYERS)  # type: ignore[no-untyped-call]
        return x


def stepping(model: torch.nn.Module) -> Callable[[], None]:
    """Return what makes a pass forwards and one backwards."""
    start = torch.ones(1, requires_grad=True)
    return lambda: model(start).backward()


def seconds_of(act: Callable[[], object], repeats: int) -> list[float]:
    """Seconds of an action, one after the other, from a moment on at which all ranks have come."""
    dist.barrier()
    ends = [time.monotonic()]
    for _ in range(WARM_UP + repeats):
        act()
        ends.append(time.monotonic())
    return [after - before for before, after in zip(ends[WARM_UP:], ends[WARM_UP + 1 :], strict=False)]


def measured(rhythm: Rhythm, step_s: float, repeats: int) -> list[float]:
    """Seconds of a step in this rhythm, by the round."""
    model = Sleeper(step_s)
    if rhythm.tau == 1:
        cap = LAYERS // rhythm.buckets * LAYER_BYTES / 2**20
        return seconds_of(stepping(DistributedDataParallel(model, bucket_cap_mb=cap)), repeats)  # type: ignore[arg-type]
    flight: dict[str, Any] = {}
    if rhythm.in_flight:
        flight = {"merge": Corrected(delay=rhythm.in_flight, fragments=rhythm.parts)}
    averaging, step = PeriodicAveraging(model, schedule=rhythm.tau, **flight), stepping(model)

    def round_() -> None:
        for _ in range(rhythm.tau):
            step()
            averaging.step()

    for _ in range(SETTLED):
        averaging.average()
    seconds = seconds_of(round_, repeats)
    averaging.average()
    return [each / rhythm.tau for each in seconds]


def predicted_s(cluster: Cluster, rhythm: Rhythm) -> float:
    """What a plan says of a step."""
    way = Travel("sum", Unbiased(0.0), DENSE_BITS * D, DENSE_BITS * D, None, 0, 0, "summed on its way")
    return PlannedRun(way.cut(rhythm.messages), cluster, rounds=1, rhythm=rhythm, coding_s=0.0).seconds / rhythm.tau


def records(place: RankContext, step_s: float, repeats: int) -> Iterator[Record]:
    """The link and the step alone, then every rhythm."""
    link = timed_links(None, torch.device("cpu"), ranks_per_node=1, most_bytes=MOST_BYTES)[0].link()
    alone_s = median(seconds_of(stepping(Sleeper(step_s)), repeats))
    told: dict[str, Any] = {"bandwidth_bit_per_s": link.bandwidth_bit_per_s, "latency_s": link.latency_s}
    told["sums_at_once"] = sums_at_once(None, torch.device("cpu"))
    yield {"record": "alone", "d": D, "step_s": alone_s, **told}
    cluster = Cluster(workers=place.size, compute="constant", step_s=alone_s, **told)
    for rhythm in RHYTHMS:
        seconds = measured(rhythm, step_s, repeats)
        predicted = {"predicted_s": predicted_s(cluster, rhythm), "waiting_s": predicted_s(cluster, Rhythm(rhythm.tau))}
        rounded = [round(each, 5) for each in seconds]
        yield {"record": "rhythm", **vars(rhythm), **predicted, "measured_s": median(seconds), "seconds": rounded}


def main(
    processes: int = 2,
    mbit: tuple[float, ...] = (100.0, 200.0, 800.0),
    delay_ms: float = 2.0,
    step_ms: float = 100.0,
    repeats: int = 8,
    scheduling: Scheduling = "normal",
) -> Iterator[Record]:
    """One record for each measurement."""
    work = partial(records, step_s=step_ms * 1e-3, repeats=repeats)
    for rate in mbit:
        shape = Shape(rate_bit_per_s=1e6 * rate, delay_s=1e-3 * delay_ms, mtu=MTU)
        yield from on_network(work, processes, shape, scheduling, mbit_per_s=rate, delay_s=shape.delay_s)
