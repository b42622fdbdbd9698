"""TCDQ's codec compiled for the CPU."""

from __future__ import annotations

import torch

from ...key import Key
from ...tcdq import codec, subset
from ...tcdq.plan import Plan


def encode(x: torch.Tensor, plan: Plan, seeds: tuple) -> torch.Tensor:
    """See the package."""
    return torch.from_numpy(codec.encode(x.numpy(), plan, seeds))


def decode(payload: torch.Tensor, bits: int, plan: Plan, seeds: tuple) -> torch.Tensor:
    """See the package."""
    return torch.from_numpy(codec.decode(payload.numpy(), bits, plan, seeds))


def gather(x: torch.Tensor, k: int, key: Key) -> torch.Tensor:
    """See the package."""
    return torch.from_numpy(subset.gather(x.numpy(), k, key))


def scatter(part: torch.Tensor, d: int, key: Key, factor: float) -> torch.Tensor:
    """See the package."""
    return torch.from_numpy(subset.scatter(part.numpy(), d, key, factor))
