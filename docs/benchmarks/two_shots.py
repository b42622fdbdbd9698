"""Two shots with operators of few bits against plain all-reduce on a network of 1 Gbit/s, as JSON lines.

Run ``python docs/benchmarks/two_shots.py [--processes 4] [--d 500000] [--mbit 1000] [--repeats 100]`` on a quiet
machine (root, or user namespaces, for the network).  All actions take turns in one run of real processes, each behind
a barrier, so that noise hits all alike.

averaging : seconds of one averaging of d parameters on rank 0; "torch" is PeriodicModelAverager, a ring all-reduce of
float32, "whole" PeriodicAveraging without operator; "errors" says whether rounds also tell the error of compression.
hook : seconds of one backward pass of a model that costs next to nothing, with its exchange; "torch" is
DistributedDataParallel without a hook.
codec : seconds of encoding and decoding alone, all ranks at once: a vector's shards, m messages of one shard and their
mean, m means.
speed_up is the median of torch's seconds over the median, with its 95 % bootstrap interval; saved_s the difference.
"""

# ruff: noqa: E402  threads and the search path must be set before the imports
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

# A neighbour of this file has the name of a package: its folder must not be searched.
sys.path[:] = [f for f in sys.path if os.path.abspath(f or ".") != os.path.dirname(os.path.abspath(__file__))]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.nn.parallel import DistributedDataParallel

from gpu_validation.distributed.launch import RankContext, run_ranks
from gpu_validation.local_sgd.periodic_averaging import PeriodicAveraging
from gpu_validation.network import Network
from operators import TCDQ, ErrorFeedback, Feedback, Key, KLevel, Operator, ScaledSign, TernGrad
from operators.ddp import register
from operators.exchange import TwoShot

MTU = 9000  # a processor cannot move 1 Gbit/s both ways in frames of 1500 bytes, one by one
WARM_UP, RESAMPLES, LEVEL = 5, 2000, 0.95
OPERATORS: dict[str, Operator | Feedback] = {
    "scaled sign, feedback": ErrorFeedback(ScaledSign()),
    "16 levels": KLevel(k=16),
    "TernGrad": TernGrad(),
    "TCDQ, omega .1": TCDQ(omega=0.1),
}

Action = Callable[[], object]


