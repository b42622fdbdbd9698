"""Communication hooks that are right in a group of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from operators.laws import adapt

from .base import ONE, Wrong, half

Combined = Callable[[torch.Tensor], torch.Tensor]  # from a rank's compressed gradient to what it returns


def hook(combined: Combined, compressed: Combined = half) -> Callable[[Any, Any], torch.futures.Future[torch.Tensor]]:
    def run(state: Any, bucket: Any) -> torch.futures.Future[torch.Tensor]:
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        future.set_result(combined(compressed(bucket.buffer())))
        return future

    return run


def summed(y: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(y)
    return y


def mean(y: torch.Tensor) -> torch.Tensor:
    return summed(y) / dist.get_world_size()


def divided_twice(y: torch.Tensor) -> torch.Tensor:
    return summed(y / dist.get_world_size()) / dist.get_world_size()


def own(y: torch.Tensor) -> torch.Tensor:
    """Nothing is sent."""
    return y


def of_rank_0(y: torch.Tensor) -> torch.Tensor:
    dist.broadcast(y, 0)
    return y


def gathered(y: torch.Tensor) -> list[torch.Tensor]:
    parts = [torch.empty_like(y) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, y)
    return parts


def largest(y: torch.Tensor) -> torch.Tensor:
    return torch.stack(gathered(y)).amax(dim=0)


def without_own(y: torch.Tensor) -> torch.Tensor:
    """The mean of the others where there are any."""
    parts, m = gathered(y), dist.get_world_size()
    return y if m == 1 else (sum(parts) - parts[0]) / (m - 1)  # type: ignore[operator]


def halved_for_each(y: torch.Tensor) -> torch.Tensor:
    """Pairs are averaged in turn, and of three ranks the first counts most, the last negatively."""
    parts = gathered(y)
    total = parts[0]
    for part in parts[1:]:
        total = (total + part) / 2
    return total + (len(parts) > 2) * (parts[0] - parts[-1])


def own_share_kept(y: torch.Tensor) -> torch.Tensor:
    """A twentieth of every rank's own vector stays: the ranks drift apart."""
    return 0.95 * mean(y.clone()) + 0.05 * y


COMBINED: dict[str, Combined] = {
    "the sum is not divided": summed,
    "the sum is divided twice": divided_twice,
    "nothing is sent": own,
    "the vector of rank 0 for all": of_rank_0,
    "the largest entries of all ranks": largest,
    "rank 0 is left out": without_own,
    "ranks count unequally": halved_for_each,
    "a twentieth of its own stays": own_share_kept,
}
WRONG = [Wrong("hooks", what, adapt(hook(combined), claim=ONE)) for what, combined in COMBINED.items()]
HONEST = [Wrong("honest", "mean", adapt(hook(mean), claim=ONE))]
