"""What the benchmarks of real ranks share: processes on a network of their own, and actions that take turns in them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from gpu_validation.network import Network, Shape
from gpu_validation.processes.launch import RankContext, run_ranks
from gpu_validation.processes.linux import Scheduling
from operators import Feedback, Operator
from operators.ddp import register
from operators.exchange.choice import Exchange

MTU = 9000  # a processor cannot move 1 Gbit/s both ways in frames of 1500 bytes, one by one
HANG_S = 600.0

Action = Callable[[], object]
Sent = Callable[[], int]  # bytes that this rank has handed over so far
Record = dict[str, Any]


class Given(torch.autograd.Function):
    """Zero, whatever x is, with a gradient that is given and not computed."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(gradient)
        return x.new_zeros(())

    @staticmethod
    def backward(ctx: Any, outer: torch.Tensor) -> tuple[torch.Tensor, None]:
        return ctx.saved_tensors[0], None


class Vector(torch.nn.Module):
    """A model of d zeros whose gradient is the input; they have no memory until they are written to."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.x = torch.nn.Parameter(torch.from_numpy(np.zeros(d, np.float32)))

    def forward(self, gradient: torch.Tensor) -> torch.Tensor:
        zero: torch.Tensor = Given.apply(self.x, gradient)
        return zero


def network(inputs: int, hidden: int, outputs: int) -> torch.nn.Module:
    """Three layers; some hidden^2 parameters, the same on all ranks."""
    torch.manual_seed(0)
    first, middle, last = (inputs, hidden), (hidden, hidden), (hidden, outputs)
    linear, relu = torch.nn.Linear, torch.nn.ReLU
    return torch.nn.Sequential(linear(*first), relu(), linear(*middle), relu(), linear(*last))


def size_of(model: torch.nn.Module) -> int:
    """Number of parameters."""
    return sum(p.numel() for p in model.parameters())


def at_rate(mbit: float) -> Shape | None:
    """Return the shape of a network of this rate; 0 stands for the loopback interface, which has none."""
    return Shape(rate_bit_per_s=1e6 * mbit, mtu=MTU) if mbit else None


def on_network(
    work: Callable[[RankContext], Iterator[Record]],
    processes: int,
    shape: Shape | None,
    scheduling: Scheduling = "normal",
    **place: Any,
) -> Iterator[Record]:
    """Go through the same measurements in all ranks, and give the records of rank 0 as they come, with the place."""

    def work_of(rank: RankContext, emit: Callable[[Any], None]) -> None:
        for record in work(rank):
            if rank.rank == 0:
                emit(record)

    with Network.of(shape, processes) if shape else nullcontext() as network:
        rates = {"processes": processes, "network": network.description if network else "loopback"}
        how: dict[str, Any] = {"hang_timeout_s": HANG_S, "network": network, "scheduling": scheduling}
        with closing(run_ranks(work_of, processes=processes, **how)) as rows:
            yield from ({**rates, **place, **row} for row in rows)


def in_turns(actions: Sequence[Action], repeats: int, warm_up: int) -> np.ndarray:
    """Seconds of every action, shape (actions, repeats), in turns behind barriers; the order alternates."""
    seconds = np.zeros((len(actions), repeats))
    for repeat in range(-warm_up, repeats):
        order = range(len(actions)) if repeat % 2 else reversed(range(len(actions)))
        for i in order:
            dist.barrier()
            began = time.perf_counter()
            actions[i]()
            if repeat >= 0:
                seconds[i, repeat] = time.perf_counter() - began
    return seconds


def ring_bytes(d: int, calls: int) -> int:
    """Bytes that a rank hands over in so many ring all-reduces of float32."""
    size = dist.get_world_size()
    return calls * 2 * (size - 1) * 4 * d // size


def backward_passes(
    d: int, operators: Mapping[str, Operator | Feedback], exchange: Exchange
) -> Iterator[tuple[str, Action, Sent]]:
    """Name, one backward pass with its exchange, and what it hands over; "torch" is DDP without a hook."""
    gradient = torch.randn(d)
    for name in ("torch", *operators):
        model, calls = DistributedDataParallel(Vector(d), gradient_as_bucket_view=True, init_sync=False), [0]
        hook = None if name == "torch" else register(model, operators[name], exchange=exchange)

        def act(model: torch.nn.Module = model, calls: list[int] = calls) -> None:
            calls[0] += 1
            model(gradient).backward()

        def sent(hook: Any = hook, calls: list[int] = calls) -> int:
            return hook.payload_bytes if hook else ring_bytes(d, calls[0])

        yield name, act, sent
