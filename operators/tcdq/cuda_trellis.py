"""Dither, trellis search and hashes in Triton.

Every rounding is that of the CPU: binary32 products, sums, floors and comparisons, one by one, hence launches with
``enable_fp_fusion=False``; all else is integers.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ..kernels.philox.cuda import signed
from .plan import Plan

BLOCK = 1024


@triton.jit
def mix(index, first, second):
    """Return the hash of indices (any integers), uint32."""
    h = index.to(tl.uint32) * 0x9E3779B1 + first.to(tl.uint32)
    h = h ^ (h >> 16)
    h = (h * 0x85EBCA6B) ^ second.to(tl.uint32)
    h = h ^ (h >> 13)
    h = h * 0xC2B2AE35
    return h ^ (h >> 16)


@triton.jit
def dither(index, first, second, SHIFT: tl.constexpr):
    """Return u in units of 2^-24 spacing: int32."""
    return (mix(index, first, second) >> SHIFT).to(tl.int32) * 2 + 1 - (1 << (32 - SHIFT))


@triton.jit
def point(value, u, unit, scale, inverse):
    """Return (F, y - F), F the floor of y = value scale inverse + u unit."""
    r = value * scale * inverse
    whole = tl.floor(r)
    g = (r - whole) + u.to(tl.float32) * unit
    down = tl.floor(g)
    return whole.to(tl.int32) + down.to(tl.int32), g - down


@triton.jit
def square(label, even, odd):
    """Return squared distance to the residue ``label``, from the distances to residues 0 and 1."""
    away = tl.where((label & 1) == 1, odd, even)
    away = tl.where((label & 2) == 2, 2.0 - away, away)
    return away * away


@triton.jit
def bounds(program, d, segment):
    """Return (first coordinate, the one after the last, rows of 16) of a segment."""
    start = program.to(tl.int64) * segment
    stop = tl.where(program == tl.num_programs(0) - 1, d, start + segment)
    return start, stop, ((stop - start + 15) // 16).to(tl.int32)


@triton.jit(do_not_specialize=["d", "segment", "first", "second", "scale", "inverse"])
def _forward(x, before, floors, survivors, ends, d, segment, first, second, scale, inverse, STATES: tl.constexpr):
    """Viterbi's forward pass of one segment: floors, one survivor bit per state, and every lane's last state."""
    start, stop, rows = bounds(tl.program_id(0), d, segment)
    lane, state = tl.arange(0, 16), tl.arange(0, STATES)
    upper, lower = tl.load(before + 2 * state)[None, :], tl.load(before + 2 * state + 1)[None, :]
    whence, other = tl.broadcast_to(upper >> 2, (16, STATES)), tl.broadcast_to(lower >> 2, (16, STATES))
    metric = tl.where(state == 0, 0.0, float("inf"))[None, :] + tl.zeros((16, STATES), tl.float32)
    for t in tl.range(0, rows, num_stages=4):
        i = start + t * 16 + lane
        present = i < stop
        u = dither(i, first, second, 8)
        floor, fraction = point(tl.load(x + i, mask=present, other=0.0), u, 1.1920928955078125e-07, scale, inverse)
        tl.store(floors + i, floor, mask=present)
        y = (floor & 3).to(tl.float32) + fraction
        even, odd = tl.minimum(y, 4.0 - y), tl.abs(y - 1.0)
        odd = tl.minimum(odd, 4.0 - odd)
        a = tl.gather(metric, whence, 1) + square(upper & 3, even[:, None], odd[:, None])
        b = tl.gather(metric, other, 1) + square(lower & 3, even[:, None], odd[:, None])
        taken = (b < a).to(tl.int64) << state[None, :]
        tl.store(survivors + i, tl.sum(taken, axis=1).to(survivors.dtype.element_ty), mask=present)
        metric = tl.where(present[:, None], tl.minimum(a, b), metric)
        if t % 16 == 15:
            metric -= tl.min(metric, axis=1)[:, None]
    least = tl.where(metric == tl.min(metric, axis=1)[:, None], state[None, :], STATES)
    tl.store(ends + tl.program_id(0) * 16 + lane, tl.min(least, axis=1))


@triton.jit(do_not_specialize=["d", "segment", "first", "second"])
def _back(before, floors, survivors, ends, d, segment, first, second):
    """From the last row to the first: ``floors`` become packed symbols."""
    start, stop, rows = bounds(tl.program_id(0), d, segment)
    lane = tl.arange(0, 16)
    state = tl.load(ends + tl.program_id(0) * 16 + lane)
    for r in tl.range(0, rows, num_stages=4):
        i = start + (rows - 1 - r) * 16 + lane
        present = i < stop
        survived = tl.load(survivors + i, mask=present, other=0).to(tl.int64) >> state
        branch = tl.load(before + 2 * state + (survived & 1).to(tl.int32))
        state = tl.where(present, branch >> 2, state)
        low = tl.load(floors + i, mask=present, other=0) - 1
        parity = branch & 1
        n = low + (((branch & 3) - low) & 3)
        a = dither(i, first, second, 8) - (parity << 23)
        k = ((n - parity) >> 1) - (a >> 24)
        tl.store(floors + i, (k << 6) | ((a & 0xFFFFFF) >> 18), mask=present)


@triton.jit(do_not_specialize=["d", "first", "second", "scale", "inverse"])
def _integers(x, out, d, first, second, scale, inverse, BLOCK: tl.constexpr):
    """Packed symbols of the code without a trellis."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    u = dither(i, first, second, 9)
    floor, rest = point(tl.load(x + i, mask=i < d, other=0.0), u, 5.9604644775390625e-08, scale, inverse)
    n = floor + (rest >= 0.5).to(tl.int32)
    tl.store(out + i, ((n - (u >> 24)) << 6) | ((u & 0xFFFFFF) >> 18), mask=i < d)


