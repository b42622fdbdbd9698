"""TCDQ's codec in plain Python and numpy, on the CPU wherever the tensor lies; hashes in torch."""

from __future__ import annotations

import numpy as np
import torch

from ...key import Key
from ...tcdq import reference
from ...tcdq.codec import whole
from ...tcdq.dither import WEYL, seeds
from ...tcdq.plan import Plan
from ...tcdq.subset import STREAM

MASK = 0xFFFFFFFF


def encode(x: torch.Tensor, plan: Plan, seeds: tuple) -> torch.Tensor:
    """See the package."""
    payload = reference.encode(x.cpu().numpy(), plan, seeds)
    return torch.from_numpy(np.frombuffer(bytearray(payload), np.uint8)).to(x.device)


def decode(payload: torch.Tensor, bits: int, plan: Plan, seeds: tuple) -> torch.Tensor:
    """See the package; of damaged payloads only those are refused that cannot be read to their end."""
    whole(bits)
    return torch.from_numpy(reference.decode(payload.cpu().numpy().tobytes(), plan, seeds)).to(payload.device)


def _drawn(d: int, k: int, key: Key, device: torch.device) -> torch.Tensor:
    """Increasing positions of the k least hashes."""
    first, second = (int(s) for s in seeds(key.fold(STREAM)))
    h = (torch.arange(d, device=device) * WEYL + first) & MASK
    h = _times(h ^ h >> 16, 0x85EBCA6B) ^ second
    h = _times(h ^ h >> 13, 0xC2B2AE35)
    return (h ^ h >> 16).argsort()[:k].sort().values


def _times(h: torch.Tensor, factor: int) -> torch.Tensor:
    """The product modulo 2^32, by halves, so that int64 holds it."""
    return (h * (factor & 0xFFFF) + ((h * (factor >> 16) & 0xFFFF) << 16)) & MASK


def gather(x: torch.Tensor, k: int, key: Key) -> torch.Tensor:
    """See the package."""
    return x[_drawn(x.numel(), k, key, x.device)]


def scatter(part: torch.Tensor, d: int, key: Key, factor: float) -> torch.Tensor:
    """See the package."""
    out = torch.zeros(d, device=part.device)
    out[_drawn(d, part.numel(), key, part.device)] = part * factor
    return out
