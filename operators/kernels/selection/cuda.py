"""Selection in Triton: four radix passes of 8, 8, 8 and 7 bits find the threshold, two more write positions."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 2048
SHIFTS = (23, 15, 7, 0)


@triton.jit(do_not_specialize=["d"])
def _histogram(patterns, prefix, counts, d, SHIFT: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr):
    """Count the next BITS bits of the magnitudes that begin with the prefix; bin 511 takes the others."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    magnitude = tl.load(patterns + i, mask=i < d, other=0) & 0x7FFFFFFF
    same = (i < d) & ((magnitude >> SHIFT) >> BITS == tl.load(prefix))
    bins = tl.where(same, (magnitude >> SHIFT) & ((1 << BITS) - 1), 511)
    count = tl.histogram(bins.to(tl.int32), 512)
    index = tl.arange(0, 512)
    tl.atomic_add(counts + index, count, mask=(index < 256) & (count > 0))


@triton.jit(do_not_specialize=["d"])
def _count(patterns, threshold, above, equal, d, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    magnitude = tl.load(patterns + i, mask=i < d, other=0) & 0x7FFFFFFF
    limit = tl.load(threshold)
    tl.store(above + tl.program_id(0), tl.sum(((i < d) & (magnitude > limit)).to(tl.int32), axis=0))
    tl.store(equal + tl.program_id(0), tl.sum(((i < d) & (magnitude == limit)).to(tl.int32), axis=0))


@triton.jit(do_not_specialize=["d"])
def _write(patterns, threshold, ties, above, equal, out, d, BLOCK: tl.constexpr):
    """``above`` and ``equal`` hold how many there are in all earlier blocks."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    magnitude = tl.load(patterns + i, mask=i < d, other=0) & 0x7FFFFFFF
    limit, remaining = tl.load(threshold), tl.load(ties)
    greater = ((i < d) & (magnitude > limit)).to(tl.int32)
    tied = ((i < d) & (magnitude == limit)).to(tl.int32)
    before = tl.load(above + tl.program_id(0)) + tl.cumsum(greater, axis=0) - greater
    ties_before = tl.load(equal + tl.program_id(0)) + tl.cumsum(tied, axis=0) - tied
    keep = (greater == 1) | ((tied == 1) & (ties_before < remaining))
    tl.store(out + before + tl.minimum(ties_before, remaining), i, mask=keep)


def largest(x: torch.Tensor, k: int) -> torch.Tensor:
    """Find the critical magnitude digit by digit, then write in place."""
    d, patterns = x.numel(), x.view(torch.int32)
    grid = (triton.cdiv(d, BLOCK),)
    prefix = torch.zeros(1, dtype=torch.int32, device=x.device)
    remaining = torch.full((1,), k, dtype=torch.int64, device=x.device)
    for shift in SHIFTS:
        bits = 7 if shift == 0 else 8
        counts = torch.zeros(512, dtype=torch.int32, device=x.device)
        _histogram[grid](patterns, prefix, counts, d, SHIFT=shift, BITS=bits, BLOCK=BLOCK)
        at_least = counts.long().flip(0).cumsum(0).flip(0)  # magnitudes with these bits or more
        digit = (at_least >= remaining).sum() - 1
        remaining = remaining - at_least[digit + 1]
        prefix = ((prefix << bits) | digit).to(torch.int32)
    above = torch.empty(grid[0], dtype=torch.int32, device=x.device)
    equal = torch.empty_like(above)
    _count[grid](patterns, prefix, above, equal, d, BLOCK=BLOCK)
    out = torch.empty(k, dtype=torch.int64, device=x.device)
    before, ties_before = above.long().cumsum(0) - above, equal.long().cumsum(0) - equal
    _write[grid](patterns, prefix, remaining, before, ties_before, out, d, BLOCK=BLOCK)
    return out
