"""Philox4x32-10 in torch, on any device, with signed 64-bit integers."""

from __future__ import annotations

import torch

M0, M1 = 0xD2511F53, 0xCD9E8D57
W0, W1 = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
_MASK = 0xFFFFFFFF


def words64(n: int, start: int, k0: int, k1: int, device: torch.device | str) -> torch.Tensor:
    """Return words start .. start + n - 1, shape (n,), int64 holding values in [0, 2^32)."""
    first = start >> 2
    block = torch.arange(first, (start + n + 3) >> 2, dtype=torch.int64, device=device)
    c = [block & _MASK, block >> 32, torch.zeros_like(block), torch.zeros_like(block)]
    for _ in range(ROUNDS):
        (h0, l0), (h1, l1) = _multiply(M0, c[0]), _multiply(M1, c[2])
        c = [h1 ^ c[1] ^ k0, l1, h0 ^ c[3] ^ k1, l0]
        k0, k1 = (k0 + W0) & _MASK, (k1 + W1) & _MASK
    words = torch.stack(c, dim=1).reshape(-1)
    return words[start - 4 * first : start - 4 * first + n]


def _multiply(a: int, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return high and low 32-bit halves of a * b without unsigned 64-bit integers."""
    high, low = (a >> 16) * b, (a & 0xFFFF) * b  # each below 2^48
    total = ((high & 0xFFFF) << 16) + low  # below 2^49
    return (high >> 16) + (total >> 32), total & _MASK


def fill(n: int, start: int, k0: int, k1: int, like: torch.Tensor) -> torch.Tensor:
    """Compute all blocks at once."""
    words = words64(n, start, k0, k1, like.device)
    return torch.where(words < 1 << 31, words, words - (1 << 32)).to(torch.int32)
