"""Norms of runs compiled for the CPU: 64 accumulators, which the compiler keeps in vector registers."""

from __future__ import annotations

import numpy as np
import torch

from ...compilation import jit
from ..threads import is_long, shared
from . import LARGEST, beyond_binary32

LANES, PIECE = 64, 4096


@jit
def largest_pattern(patterns):
    """Return largest bit pattern (uint32) without its sign: above 0x7F7FFFFF if and only if some entry is no number."""
    top = np.uint32(0)
    for i in range(patterns.size):
        top = max(top, patterns[i] & np.uint32(0x7FFFFFFF))
    return top


@jit
def _fold(lanes):
    """Sum of 64 lanes by halves; loops of a known length become a few vector additions."""
    for i in range(32):
        lanes[i] += lanes[i + 32]
    for i in range(16):
        lanes[i] += lanes[i + 16]
    for i in range(8):
        lanes[i] += lanes[i + 8]
    for i in range(4):
        lanes[i] += lanes[i + 4]
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])


@jit
def piece_sum(x, start, stop, squares, lanes):
    """Sum of up to 4096 terms; ``x`` is float32 (magnitudes or squares) or float64 (as it is).

    Unsigned indices cannot wrap around, so that the inner loops are vector loops.
    """
    for i in range(LANES):  # to assign a slice takes a second more to compile
        lanes[i] = 0.0
    row, last, width = np.uint64(start), np.uint64(stop), np.uint64(LANES)
    while row + width <= last:
        if squares:
            for i in range(LANES):
                lanes[i] += np.float64(x[row + np.uint64(i)]) * np.float64(x[row + np.uint64(i)])
        else:
            for i in range(LANES):
                lanes[i] += np.float64(abs(x[row + np.uint64(i)]))
        row += width
    for i in range(last - row):
        term = np.float64(x[row + i])
        lanes[i] += term * term if squares else abs(term)
    return _fold(lanes)


@jit
def sum_of_pieces(sums, lanes):
    """Return the sum of the sums of pieces, and of theirs, until one is left."""
    while sums.size > 1:
        above = np.empty((sums.size + PIECE - 1) // PIECE)
        for p in range(above.size):
            above[p] = piece_sum(sums, p * PIECE, min((p + 1) * PIECE, sums.size), False, lanes)
        sums = above
    return sums[0]


@jit
def _largest(patterns, step, out):
    start, step, size = np.uint64(0), np.uint64(step), np.uint64(patterns.size)
    for b in range(out.size):
        top, stop = np.uint32(0), min(start + step, size)
        for i in range(start, stop):
            top = max(top, patterns[i] & np.uint32(0x7FFFFFFF))
        out[b], start = top, stop


@jit
def _sums_of_pieces(x, step, pieces, squares, first, last, lanes, out):
    """The sum of piece p of run b at b * pieces + p of ``out`` (zeroed); the last run may have fewer pieces."""
    for i in range(first, last):
        b, p = i // pieces, i % pieces
        start, stop = b * step + p * PIECE, min((b + 1) * step, x.size)
        if start < stop:
            out[i] = piece_sum(x, start, min(start + PIECE, stop), squares, lanes)


def sums(x: np.ndarray, step: int, squares: bool) -> np.ndarray:
    """The sums of the pieces of every run, the sums of these, and so on until a run has one left."""
    runs = -(-x.size // step)
    while True:
        out = _sums_of_runs(x, step, -(-step // PIECE), squares, runs)
        if step <= PIECE:
            return out
        x, step, squares = out, -(-step // PIECE), False  # zeros behind the last run's sums change no sum


def _sums_of_runs(x: np.ndarray, step: int, pieces: int, squares: bool, runs: int) -> np.ndarray:
    """Return the sums of the pieces of every run."""
    out = np.zeros(runs * pieces)

    def work(first: int, last: int) -> None:
        _sums_of_pieces(x, step, pieces, squares, first, last, np.empty(LANES), out)

    shared(out.size, 1, work, size=min(step, PIECE))
    return out


def largest(x: torch.Tensor, step: int) -> torch.Tensor:
    """Compare the bit patterns, which are ordered as the magnitudes are."""
    patterns, out = x.numpy().view(np.uint32), np.empty(-(-x.numel() // step), np.uint32)

    def work(first: int, last: int) -> None:
        _largest(patterns[first * step : last * step], step, out[first:last])

    if not is_long(patterns.size):
        _largest(patterns, step, out)
    elif out.size == 1:
        out[0] = max(shared(patterns.size, PIECE, lambda start, stop: largest_pattern(patterns[start:stop])))
    else:
        shared(out.size, 1, work, size=step)
    return torch.from_numpy(out.view(np.float32))


def absolute_sum(x: torch.Tensor, step: int) -> torch.Tensor:
    """Sum run by run."""
    return torch.from_numpy(sums(x.numpy(), step, False))


def energy(x: torch.Tensor, step: int) -> torch.Tensor:
    """Sum run by run."""
    return torch.from_numpy(sums(x.numpy(), step, True))


def euclidean(x: torch.Tensor, step: int) -> torch.Tensor:
    """Round the roots of the sums up."""
    roots = np.sqrt(energy(x, step).numpy())
    if roots.max() > LARGEST:
        raise beyond_binary32(roots.max())
    rounded = roots.astype(np.float32)
    return torch.from_numpy(np.where(rounded < roots, np.nextafter(rounded, np.float32(np.inf)), rounded))
