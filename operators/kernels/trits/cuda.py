"""Ternary digits in Triton: levels into one byte each, then five of them into one."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ..levels.cuda import launch
from ..philox import Stream

BYTES = 128  # of the payload for one program
TAIL_BITS = (0, 2, 4, 5, 7)


@triton.jit
def power_of_three(place):
    """Return 3^place for 0 <= place < 5."""
    low = tl.where(place == 0, 1, tl.where(place == 1, 3, 9))
    return tl.where(place < 3, low, tl.where(place == 3, 27, 81))


@triton.jit(do_not_specialize=["n", "tail"])
def _pack(levels, out, n, tail, BYTES: tl.constexpr):
    byte = tl.program_id(0).to(tl.int64) * BYTES + tl.arange(0, BYTES)
    place = tl.arange(0, 8)[None, :]
    i = byte[:, None] * 5 + place
    inside = (place < 5) & (i < n)
    digit = tl.where(inside, tl.load(levels + i, mask=inside, other=0).to(tl.int32) + 1, 0)
    value = tl.sum(digit * power_of_three(place), axis=1)
    value = tl.where(byte * 5 + 5 > n, value << tail, value)
    tl.store(out + byte, value.to(tl.uint8), mask=byte * 5 < n)


@triton.jit(do_not_specialize=["n", "tail", "possible"])
def _unpack(payload, out, flags, n, tail, possible, scale, BYTES: tl.constexpr):
    byte = tl.program_id(0).to(tl.int64) * BYTES + tl.arange(0, BYTES)
    place = tl.arange(0, 8)[None, :]
    short = byte * 5 + 5 > n
    value = tl.load(payload + byte, mask=byte * 5 < n, other=121).to(tl.int32)
    value = tl.where(short & (byte * 5 < n), value >> tail, value)
    i = byte[:, None] * 5 + place
    inside = (place < 5) & (i < n)
    digit = (value[:, None] // power_of_three(place)) % 3
    tl.store(out + i, (digit - 1).to(tl.float32) * scale, mask=inside)
    yes = tl.full((BYTES, 8), 1, tl.int8)  # many programs may write it to one place
    tl.store(flags + i * 0, yes, mask=inside & (digit != 1))
    most = tl.where(short, possible, 243)
    bad = (byte * 5 < n) & (value >= most)
    tl.store(flags + 1 + i * 0, yes, mask=inside & bad[:, None])


def encode(x: torch.Tensor, rate: float, stream: Stream, room: int = 0) -> torch.Tensor:
    """Round, then pack a byte in a lane."""
    n = x.numel()
    levels = torch.empty(n, dtype=torch.int8, device=x.device)
    launch(x, n, torch.tensor([rate], dtype=torch.float64, device=x.device), 0, stream, 0, levels)
    out = torch.empty(room + n // 5 + (n % 5 > 0), dtype=torch.uint8, device=x.device)
    tail = 8 - TAIL_BITS[n % 5]
    _pack[(triton.cdiv(out.numel() - room, BYTES),)](levels, out[room:], n, tail, BYTES=BYTES)
    return out


def decode(payload: torch.Tensor, n: int, scale: float) -> tuple[torch.Tensor, bool, bool]:
    """Divide a byte in a row of lanes."""
    out = torch.empty(n, dtype=torch.float32, device=payload.device)
    flags = torch.zeros(2, dtype=torch.int8, device=payload.device)
    grid = (triton.cdiv(-(-n // 5), BYTES),)
    tail, possible = 8 - TAIL_BITS[n % 5], 3 ** (n % 5)
    _unpack[grid](payload, out, flags, n, tail, possible, float(scale), BYTES=BYTES)
    other, bad = flags.tolist()
    return out, bool(other), not bad
