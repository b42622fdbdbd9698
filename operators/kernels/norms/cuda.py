"""Norms of runs in Triton: one program for each piece of 4096 terms."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .reference import rounded_up

PIECE = 4096


@triton.jit(do_not_specialize=["d", "step", "pieces"])
def _reduce(x, out, d, step, pieces, ROWS: tl.constexpr, KIND: tl.constexpr):
    """KIND: largest bit pattern, sum of magnitudes, or sum of squares of one piece of one run."""
    program = tl.program_id(0).to(tl.int64)
    run, piece = program // pieces, program % pieces
    lane = tl.arange(0, 64)
    total = tl.zeros((64,), tl.int32) if KIND == "largest" else tl.zeros((64,), tl.float64)
    for row in range(ROWS):
        place = piece * 4096 + row * 64 + lane
        index = run * step + place
        value = tl.load(x + index, mask=(place < step) & (index < d), other=0)
        if KIND == "largest":
            total = tl.maximum(total, value & 0x7FFFFFFF)
        elif KIND == "magnitudes":
            total += tl.abs(value.to(tl.float64))
        else:
            total += value.to(tl.float64) * value.to(tl.float64)  # exact products: fusing changes nothing
    if KIND == "largest":
        tl.store(out + program, tl.max(total, axis=0))
    else:
        total = tl.sum(tl.reshape(total, (2, 32)), axis=0)  # two terms: one order
        total = tl.sum(tl.reshape(total, (2, 16)), axis=0)
        total = tl.sum(tl.reshape(total, (2, 8)), axis=0)
        total = tl.sum(tl.reshape(total, (2, 4)), axis=0)
        total = tl.sum(tl.reshape(total, (2, 2)), axis=0)
        tl.store(out + program, tl.sum(total, axis=0))


def _launch(x: torch.Tensor, step: int, kind: str, dtype: torch.dtype) -> torch.Tensor:
    """Return the value of every piece: shape (runs, pieces)."""
    runs, pieces = -(-x.numel() // step), -(-step // PIECE)
    out = torch.empty(runs * pieces, dtype=dtype, device=x.device)
    rows = min(-(-step // 64), PIECE // 64)
    _reduce[(runs * pieces,)](x, out, x.numel(), step, pieces, ROWS=rows, KIND=kind, num_warps=2)
    return out.reshape(runs, pieces)


def largest(x: torch.Tensor, step: int) -> torch.Tensor:
    """Compare the bit patterns, a piece in a program."""
    return _launch(x.view(torch.int32), step, "largest", torch.int32).amax(1).view(torch.float32)


def _sums(x: torch.Tensor, step: int, kind: str) -> torch.Tensor:
    sums = _launch(x, step, kind, torch.float64)
    while sums.shape[1] > 1:
        sums = _launch(sums.reshape(-1), sums.shape[1], "magnitudes", torch.float64)
    return sums[:, 0]


def absolute_sum(x: torch.Tensor, step: int) -> torch.Tensor:
    """Sum a piece in a program, then their sums."""
    return _sums(x, step, "magnitudes")


def energy(x: torch.Tensor, step: int) -> torch.Tensor:
    """Sum a piece in a program, then their sums."""
    return _sums(x, step, "squares")


def euclidean(x: torch.Tensor, step: int) -> torch.Tensor:
    """Round the roots of the sums up, in torch."""
    return rounded_up(energy(x, step).sqrt())
