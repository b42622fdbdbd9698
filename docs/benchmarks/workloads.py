"""Seconds of one local step of every workload, as JSON lines.

Run ``python docs/benchmarks/workloads.py [--batch 32] [--device cpu] [--precision float32] [NAME ...]``.
A step is the random draw, the loss, its gradient and plain SGD; one thread on the CPU.  A name is timed for about
SECONDS after WARM_UP steps; the record gives the median and the quartiles.  Images are synthetic.
"""

# ruff: noqa: E402  threads and the search path must be set before the imports
from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable

# A neighbour of this file has the name of a package: its folder must not be searched.
sys.path[:] = [f for f in sys.path if os.path.abspath(f or ".") != os.path.dirname(os.path.abspath(__file__))]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from gpu_validation.workloads import Workload, all_workloads, workload
from gpu_validation.workloads.network import Network
from gpu_validation.workloads.supervised import Supervised
from operators import Key

WARM_UP, LEAST, SECONDS = 3, 5, 5.0


def prepared(name: str, batch: int, precision: str) -> Workload:
    """The workload with the wanted fields, where it has them."""
    kind = all_workloads()[name]
    fields: dict[str, object] = {"batch": batch} if issubclass(kind, Supervised) else {}
    if issubclass(kind, Network) and precision == "bfloat16":
        fields |= {"precision": precision, "layout": "channels_last"}
    return workload(name, **fields)


def stepper(problem: Workload, device: torch.device) -> Callable[[int], None]:
    """A function that does step k and returns when the device has finished it."""
    model = problem.model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step(k: int) -> None:
        optimizer.zero_grad()
        problem.loss(model, key=Key(0, step=k)).backward()
        optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()

    return step


def seconds_per_step(step: Callable[[int], None]) -> list[float]:
    """Durations of single steps, at least LEAST and about SECONDS in all."""
    for k in range(WARM_UP):
        step(k)
    found: list[float] = []
    while len(found) < LEAST or (sum(found) < SECONDS and len(found) < 2000):
        start = time.perf_counter()
        step(WARM_UP + len(found))
        found.append(time.perf_counter() - start)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(all_workloads()))
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    options = parser.parse_args()
    device = torch.device(options.device)
    hardware = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor()
    for name in options.names:
        problem = prepared(name, options.batch, options.precision)
        parameters = sum(p.numel() for p in problem.model().parameters())
        seconds = seconds_per_step(stepper(problem, device))
        low, median, high = statistics.quantiles(seconds, n=4)
        record = {
            "workload": name,
            "parameters": parameters,
            "batch": getattr(problem, "batch", None),
            "precision": getattr(problem, "precision", "float64"),
            "device": hardware or platform.machine(),
            "steps": len(seconds),
            "median_s": median,
            "quartiles_s": [low, high],
            "synthetic": problem.description().synthetic,
        }
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
