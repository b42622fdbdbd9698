"""Philox4x32-10 in Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def philox(c0, c1, k0, k1):
    """Return four words (uint32 tensors) of the blocks whose counter is (c0, c1, 0, 0)."""
    c0, c1 = c0.to(tl.uint32), c1.to(tl.uint32)
    k0, k1 = (c0 & 0) + k0.to(tl.uint32), (c0 & 0) + k1.to(tl.uint32)
    c2, c3 = c0 & 0, c0 & 0
    for _ in tl.static_range(10):
        h0, l0 = tl.umulhi(c0, 0xD2511F53), c0 * 0xD2511F53
        h1, l1 = tl.umulhi(c2, 0xCD9E8D57), c2 * 0xCD9E8D57
        c0, c1, c2, c3 = h1 ^ c1 ^ k0, l1, h0 ^ c3 ^ k1, l0
        k0, k1 = k0 + 0x9E3779B9, k1 + 0xBB67AE85
    return c0, c1, c2, c3


@triton.jit
def word(i, k0, k1):
    """Return words i (int64 tensor) of the stream, in order."""
    block = i >> 2
    w0, w1, w2, w3 = philox(block & 0xFFFFFFFF, block >> 32, k0, k1)
    j = i & 3
    return tl.where(j < 2, tl.where(j == 0, w0, w1), tl.where(j == 2, w2, w3))


def signed(k: int) -> int:
    """Return the int32 with this 32-bit pattern, so that every key has one type."""
    return k - (1 << 32) if k >> 31 else k


@triton.jit(do_not_specialize=["n", "start", "k0", "k1"])
def _fill(out, n, start, k0, k1, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, word(start + i, k0, k1).to(tl.int32, bitcast=True), mask=i < n)


def fill(n: int, start: int, k0: int, k1: int, like: torch.Tensor) -> torch.Tensor:
    """Compute a word in a lane."""
    out = torch.empty(n, dtype=torch.int32, device=like.device)
    if n:
        _fill[(triton.cdiv(n, 1024),)](out, n, start, signed(k0), signed(k1), BLOCK=1024)
    return out