@triton.jit(do_not_specialize=["d", "first", "second"])
def _hashes(out, d, first, second, BLOCK: tl.constexpr):
    """Hashes less 2^31, as int32, so that their order is kept."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, (mix(i, first, second) ^ 0x80000000).to(tl.int32, bitcast=True), mask=i < d)


def words(seeds: tuple) -> tuple[int, int]:
    """Return the dither's seeds as kernel arguments of one type."""
    return signed(int(seeds[0])), signed(int(seeds[1]))


def symbols(x: torch.Tensor, plan: Plan, norm: float, seeds: tuple) -> torch.Tensor:
    """Return packed symbols: int32, shape (d,)."""
    step, scale = plan.step(norm)
    d, out = plan.d, torch.empty(plan.d, dtype=torch.int32, device=x.device)
    factors = (*words(seeds), 1 / scale, 1 / step)
    if plan.code.states == 1:
        _integers[(triton.cdiv(d, BLOCK),)](x, out, d, *factors, BLOCK=BLOCK, enable_fp_fusion=False)
        return out
    before, grid = torch.from_numpy(plan.code.before).to(x.device), (len(plan.segments),)
    wide = torch.int32 if plan.code.states <= 32 else torch.int64  # narrower ones cannot be fetched ahead of their use
    survivors = torch.empty(d, dtype=wide, device=x.device)
    ends = torch.empty(16 * grid[0], dtype=torch.int32, device=x.device)
    fixed = {"STATES": plan.code.states, "enable_fp_fusion": False, "num_warps": max(1, plan.code.states // 16)}
    _forward[grid](x, before, out, survivors, ends, d, plan.segment, *factors, **fixed)
    _back[grid](before, out, survivors, ends, d, plan.segment, *words(seeds), num_warps=1)
    return out


def hashes(d: int, seeds: tuple, device: torch.device) -> torch.Tensor:
    """Return every coordinate's hash less 2^31: int32, shape (d,)."""
    out = torch.empty(d, dtype=torch.int32, device=device)
    _hashes[(triton.cdiv(d, BLOCK),)](out, d, *words(seeds), BLOCK=BLOCK)
    return out
