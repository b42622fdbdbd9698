"""Fields of one width in Triton: eight fields fill ``width`` bytes."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

GROUPS = 64  # of eight fields for one program


@triton.jit
def store_groups(out, group, codes, n, WIDTH: tl.constexpr):
    """Write fields 8 group .. 8 group + 7 (codes, int32, shape (groups, 8); 0 beyond n) below their last byte."""
    place = tl.arange(0, 8)[None, :]
    last = (n * WIDTH + 7) // 8
    if WIDTH == 8:
        index = group[:, None] * 8 + place
        tl.store(out + index, codes.to(tl.uint8), mask=index < last)
    else:
        for k in tl.static_range(WIDTH):
            shift = 8 * (k + 1) - WIDTH * (place + 1)
            left = codes << tl.minimum(tl.maximum(shift, 0), 31)
            right = codes >> tl.minimum(tl.maximum(-shift, 0), 31)
            byte = tl.sum(tl.where(shift >= 0, left, right) & 255, axis=1)
            tl.store(out + group * WIDTH + k, byte.to(tl.uint8), mask=group * WIDTH + k < last)


@triton.jit
def load_fields(payload, i, n, WIDTH: tl.constexpr):
    """Return fields i (int64 tensor) of a payload as int32; 0 for i >= n."""
    position = i * WIDTH
    first = position >> 3
    last = (n * WIDTH + 7) // 8
    bits = tl.zeros_like(i)
    for k in tl.static_range(5):
        byte = tl.load(payload + first + k, mask=(i < n) & (first + k < last), other=0)
        bits = (bits << 8) | byte.to(tl.int64)
    return ((bits >> (40 - WIDTH - (position & 7))) & ((1 << WIDTH) - 1)).to(tl.int32)


@triton.jit(do_not_specialize=["n"])
def _pack(values, out, n, WIDTH: tl.constexpr, GROUPS: tl.constexpr):
    group = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    i = group[:, None] * 8 + tl.arange(0, 8)[None, :]
    store_groups(out, group, tl.load(values + i, mask=i < n, other=0), n, WIDTH)


@triton.jit(do_not_specialize=["n"])
def _unpack(payload, out, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, load_fields(payload, i, n, WIDTH), mask=i < n)


def pack(values: torch.Tensor, width: int) -> torch.Tensor:
    """Pack eight fields, which end with a byte, in a lane."""
    n = values.numel()
    out = torch.empty((n * width + 7) // 8, dtype=torch.uint8, device=values.device)
    if n:
        _pack[(triton.cdiv(n, 8 * GROUPS),)](values, out, n, WIDTH=width, GROUPS=GROUPS)
    return out


def unpack(payload: torch.Tensor, n: int, width: int) -> torch.Tensor:
    """Read a field in a lane."""
    out = torch.empty(n, dtype=torch.int32, device=payload.device)
    if n:
        _unpack[(triton.cdiv(n, 1024),)](payload, out, n, WIDTH=width, BLOCK=1024)
    return out
