"""The rotation in Triton: a program takes 4096 coordinates through up to twelve stages in registers.

The first pass works on contiguous coordinates.  Later passes join rows at a distance, a few coordinates wide.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from . import factor, part_starts, transform_length, words_per_part

SIZE = 4096  # coordinates of a program
ROWS = 64  # at most in a later pass, so that a row is long enough to be read as one piece


@triton.jit
def butterflies(v, ROWS: tl.constexpr, WIDTH: tl.constexpr, STAGES: tl.constexpr):
    """Return the stages between the rows of a tensor of shape (ROWS * WIDTH,)."""
    for s in tl.static_range(STAGES):
        pairs = tl.reshape(v, (ROWS >> (s + 1), 2, WIDTH << s))
        a, b = tl.split(tl.permute(pairs, (0, 2, 1)))
        v = tl.reshape(tl.permute(tl.join(a + b, a - b), (0, 2, 1)), (ROWS * WIDTH,))
    return v


@triton.jit
def signs_of(words, i, s):
    """Return -s where the bit of coordinate i is set, s elsewhere."""
    word = tl.load(words + (i >> 5))
    return tl.where(((word >> (i & 31).to(tl.int32)) & 1) == 1, -s, s)


@triton.jit(do_not_specialize=["distance", "s"])
def _pass(v, words, distance, s, ROWS: tl.constexpr, WIDTH: tl.constexpr, STAGES: tl.constexpr, FLIP: tl.constexpr):
    """Stages between ROWS rows at ``distance``, WIDTH coordinates wide; FLIP: signs "before", "after" or not."""
    program = tl.program_id(0).to(tl.int64)
    columns = distance // WIDTH
    base = (program // columns) * ROWS * distance + (program % columns) * WIDTH
    place = tl.arange(0, ROWS * WIDTH)
    i = base + (place // WIDTH) * distance.to(tl.int64) + place % WIDTH
    value = tl.load(v + i)
    if FLIP == "before":
        value = value * signs_of(words, i, s)
    value = butterflies(value, ROWS, WIDTH, STAGES)
    if FLIP == "after":
        value = value * signs_of(words, i, s)
    tl.store(v + i, value)


def _passes(p: int) -> list[tuple[int, int, int]]:
    """Return (distance, rows, width) of each pass over p coordinates."""
    passes = [(1, min(p, SIZE), 1)]
    distance = min(p, SIZE)
    while distance < p:
        rows = min(ROWS, p // distance)
        passes.append((distance, rows, min(SIZE // rows, distance)))
        distance *= rows
    return passes


def _part(v: torch.Tensor, words: torch.Tensor, s: float, forwards: bool) -> None:
    """Transform the p coordinates of one part in place, with its signs before or after."""
    passes = _passes(v.numel())
    for number, (distance, rows, width) in enumerate(passes):
        flip = "none"
        if forwards and number == 0:
            flip = "before"
        elif not forwards and number == len(passes) - 1:
            flip = "after"
        sizes = {"ROWS": rows, "WIDTH": width, "STAGES": rows.bit_length() - 1}
        grid = (v.numel() // (rows * width),)
        _pass[grid](v, words, distance, s, FLIP=flip, num_warps=8, enable_fp_fusion=False, **sizes)


def rotate(x: torch.Tensor, words: torch.Tensor, rounds: int) -> torch.Tensor:
    """Transform part by part, many stages in a pass."""
    return _run(x, words, rounds, True)


def unrotate(z: torch.Tensor, words: torch.Tensor, rounds: int) -> torch.Tensor:
    """Undo the parts in reverse."""
    return _run(z, words, rounds, False)


def _run(x: torch.Tensor, words: torch.Tensor, rounds: int, forwards: bool) -> torch.Tensor:
    d, out = x.numel(), x.clone()
    starts, p, n = part_starts(d), transform_length(d), words_per_part(d)
    s = torch.tensor(factor(d), dtype=torch.float32).item()
    for i in range(rounds * len(starts)):
        number = i if forwards else rounds * len(starts) - 1 - i
        start = starts[number % len(starts)]
        _part(out[start : start + p], words[number * n : (number + 1) * n], s, forwards)
    return out
