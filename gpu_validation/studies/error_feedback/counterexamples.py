"""Two objectives on which signs without memory fail (Karimireddy et al. 2019), and a walk along each."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from operators import Feedback, Key, Operator
from operators.random import uniform

from ...records.storage import Record

Method = Operator | Feedback | None


def slope(method: Method) -> Record:
    """Return x/4 on [-1, 1] with the stochastic gradient 4 one time in four and else -1: its sign is mostly wrong."""

    def gradient(x: torch.Tensor, t: int) -> torch.Tensor:
        return torch.tensor([4.0 if uniform(Key(1), 1, start=t)[0] < 0.25 else -1.0])

    path = _walk(torch.zeros(1, dtype=torch.float64), gradient, method, 3000, lambda t: 0.01, box=1.0)
    values = path[:, 0] / 4
    return {"values": values[::30].tolist(), "final": values[-1000:].mean().item(), "least": -0.25}


def kinks(method: Method) -> Record:
    """Return ``|x1 + x2|/2 + |x1 - x2|`` from (1, 1.5) with subgradients, sign(0) = +1."""

    def gradient(x: torch.Tensor, t: int) -> torch.Tensor:
        plus, minus = (1.0 if s >= 0 else -1.0 for s in (x[0] + x[1], x[0] - x[1]))
        return torch.tensor([plus / 2 + minus, plus / 2 - minus])

    start = torch.tensor([1.0, 1.5], dtype=torch.float64)
    path = _walk(start, gradient, method, 3000, lambda t: 0.5 / (t + 1) ** 0.75)
    values = (path[:, 0] + path[:, 1]).abs() / 2 + (path[:, 0] - path[:, 1]).abs()
    return {"values": values[::30].tolist(), "final": values[-100:].min().item(), "least": 0.0}


PROBLEMS: dict[str, Callable[[Method], Record]] = {"slope": slope, "kinks": kinks}


def _walk(
    x: torch.Tensor,
    gradient: Callable[[torch.Tensor, int], torch.Tensor],
    method: Method,
    steps: int,
    rate: Callable[[int], float],
    box: float = math.inf,
) -> torch.Tensor:
    state, path = method.init(x.numel()) if isinstance(method, Feedback) else None, []
    for t in range(steps):
        move, key = rate(t) * gradient(x, t), Key(0, step=t)
        if isinstance(method, Feedback):
            assert state is not None
            state, message = method.encode(state, move, key=key)
            x = x - method.decode({}, message, d=x.numel())[1].double()
        elif method is not None:
            x = x - rate(t) * method(move, key=key).double()
        x = x.clamp(-box, box)
        path.append(x)
    return torch.stack(path)
