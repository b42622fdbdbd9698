"""The hook of DistributedDataParallel against plain all-reduce, in one run of real processes, as JSON lines.

    python docs/benchmarks/hook.py [--processes 2 4 8] [--d 100000 1000000 10000000 100000000] [--mbit 0 1000]
        [--seconds 2] > docs/data/hook_benchmark.jsonl

On a quiet machine; some six minutes.  0 Mbit/s stands for the loopback interface, any other rate for a network of the
benchmark's own (root, or user namespaces).  Where the vectors of all ranks would not fit into half of the free memory,
that d is left out, and the record says so.

A backward pass is of a model of one vector that costs next to nothing, so that its seconds are those of encoding,
exchanging and decoding.  "torch" is DistributedDataParallel without a hook, a ring all-reduce of float32; the others
are operators that gather.  They take turns behind barriers.  ratio is the median over torch's, with its 95 % bootstrap
interval.  encode_s and decode_s are processor seconds of one rank's thread: its message, and all m messages.
"""

# ruff: noqa: E402  threads and the search path must be set before the imports
from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

# A neighbour of this file has the name of a package: its folder must not be searched.
sys.path[:] = [f for f in sys.path if os.path.abspath(f or ".") != os.path.dirname(os.path.abspath(__file__))]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from gpu_validation.distributed.launch import RankContext, run_ranks
from gpu_validation.network import Network
from operators import TCDQ, Key, KLevel, Operator, TernGrad
from operators.ddp import register

MTU = 9000  # a processor cannot move 1 Gbit/s both ways in frames of 1500 bytes, one by one
LEAST, MOST = 5, 100  # passes of every method
WARM_UP, RESAMPLES, LEVEL = 2, 2000, 0.95
BYTES_PER_ENTRY = 60  # of one rank: vector, gradient and bucket of every model, and a mean in float64
OPERATORS: dict[str, Operator] = {"klevel": KLevel(k=16), "terngrad": TernGrad(), "tcdq": TCDQ(omega=0.1)}

Action = Callable[[], object]


class Vector(torch.nn.Module):
    """A model of d parameters whose gradient is the input."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.x = torch.nn.Parameter(torch.zeros(d))

    def forward(self, gradient: torch.Tensor) -> torch.Tensor:
        return self.x @ gradient


def passes(d: int) -> dict[str, tuple[Action, Callable[[], int]]]:
    """Name -> (one backward pass, bytes that this rank has handed over so far)."""
    gradient, size = torch.randn(d), dist.get_world_size()
    found: dict[str, tuple[Action, Callable[[], int]]] = {}
    for name in ("torch", *OPERATORS):
        model, calls = DistributedDataParallel(Vector(d), gradient_as_bucket_view=True), [0]
        hook = None if name == "torch" else register(model, OPERATORS[name], exchange="gather")

        def act(model: torch.nn.Module = model, calls: list[int] = calls) -> None:
            calls[0] += 1
            model(gradient).backward()

        def sent(hook: Any = hook, calls: list[int] = calls) -> int:
            return hook.payload_bytes if hook else calls[0] * 2 * (size - 1) * 4 * d // size

        found[name] = act, sent
    return found


def repeats_of(actions: list[Action], seconds: float) -> int:
    """How often every action is to be done, the same on all ranks, after a first time that compiles."""
    for act in actions:
        act()
    dist.barrier()
    began = time.perf_counter()
    for act in actions:
        act()
    number = torch.tensor([int(seconds * len(actions) / (time.perf_counter() - began))])
    dist.broadcast(number, 0)
    return min(MOST, max(LEAST, int(number)))


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


def ratio(seconds: np.ndarray, plain: np.ndarray) -> dict[str, Any]:
    """Ratio of the medians of paired samples, and its bootstrap interval."""
    drawn = np.random.default_rng(0).integers(len(plain), size=(RESAMPLES, len(plain)))
    ratios = np.median(seconds[drawn], axis=1) / np.median(plain[drawn], axis=1)
    ends = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {
        "ratio": round(float(np.median(seconds) / np.median(plain)), 4),
        "interval": [round(float(end), 4) for end in ends],
    }


def coding(operator: Operator, d: int, m: int) -> dict[str, float]:
    """Processor seconds of a rank's message and of all messages; the least of three."""
    x, key, encode_s, decode_s = torch.randn(d), Key(0), [], []
    for _ in range(3):
        began = time.thread_time()
        message = operator.encode(x, key=key)
        encode_s.append(time.thread_time() - began)
        began = time.thread_time()
        operator.decode(message, d=d, key=key)
        decode_s.append(time.thread_time() - began)
    return {"encode_s": min(encode_s), "decode_s": m * min(decode_s)}


def measured(d: int, seconds: float) -> Iterator[dict[str, Any]]:
    """The records of one d, on rank 0."""
    sides = passes(d)
    actions = [act for act, _ in sides.values()]
    repeats = repeats_of(actions, seconds)
    before = {name: sent() for name, (_, sent) in sides.items()}
    taken = dict(zip(sides, in_turns(actions, repeats), strict=True))
    for name, (_, sent) in sides.items():
        yield {
            "method": name,
            "median_s": float(np.median(taken[name])),
            **ratio(taken[name], taken["torch"]),
            "repeats": repeats,
            "payload_bytes_per_rank": (sent() - before[name]) // (repeats + WARM_UP),
            **(coding(OPERATORS[name], d, dist.get_world_size()) if name in OPERATORS else {}),
        }


def fits(d: int, processes: int) -> bool:
    """Whether half of the free memory holds the vectors of all ranks."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return processes * d * BYTES_PER_ENTRY <= free / 2


def environment() -> dict[str, Any]:
    """What the numbers depend on."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "command": "python " + " ".join(["docs/benchmarks/hook.py", *sys.argv[1:]]),
        "commit": commit.stdout.strip() or None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "threads": 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--d", type=int, nargs="+", default=[10**5, 10**6, 10**7, 10**8])
    parser.add_argument("--mbit", type=float, nargs="+", default=[0, 1000])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--scheduling", choices=("normal", "realtime"), default="normal")
    options = parser.parse_args()
    print(json.dumps(environment()), flush=True)

    for processes, mbit, d in itertools.product(options.processes, options.mbit, options.d):
        common = {"processes": processes, "mbit_per_s": mbit or None, "d": d}
        if not fits(d, processes):
            print(json.dumps({"left_out": "not enough free memory", **common}), flush=True)
            continue

        def work(place: RankContext, emit: Callable[[Any], None], d: int = d) -> None:
            for record in measured(d, options.seconds):
                if place.rank == 0:
                    emit(record)

        links = Network(processes, rate_bit_per_s=1e6 * mbit, mtu=MTU) if mbit else nullcontext()
        with links as shaped:
            ranks = {"processes": processes, "hang_timeout_s": 600, "network": shaped}
            for record in run_ranks(work, **ranks, scheduling=options.scheduling):
                print(json.dumps({**common, **record}), flush=True)


if __name__ == "__main__":
    main()
