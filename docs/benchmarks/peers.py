"""What other projects publish, written anew as plainly as they describe it: the measures of our goals.

Each peer is a pair of functions, encode of a float32 tensor and decode of what it returned.  They are slow where
their design is slow (unpacked codes, one temporary a step), not for want of care: all run on one thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Peer = tuple[Callable[[torch.Tensor], Any], Callable[[Any], Any]]


def scaled_sign() -> Peer:
    """numpy.packbits with the mean magnitude."""

    def encode(x: torch.Tensor) -> tuple[np.float32, np.ndarray, int]:
        return np.abs(x.numpy()).mean(), np.packbits(x.numpy() < 0), x.numel()

    def decode(message: tuple[np.float32, np.ndarray, int]) -> np.ndarray:
        mean, bits, d = message
        return np.where(np.unpackbits(bits, count=d), -mean, mean)

    return encode, decode


def unpacked_qsgd(levels: int = 127, bucket: int = 128) -> Peer:
    """Signed levels as int8 and a norm for each bucket: 8.25 bits per coordinate at 127 levels in buckets of 128."""

    def encode(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.nn.functional.pad(x, (0, -x.numel() % bucket)).view(-1, bucket)
        norms = rows.norm(dim=1, keepdim=True)
        scaled = rows.abs() * levels / norms
        below = scaled.floor()
        below += torch.rand_like(scaled) < scaled - below
        return (below * rows.sign()).to(torch.int8), norms

    def decode(message: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        signed, norms = message
        return (signed.to(torch.float32) * norms / levels).view(-1)

    return encode, decode


def unpacked_terngrad() -> Peer:
    """Signs of the coordinates that survive, as int8, and the largest magnitude."""

    def encode(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        top = x.abs().max()
        return (x.sign() * (torch.rand_like(x) * top < x.abs())).to(torch.int8), top

    def decode(message: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return message[0].to(torch.float32) * message[1]

    return encode, decode


def top_k(fraction: float = 0.01) -> Peer:
    """torch.topk; positions in 32 bits and values in 32."""

    def encode(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, int]:
        index = torch.topk(x.abs(), max(1, math.ceil(fraction * x.numel())), sorted=False).indices
        return index.to(torch.int32), x[index], x.numel()

    def decode(message: tuple[torch.Tensor, torch.Tensor, int]) -> torch.Tensor:
        index, values, d = message
        out = torch.zeros(d)
        out[index.long()] = values
        return out

    return encode, decode


def block_int8(block: int = 64) -> Peer:
    """Rounded multiples of max|x|/127 in each block, as torch operations."""

    def encode(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.nn.functional.pad(x, (0, -x.numel() % block)).view(-1, block)
        top = rows.abs().amax(1, keepdim=True)
        return (rows * (127 / top)).round().to(torch.int8), top

    def decode(message: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return (message[0].to(torch.float32) * (message[1] / 127)).view(-1)

    return encode, decode


def rotated_centroids(bits: int = 2) -> Peer:
    """One rotation by signs and Hadamard in a loop of torch operations, then the nearest centroid: EDEN's design.

    The vector is padded to a power of two; codes stay int64, as published.
    """
    centroids = {1: [0.79788], 2: [0.45278, 1.51042], 4: [.1284, .38805, .65676, .94234, 1.25623, 1.61805, 2.06902,
                                                           2.73259]}[bits]  # fmt: skip
    levels = torch.tensor([-c for c in reversed(centroids)] + centroids)
    edges = (levels[1:] + levels[:-1]) / 2

    def transform(z: torch.Tensor) -> torch.Tensor:
        h = 1
        while h < z.numel():
            z = z.view(-1, 2, h)
            z = torch.cat([z[:, :1] + z[:, 1:], z[:, :1] - z[:, 1:]], dim=1).view(-1)
            h *= 2
        return z / math.sqrt(z.numel())

    def signs(n: int) -> torch.Tensor:
        return 2.0 * torch.randint(0, 2, (n,), generator=torch.Generator().manual_seed(0)) - 1

    def encode(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, int]:
        padded = torch.nn.functional.pad(x, (0, (1 << (x.numel() - 1).bit_length()) - x.numel()))
        z = transform(padded * signs(padded.numel()))
        codes = torch.bucketize(z * (math.sqrt(z.numel()) / z.norm()), edges)
        q = levels[codes]
        return codes, z.square().sum() / (z * q).sum(), x.numel()

    def decode(message: tuple[torch.Tensor, torch.Tensor, int]) -> torch.Tensor:
        codes, scale, d = message
        z = transform(levels[codes] * scale)
        return (z * signs(z.numel()))[:d]

    return encode, decode


# ours, theirs, how many times faster we mean to be in encode and decode (None: no ratio), goals in GB/s
GOALS: tuple[tuple[str, Peer, float | None, float | None, float | None, float | None], ...] = (
    ("scaled_sign", scaled_sign(), 2.0, 2.0, 6.0, 4.0),
    ("qsgd:127,norm=l2,bucket=128,code=fixed", unpacked_qsgd(), 8.0, None, 1.5, 1.5),
    ("qsgd:127,norm=max,bucket=128,code=fixed", unpacked_qsgd(), 8.0, None, 1.5, 1.5),
    ("terngrad", unpacked_terngrad(), None, None, None, None),
    ("topk:0.01", top_k(), 4.0, None, 1.2, None),
    ("block_integer:8", block_int8(), None, None, 2.0, 2.0),
    ("eden:1", rotated_centroids(1), 1.5, 1.5, 0.2, 0.2),
    ("eden:2", rotated_centroids(2), 1.5, 1.5, 0.2, 0.2),
)
