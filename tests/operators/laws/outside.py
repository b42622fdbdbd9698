"""Operators of other projects, from their published formulas, with the faults that their implementations have.

Plain functions with their own randomness, and objects with encode and decode, as a user would bring them.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from operators import Key, Message

SEED = 20261121
GENERATOR = torch.Generator().manual_seed(SEED)  # seeded anew for every test
NUMPY = np.random.default_rng(20261121)


def _hadamard(x: torch.Tensor) -> torch.Tensor:
    n = 1
    while n < x.numel():
        pairs = x.reshape(-1, 2, n)
        x = torch.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], dim=1).reshape(-1)
        n *= 2
    return x / math.sqrt(x.numel())


def drive(x: torch.Tensor) -> torch.Tensor:
    """DRIVE (Vargaftik et al. 2021): random signs, ONE Hadamard transform (zero-padded), sign, scale |x|^2/|z|_1."""
    p = 1 << (x.numel() - 1).bit_length()
    padded = torch.zeros(p, dtype=torch.float64)
    padded[: x.numel()] = x
    flips = 2.0 * torch.randint(0, 2, (p,), generator=GENERATOR) - 1
    z = _hadamard(padded * flips)
    total = z.abs().sum()
    if total == 0:
        return torch.zeros_like(x)
    decoded = flips * _hadamard(torch.where(z >= 0, 1.0, -1.0).double() * (z @ z) / total)
    return decoded[: x.numel()].to(x.dtype)


def terngrad_clipped(x: torch.Tensor) -> torch.Tensor:
    """TernGrad (Wen et al. 2017) with the gradient clipping at 2.5 standard deviations left on."""
    limit = 2.5 * x.std(correction=0)
    clipped = x.clamp(-limit, limit) if limit > 0 else x
    m = clipped.abs().max()
    if m == 0:
        return torch.zeros_like(x)
    return m * clipped.sign() * (torch.rand(x.shape, generator=GENERATOR) < clipped.abs() / m)


def terngrad(x: torch.Tensor) -> torch.Tensor:
    """TernGrad as its theorem has it."""
    m = x.abs().max()
    if m == 0:
        return torch.zeros_like(x)
    return m * x.sign() * (torch.rand(x.shape, generator=GENERATOR) < x.abs() / m)


def random_k_with_replacement(x: np.ndarray) -> np.ndarray:
    """Random-k scaled by d/k, its k indices drawn by randint."""
    d, out = x.size, np.zeros_like(x)
    at = NUMPY.integers(0, d, max(1, d // 2))
    out[at] = x[at] * d / max(1, d // 2)
    return out


def quantiser(x: np.ndarray, shrink: float = 1.0) -> np.ndarray:
    """QSGD (Alistarh et al. 2017) with 16 levels."""
    norm = float(np.linalg.norm(x.astype(np.float64)))
    if norm == 0:
        return np.zeros_like(x)
    levels = np.floor(16 * np.abs(x) / norm + NUMPY.random(x.size))
    return (shrink * np.sign(x) * levels * norm / 16).astype(np.float32)


def shrinking_quantiser(x: np.ndarray) -> np.ndarray:
    """The same, 2 % too small."""
    return quantiser(x, shrink=0.98)


class BilledNatural:
    """Natural dithering that bills 4 bits a coordinate and hands its input over beside the payload."""

    def __init__(self) -> None:
        self.kept: torch.Tensor | None = None

    def encode(self, x: torch.Tensor, *, key: Key) -> Message:
        """4 bits a coordinate, all zero."""
        self.kept = x.clone()
        return Message(torch.zeros((4 * x.numel() + 7) // 8, dtype=torch.uint8), 4 * x.numel())

    def decode(self, message: Message, *, d: int) -> torch.Tensor:
        """The input, untouched."""
        assert self.kept is not None
        return self.kept


def _random_k(x: torch.Tensor, generator: torch.Generator, factor: float) -> torch.Tensor:
    k = max(1, x.numel() // 2)
    kept = torch.zeros_like(x)
    at = torch.randperm(x.numel(), generator=generator)[:k]
    kept[at] = x[at] * factor
    return kept


def induced_with_one_key(x: torch.Tensor) -> torch.Tensor:
    """C_1(x) + C_2(x - C_1(x)) (Horvath and Richtarik 2021) with one seed for both halves."""
    seed = int(torch.randint(0, 1 << 40, (), generator=GENERATOR))
    first = _random_k(x, torch.Generator().manual_seed(seed), 1.0)
    factor = x.numel() / max(1, x.numel() // 2)
    return first + _random_k(x - first, torch.Generator().manual_seed(seed), factor)


def induced(x: torch.Tensor) -> torch.Tensor:
    """The same with independent halves: unbiased."""
    first = _random_k(x, GENERATOR, 1.0)
    return first + _random_k(x - first, GENERATOR, x.numel() / max(1, x.numel() // 2))
