"""Fields of varying width in Triton: positions by a prefix sum, one byte for each bit, then eight bits a byte."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ..fields.cuda import store_groups

BLOCK = 256


@triton.jit(do_not_specialize=["n", "most"])
def _scatter(values, widths, ends, bits, n, most, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(values + i, mask=i < n, other=0)
    width = tl.load(widths + i, mask=i < n, other=0)
    last = tl.load(ends + i, mask=i < n, other=0) - 1
    for j in range(most):
        tl.store(bits + last - j, ((value >> j) & 1).to(tl.uint8), mask=j < width)


@triton.jit(do_not_specialize=["n"])
def _gather(bits, out, n, GROUPS: tl.constexpr):
    group = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    i = group[:, None] * 8 + tl.arange(0, 8)[None, :]
    store_groups(out, group, tl.load(bits + i, mask=i < n, other=0).to(tl.int32), n, 1)


def pack(values: torch.Tensor, widths: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Put every bit in a byte of its own, then gather eight."""
    n = values.numel()
    if n == 0:
        return torch.empty(0, dtype=torch.uint8, device=values.device), 0
    ends = widths.cumsum(0)
    total, most = torch.stack([ends[-1], widths.max()]).tolist()
    bits = torch.empty(total, dtype=torch.uint8, device=values.device)
    out = torch.empty((total + 7) // 8, dtype=torch.uint8, device=values.device)
    if total:
        _scatter[(triton.cdiv(n, BLOCK),)](values, widths, ends, bits, n, most, BLOCK=BLOCK)
        _gather[(triton.cdiv(total, 8 * 64),)](bits, out, total, GROUPS=64)
    return out, total
