"""Accept a machine with one GPU: kernels, hook and training there, against the CPU.

    python docs/measure.py benchmarks/gpu.py > results/gpu.json

Needs no network, and at most eight minutes.  Each part is a process of its own with a time limit:

kernels : every Triton kernel and every operator gives the CPU's bits; speeds against a copy on the device.
hook : the DDP hook with CUDA tensors gives the gradients that it gives on the CPU, bit for bit.
training : VGG-16 and ResNet-50 on synthetic CIFAR, a few rounds of simulated workers on the GPU.

Without a GPU the record says "not run" and names the commands.  ``--interpreted`` runs all parts on the CPU with
kernels in Triton's interpreter and small networks; the tests do so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from gpu_validation import SimulatedWorkers
from gpu_validation.workloads.data.synthetic_images import SyntheticImages
from gpu_validation.workloads.models import lenet, resnet50, vgg16
from operators import Key, parse
from operators.ddp import register
from operators.kernels.backend import use

ROOT = Path(__file__).resolve().parents[2]
MEASURE = "docs/measure.py"
LIMITS_S = {"kernels": 270, "hook": 60, "training": 140}  # eight minutes in total
OPERATORS = ("scaled_sign", "qsgd:16", "qsgd:127,norm=max,bucket=128,code=fixed", "terngrad", "topk:0.01", "tcdq:1.0")
WORKERS, TAU, ROUNDS, BATCH = 4, 2, 4, 64
Record = dict[str, Any]


def commands(interpreted: bool) -> dict[str, list[str]]:
    """The command of every part."""
    extra = ["--interpreted"] if interpreted else []
    own = {part: [MEASURE, "benchmarks/gpu.py", "--part", part, *extra] for part in ("hook", "training")}
    return {"kernels": [MEASURE, "benchmarks/kernels_cuda.py"], **own}


def kernels(lines: list[Record]) -> Record:
    """The record of ``kernels_cuda.py``: how many equalities hold, which do not, and every speed."""
    equalities = [line for line in lines if "equality" in line]
    return {
        "equalities": len(equalities),
        "unequal": [line for line in equalities if not line["equal"]],
        "timings": [line for line in lines if "timing" in line],
        "passed": bool(equalities) and all(line["equal"] for line in equalities),
    }


class Linear(torch.nn.Module):
    """A loss whose gradient is a given vector, exactly, on every device."""

    def __init__(self, gradient: torch.Tensor) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros_like(gradient))
        self.register_buffer("gradient", gradient)

    def forward(self, scale: torch.Tensor) -> torch.Tensor:
        """Return <gradient, weight> times a scale."""
        return (self.weight * self.gradient).sum() * scale


def hooked(gradient: torch.Tensor, text: str, exchange: Any) -> torch.Tensor:
    """The gradient that the hook leaves, on the CPU."""
    model = DistributedDataParallel(Linear(gradient))
    register(model, parse(text), exchange=exchange, key=Key(1))
    model(torch.ones((), device=gradient.device)).backward()
    left = next(model.parameters()).grad
    assert left is not None
    return left.cpu()


def hook(device: str) -> Record:
    """Every operator in both exchanges, one rank: the bits of the CPU."""
    d = 10**6 if device == "cuda" else 700
    store = dist.HashStore()
    dist.init_process_group("cpu:gloo,cuda:nccl" if device == "cuda" else "gloo", store=store, rank=0, world_size=1)
    gradient = torch.randn(d, generator=torch.Generator().manual_seed(0))
    rows = []
    for text in OPERATORS:
        for exchange in ("gather", "two_shot"):
            expected = hooked(gradient, text, exchange)
            with use("cuda") if device == "cpu" else nullcontext():  # in the interpreter
                there = hooked(gradient.to(device), text, exchange)
            rows.append({"operator": text, "exchange": exchange, "d": d, "equal": torch.equal(there, expected)})
    dist.destroy_process_group()
    return {"rows": rows, "passed": all(row["equal"] for row in rows)}


def trained(network: Callable[[], torch.nn.Module], device: str) -> Record:
    """A few rounds of simulated workers: losses per local step, and whether all workers end with the same model."""
    samples = SyntheticImages(samples=1024, held_out=0).read().train.to(torch.device(device))
    images, labels = samples.inputs.float() / 255, samples.targets
    torch.manual_seed(0)
    models = [network().to(device) for _ in range(WORKERS)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9) for model in models]
    workers = SimulatedWorkers(models, optimizers, schedule=TAU, operator=parse("qsgd:16,bucket=512"), key=Key(0))
    draw, losses, begun = torch.Generator().manual_seed(0), [], time.perf_counter()
    for _ in range(TAU * ROUNDS):
        step = []
        for model, optimizer in zip(models, optimizers, strict=True):
            batch = torch.randint(len(labels), (BATCH,), generator=draw).to(device)
            optimizer.zero_grad()
            loss = cross_entropy(model(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            step.append(loss.detach())
        losses.append(float(torch.stack(step).mean()))
        workers.step(torch.stack(step).cpu())
    workers.average()
    first = torch.cat([p.detach().flatten() for p in models[0].parameters()])
    alike = all(torch.equal(first, torch.cat([p.detach().flatten() for p in m.parameters()])) for m in models[1:])
    finite = bool(torch.isfinite(first).all())
    seconds = round(time.perf_counter() - begun, 2)
    return {"losses": losses, "seconds": seconds, "parameters": first.numel(), "passed": alike and finite}


def training(device: str) -> Record:
    """Both networks; in the interpreter a small one in their place."""
    networks: dict[str, Callable[[], torch.nn.Module]] = {"vgg16": lambda: vgg16(10), "resnet50": lambda: resnet50(10)}
    if device == "cpu":
        networks = {"lenet": lambda: lenet(side=32, channels=3, classes=10)}
    rows = {name: trained(network, device) for name, network in networks.items()}
    return {"networks": rows, "passed": all(row["passed"] for row in rows.values())}


def run_part(part: str, command: list[str], interpreted: bool) -> Record:
    """Run a part as a process of its own; a part that fails, or takes too long, says so in its record."""
    begun, variables = time.perf_counter(), {"TRITON_INTERPRET": "1"} if interpreted else {}
    limit_s = None if interpreted else LIMITS_S[part]
    try:
        ended = subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
        printed, output, completed = ended.stdout, ended.stderr[-2000:], ended.returncode == 0
    except subprocess.TimeoutExpired as late:
        printed, output, completed = (late.stdout or b"").decode(), f"took longer than {limit_s} s", False
    lines = [json.loads(line) for line in printed.splitlines() if line.startswith("{") and line.endswith("}")]
    result = kernels(lines) if part == "kernels" else lines[-1] if completed else {}
    result = {**result, "passed": completed and result["passed"]}
    failure = {} if result["passed"] else {"output": output}
    return {**result, **failure, "command": command, "seconds": round(time.perf_counter() - begun, 1)}


def accept(parts: tuple[str, ...], *, interpreted: bool, gpu: bool) -> Record:
    """The whole record."""
    device = {"device": torch.cuda.get_device_name() if gpu else "none"}
    asked = {part: command for part, command in commands(interpreted).items() if part in parts}
    if not gpu and not interpreted:
        return {**device, "status": "not run", "reason": "torch sees no CUDA device", "commands": asked}
    records = {part: run_part(part, command, interpreted) for part, command in asked.items()}
    status = "passed" if all(record["passed"] for record in records.values()) else "failed"
    return {**device, "status": status, "parts": records}


def main(
    only: tuple[str, ...] = tuple(LIMITS_S),
    interpreted: bool = False,
    part: Literal["", "hook", "training"] = "",
) -> Iterator[Record]:
    """Run all parts, or one of them as the process that another call has started."""
    if part:
        yield {"hook": hook, "training": training}[part]("cpu" if interpreted else "cuda")
        return
    record = accept(only, interpreted=interpreted, gpu=torch.cuda.is_available())
    yield record
    if record["status"] == "failed":
        raise SystemExit(1)
