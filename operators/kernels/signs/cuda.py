"""Sign bits in Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ..norms import cuda as norms

BYTES = 256  # of the payload for one program


@triton.jit(do_not_specialize=["n"])
def _pack(patterns, out, n, BYTES: tl.constexpr):
    byte = tl.program_id(0).to(tl.int64) * BYTES + tl.arange(0, BYTES)
    place = tl.arange(0, 8)
    i = byte[:, None] * 8 + place[None, :]
    pattern = tl.load(patterns + i, mask=i < n, other=0)
    negative = ((pattern & 0x7FFFFFFF) != 0) & (pattern < 0)
    value = tl.sum(negative.to(tl.int32) << (7 - place)[None, :], axis=1)
    tl.store(out + byte, value.to(tl.uint8), mask=byte * 8 < n)


@triton.jit(do_not_specialize=["n"])
def _unpack(payload, out, n, plus, minus, BYTES: tl.constexpr):
    byte = tl.program_id(0).to(tl.int64) * BYTES + tl.arange(0, BYTES)
    place = tl.arange(0, 8)
    value = tl.load(payload + byte, mask=byte * 8 < n, other=0).to(tl.int32)
    bit = (value[:, None] >> (7 - place)[None, :]) & 1
    i = byte[:, None] * 8 + place[None, :]
    tl.store(out + i, tl.where(bit == 1, minus, plus), mask=i < n)


def pack(x: torch.Tensor) -> torch.Tensor:
    """Gather eight signs in a lane."""
    out = torch.empty((x.numel() + 7) // 8, dtype=torch.uint8, device=x.device)
    if out.numel():
        _pack[(triton.cdiv(out.numel(), BYTES),)](x.view(torch.int32), out, x.numel(), BYTES=BYTES)
    return out


def pack_with_sum(x: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Pack, then sum."""
    return pack(x), float(norms.absolute_sum(x, x.numel()).item())


def unpack(payload: torch.Tensor, n: int, plus: float = 1.0, minus: float = -1.0) -> torch.Tensor:
    """Look at a byte in a lane."""
    out = torch.empty(n, dtype=torch.float32, device=payload.device)
    if n:
        _unpack[(triton.cdiv(n, 8 * BYTES),)](payload, out, n, float(plus), float(minus), BYTES=BYTES)
    return out
