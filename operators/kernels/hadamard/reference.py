"""The rotation in torch."""

from __future__ import annotations

import torch

from . import factor, part_starts, transform_length, words_per_part


def rotate(x: torch.Tensor, words: torch.Tensor, rounds: int) -> torch.Tensor:
    """Transform part by part, stage by stage."""
    z = x.clone()
    for start, signs in _parts(z, words, rounds):
        part = z[start : start + signs.numel()]
        part.copy_(hadamard(part * signs))
    return z


def unrotate(z: torch.Tensor, words: torch.Tensor, rounds: int) -> torch.Tensor:
    """Undo the parts in reverse."""
    x = z.clone()
    for start, signs in reversed(_parts(x, words, rounds)):
        part = x[start : start + signs.numel()]
        part.copy_(hadamard(part) * signs)
    return x


def hadamard(x: torch.Tensor) -> torch.Tensor:
    """Return H x, shape (p,), p a power of two."""
    h = 1
    while h < x.numel():
        pairs = x.view(-1, 2, h)
        x = torch.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], dim=1).view(-1)
        h *= 2
    return x


def _parts(x: torch.Tensor, words: torch.Tensor, rounds: int) -> list[tuple[int, torch.Tensor]]:
    """Return (start, s times signs) of every part in order."""
    d = x.numel()
    starts, n = part_starts(d), words_per_part(d)
    i = torch.arange(transform_length(d), device=x.device)
    s = torch.tensor(factor(d), dtype=torch.float32, device=x.device)
    parts = []
    for number in range(rounds * len(starts)):
        minus = (words[number * n + (i >> 5)] >> (i & 31)) & 1
        parts.append((starts[number % len(starts)], torch.where(minus == 1, -s, s)))
    return parts
