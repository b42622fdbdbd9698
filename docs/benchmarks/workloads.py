"""Seconds of one local step of every workload, as JSON lines.

Run ``python docs/measure.py benchmarks/workloads.py [--batch 32] [--device cpu] [--precision float32] [NAME ...]``.
A step is the random draw, the loss, its gradient and plain SGD; one thread on the CPU.  A name is timed for about
SECONDS after WARM_UP steps; the record gives the median and the quartiles.  Images are synthetic.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal

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


def main(
    names: tuple[str, ...] = tuple(all_workloads()),
    batch: int = 32,
    device: str = "cpu",
    precision: Literal["float32", "bfloat16"] = "float32",
) -> Iterator[dict[str, Any]]:
    place = torch.device(device)
    hardware = torch.cuda.get_device_name(place) if place.type == "cuda" else platform.processor()
    for name in names:
        problem = prepared(name, batch, precision)
        parameters = sum(p.numel() for p in problem.model().parameters())
        seconds = seconds_per_step(stepper(problem, place))
        low, median, high = statistics.quantiles(seconds, n=4)
        yield {
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