class Vector(torch.nn.Module):
    """A model of d parameters whose gradient is the input."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.x = torch.nn.Parameter(torch.zeros(d))

    def forward(self, gradient: torch.Tensor) -> torch.Tensor:
        return self.x @ gradient


def averagings(d: int) -> Iterator[tuple[dict[str, Any], Action, Callable[[], int]]]:
    """What it is, one averaging, and the bytes that this rank has handed over."""
    update = torch.randn(d)

    def of(averaging: PeriodicAveraging) -> Action:
        def act() -> None:
            averaging.model.x.data.add_(update)  # type: ignore[operator, union-attr]
            averaging.average()

        return act

    model, size = Vector(d), dist.get_world_size()
    model.x.grad = update
    averager, calls = PeriodicModelAverager(period=1), [0]

    def torch_average() -> None:
        calls[0] += 1
        model.x.data.add_(update)
        averager.average_parameters(model.parameters())

    yield {"method": "torch"}, torch_average, lambda: calls[0] * 2 * (size - 1) * 4 * d // size
    whole = PeriodicAveraging(Vector(d))
    yield {"method": "whole"}, of(whole), lambda: whole.transport.payload_bytes
    for name, operator in OPERATORS.items():
        for errors in (False, True):
            averaging = PeriodicAveraging(Vector(d), operator=operator, exchange="two_shot", errors=errors)
            sent = lambda own=averaging: own.transport.payload_bytes  # noqa: E731
            yield {"method": name, "errors": errors}, of(averaging), sent  # type: ignore[misc]


def hooks(d: int) -> Iterator[tuple[dict[str, Any], Action, Callable[[], int]]]:
    """The same for one backward pass."""
    gradient, size = torch.randn(d), dist.get_world_size()
    for name in ("torch", *OPERATORS):
        model, calls = DistributedDataParallel(Vector(d), gradient_as_bucket_view=True), [0]
        hook = None if name == "torch" else register(model, OPERATORS[name], exchange="two_shot")

        def act(model: torch.nn.Module = model, calls: list[int] = calls) -> None:
            calls[0] += 1
            model(gradient).backward()

        def sent(hook: Any = hook, calls: list[int] = calls) -> int:
            return hook.payload_bytes if hook else calls[0] * 2 * (size - 1) * 4 * d // size

        yield {"method": name}, act, sent


def codecs(d: int) -> Iterator[tuple[dict[str, Any], Action, Callable[[], int]]]:
    """The same for encoding and decoding without a network."""
    x, m = torch.randn(d), dist.get_world_size()
    for name, operator in OPERATORS.items():
        ends = TwoShot(operator, operator, Key(0), rank=0, m=m, d=d)
        others = [TwoShot(operator, operator, Key(0), rank=rank, m=m, d=d) for rank in range(m)]
        sent = [rank.encode(x, 0) for rank in others]
        shards = [{sender: messages[owner] for sender, messages in enumerate(sent)} for owner in range(m)]
        means = [owner.merge(arrived, range(m), 0) for owner, arrived in zip(others, shards, strict=True)]

        def act(ends: TwoShot = ends, arrived: Any = shards[0], means: Any = means) -> None:
            ends.encode(x, 0)
            ends.merge(arrived, range(m), 0)
            ends.mean(means, 0)

        yield {"method": name}, act, lambda: 0


def in_turns(actions: list[Action], repeats: int) -> np.ndarray:
    """Seconds of every action, shape (actions, repeats), in turns behind barriers; the order alternates."""
    seconds = np.zeros((len(actions), repeats))
    for repeat in range(-WARM_UP, repeats):
        order = range(len(actions)) if repeat % 2 else reversed(range(len(actions)))
        for i in order:
            dist.barrier()
            began = time.perf_counter()
            actions[i]()
            if repeat >= 0:
                seconds[i, repeat] = time.perf_counter() - began
    return seconds


def speed_up(plain: np.ndarray, seconds: np.ndarray) -> dict[str, Any]:
    """Quotient of the medians of paired samples, and its bootstrap interval."""
    rows = np.random.default_rng(0).integers(len(plain), size=(RESAMPLES, len(plain)))
    ratios = np.median(plain[rows], axis=1) / np.median(seconds[rows], axis=1)
    ends = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {
        "speed_up": round(float(np.median(plain) / np.median(seconds)), 3),
        "interval": [round(float(end), 3) for end in ends],
        "saved_s": float(np.median(plain) - np.median(seconds)),
    }


def measured(d: int, repeats: int) -> Iterator[dict[str, Any]]:
    """All records, of this rank."""
    kinds = {"averaging": averagings, "hook": hooks, "codec": codecs}
    rows = [(kind, *row) for kind, make in kinds.items() for row in make(d)]
    before = [sent() for *_, sent in rows]
    seconds = in_turns([act for _, _, act, _ in rows], repeats)
    plain = {kind: seconds[i] for i, (kind, what, *_) in enumerate(rows) if what["method"] == "torch"}
    for (kind, what, _, sent), was, own in zip(rows, before, seconds, strict=True):
        record = {"benchmark": kind, **what, "median_s": float(np.median(own)), "repeats": repeats}
        if kind != "codec":
            sent_bytes = (sent() - was) // (repeats + WARM_UP)
            record |= speed_up(plain[kind], own)
            record |= {"payload_bytes_per_rank": sent_bytes, "bits_per_coordinate": round(8 * sent_bytes / d, 3)}
        yield record


def environment() -> dict[str, Any]:
    """What the numbers depend on."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "command": "python " + " ".join(["docs/benchmarks/two_shots.py", *sys.argv[1:]]),
        "commit": commit.stdout.strip() or None,
        "torch": torch.__version__,
        "cpus": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "threads": 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--d", type=int, default=500_000)
    parser.add_argument("--mbit", type=float, default=1000)
    parser.add_argument("--repeats", type=int, default=100)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", "When period is 1")  # it is what one averaging takes, not how to train
    for operator in OPERATORS.values():  # compile once, before the fork
        TwoShot(operator, operator, Key(0), rank=0, m=1, d=8).encode(torch.randn(8), 0)
    print(json.dumps(environment()), flush=True)

    def work(place: RankContext, emit: Callable[[Any], None]) -> None:
        for record in measured(options.d, options.repeats):
            if place.rank == 0:
                emit(record)

    with Network(options.processes, rate_bit_per_s=1e6 * options.mbit, mtu=MTU) as shaped:
        where = {"processes": options.processes, "mbit_per_s": options.mbit, "d": options.d}
        for record in run_ranks(work, processes=options.processes, hang_timeout_s=600, network=shaped):
            print(json.dumps({"benchmark": record.pop("benchmark"), **where, **record}), flush=True)


if __name__ == "__main__":
    main()
