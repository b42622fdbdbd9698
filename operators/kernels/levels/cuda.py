"""Stochastic rounding in Triton; full tiles share each Philox block between four coordinates."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ..fields.cuda import load_fields, store_groups
from ..philox import TILE, Stream
from ..philox.cuda import philox, word
from ..philox.cuda import signed as as_signed
from . import rate_of

GROUPS = 32  # of eight coordinates, worked on at once


@triton.jit
def rounded(x, rates, at, d, step, w):
    """Return signed levels of the coordinates ``at`` with their words w."""
    value = tl.load(x + at, mask=at < d, other=0.0)
    rate = tl.load(rates + at // step, mask=at < d, other=0.0)
    level = (tl.abs(value).to(tl.float64) * rate + w.to(tl.float64) * 2.3283064365386963e-10).to(tl.int32)
    return tl.where(value < 0, -level, level)


@triton.jit
def emit(out, group, level, d, most, WIDTH: tl.constexpr):
    """Store signed levels (WIDTH 0), or their fields."""
    index = group[:, None] * 8 + tl.arange(0, 8)[None, :]
    if WIDTH == 0:
        tl.store(out + index, level.to(out.dtype.element_ty), mask=index < d)
    else:
        store_groups(out, group, tl.where(index < d, level + most, 0), d, WIDTH)


@triton.jit(do_not_specialize=["d", "step", "most", "k0", "k1"])
def _tiles(x, rates, out, d, step, most, k0, k1, WIDTH: tl.constexpr, GROUPS: tl.constexpr):
    """Full tiles: a program takes 8 GROUPS blocks, hence as many coordinates in each of the four planes."""
    program = tl.program_id(0).to(tl.int64)
    parts: tl.constexpr = 128 // GROUPS
    tile, part = program // parts, program % parts
    group = part * GROUPS + tl.arange(0, GROUPS)
    block = tile * 1024 + group[:, None] * 8 + tl.arange(0, 8)[None, :]
    w0, w1, w2, w3 = philox(block & 0xFFFFFFFF, block >> 32, k0, k1)
    index = tile * 4096 + group[:, None] * 8 + tl.arange(0, 8)[None, :]
    first = tile * 512 + group
    emit(out, first, rounded(x, rates, index, d, step, w0), d, most, WIDTH)
    emit(out, first + 128, rounded(x, rates, index + 1024, d, step, w1), d, most, WIDTH)
    emit(out, first + 256, rounded(x, rates, index + 2048, d, step, w2), d, most, WIDTH)
    emit(out, first + 384, rounded(x, rates, index + 3072, d, step, w3), d, most, WIDTH)


@triton.jit(do_not_specialize=["start", "d", "step", "most", "k0", "k1"])
def _rest(
    x, rates, words, out, start, d, step, most, k0, k1, WIDTH: tl.constexpr, GROUPS: tl.constexpr, STRIDE: tl.constexpr
):
    """Coordinates from ``start`` (a multiple of 8) on, one word each, ``words[STRIDE i]``; -1: the stream's."""
    group = start // 8 + tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    index = group[:, None] * 8 + tl.arange(0, 8)[None, :]
    w = (
        word(index, k0, k1)
        if STRIDE < 0
        else tl.load(words + index * STRIDE, mask=index < d, other=0).to(tl.uint32, bitcast=True)
    )
    emit(out, group, rounded(x, rates, index, d, step, w), d, most, WIDTH)


@triton.jit(do_not_specialize=["d", "step", "most"])
def _decode(payload, spacings, reached, bad, out, d, step, most, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    level = load_fields(payload, i, d, WIDTH) - most
    spacing = tl.load(spacings + i // step, mask=i < d, other=0.0)
    tl.store(out + i, (spacing * level.to(tl.float64)).to(tl.float32), mask=i < d)
    top = tl.abs(level)
    yes = tl.full((BLOCK,), 1, tl.int8)  # many programs may write it to one place
    tl.store(reached + i // step, yes, mask=(i < d) & (top == most))
    tl.store(bad + i * 0, yes, mask=(i < d) & ((top > most) | ((spacing == 0) & (top > 0))))


def launch(
    x: torch.Tensor, step: int, rates: torch.Tensor, most: int, stream: Stream, width: int, out: torch.Tensor
) -> None:
    """Fill ``out``: with fields of ``width`` bits of level + most, or with signed levels if width is 0."""
    d, k0, k1 = x.numel(), as_signed(stream.k0), as_signed(stream.k1)
    start = d // TILE * TILE if stream.words is None else 0
    fixed = {"WIDTH": width, "GROUPS": GROUPS, "enable_fp_fusion": False}
    if start:
        _tiles[(start // (32 * GROUPS),)](x, rates, out, d, step, most, k0, k1, **fixed)
    if start < d:
        words = x if stream.words is None else stream.words
        stride = -1 if stream.words is None else int(words.numel() > 1)
        grid = (triton.cdiv(d - start, 8 * GROUPS),)
        _rest[grid](x, rates, words, out, start, d, step, most, k0, k1, STRIDE=stride, **fixed)


def signed(x: torch.Tensor, step: int, scales: torch.Tensor, most: int, stream: Stream) -> torch.Tensor:
    """Round every block in a program of its own."""
    out = torch.empty(x.numel(), dtype=torch.int32, device=x.device)
    launch(x, step, rate_of(most, scales), 0, stream, 0, out)
    return out


def encode(x: torch.Tensor, step: int, scales: torch.Tensor, most: int, stream: Stream, room: int = 0) -> torch.Tensor:
    """Round and pack every block in a program of its own."""
    width = (2 * most).bit_length()
    out = torch.empty(room + (x.numel() * width + 7) // 8, dtype=torch.uint8, device=x.device)
    launch(x, step, rate_of(most, scales), most, stream, width, out[room:])
    return out


def decode(
    payload: torch.Tensor, d: int, step: int, spacings: torch.Tensor, most: int
) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """Unpack and scale every block in a program of its own; runs share their flags."""
    out = torch.empty(d, dtype=torch.float32, device=payload.device)
    reached = torch.zeros(spacings.numel(), dtype=torch.int8, device=payload.device)
    bad = torch.zeros(1, dtype=torch.int8, device=payload.device)
    width = (2 * most).bit_length()
    grid = (triton.cdiv(d, 512),)
    _decode[grid](payload, spacings, reached, bad, out, d, step, most, WIDTH=width, BLOCK=512, enable_fp_fusion=False)
    return out, reached.bool(), not bool(bad.item())
