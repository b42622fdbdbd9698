"""The hook of DistributedDataParallel against plain all-reduce, in one run of real processes, as JSON lines.

    python docs/measure.py benchmarks/hook.py > docs/data/hook_benchmark.jsonl

On a quiet machine; some seven minutes with ``--seconds .5``.  0 Mbit/s stands for the loopback interface, any other
rate for a network of its own (root, or user namespaces).  Where the vectors of all ranks, 40 bytes an entry, would
not fit into the available memory, that d is left out, and the record says so.

A backward pass is of a model of one vector that costs next to nothing, so that its seconds are those of encoding,
exchanging and decoding.  "torch" is DistributedDataParallel without a hook, a ring all-reduce of float32; the others
are operators that gather.  They take turns behind barriers.  ratio is the median over torch's, with its 95 % bootstrap
interval.  encode_s and decode_s are processor seconds of one rank's thread: its message, and all m messages.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from comparing import quotient
from ranks import Action, at_rate, backward_passes, in_turns, on_network

from gpu_validation.processes.launch import RankContext
from gpu_validation.processes.linux import Scheduling
from operators import TCDQ, Key, KLevel, Operator, TernGrad

LEAST, MOST = 5, 100  # passes of every method
WARM_UP = 0  # every pass has been made twice before, to see how long it takes
BYTES_PER_ENTRY = 40  # of one rank, measured: the gradient, every model's bucket, a message and a mean in float64
SPARED = 0.1  # of the memory that is available
OPERATORS: dict[str, Operator] = {"klevel": KLevel(k=16), "terngrad": TernGrad(), "tcdq": TCDQ(omega=0.1)}


def repeats_of(actions: Sequence[Action], seconds: float) -> int:
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


def measured(d: int, seconds: float, place: RankContext) -> Iterator[dict[str, Any]]:
    """The records of one d."""
    names, actions, counters = zip(*backward_passes(d, OPERATORS, "gather"), strict=True)
    repeats = repeats_of(actions, seconds)
    before = [sent() for sent in counters]
    taken = in_turns(actions, repeats, WARM_UP)
    for name, row, sent, was in zip(names, taken, counters, before, strict=True):
        ratio, interval = quotient(row, taken[names.index("torch")])
        yield {
            "method": name,
            "median_s": float(np.median(row)),
            "ratio": ratio,
            "interval": interval,
            "repeats": repeats,
            "payload_bytes_per_rank": (sent() - was) // (repeats + WARM_UP),
            **(coding(OPERATORS[name], d, place.size) if name in OPERATORS else {}),
        }


def fits(d: int, processes: int) -> bool:
    """Whether the available memory holds the vectors of all ranks."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available = 1024 * int(lines["MemAvailable"].split()[0])
    return processes * d * BYTES_PER_ENTRY <= (1 - SPARED) * available


def main(
    processes: tuple[int, ...] = (2, 4, 8),
    d: tuple[int, ...] = (10**5, 10**6, 10**7, 10**8),
    mbit: tuple[float, ...] = (0.0, 1000.0),
    seconds: float = 2.0,
    scheduling: Scheduling = "normal",
) -> Iterator[dict[str, Any]]:
    for size, rate, length in itertools.product(processes, mbit, d):
        where = {"mbit_per_s": rate or None, "d": length}
        if fits(length, size):
            yield from on_network(partial(measured, length, seconds), size, at_rate(rate), scheduling, **where)
            continue
        needed = {"needed_bytes": size * length * BYTES_PER_ENTRY, "processes": size}
        yield {"left_out": "not enough free memory", **needed, **where}
