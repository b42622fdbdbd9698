"""Compiled means of vectors on the CPU, bitwise equal to plain float64 sums in rank order."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from operators.compilation import jit

PIECE = 1 << 13  # entries whose float64 sum fits into a core's L1 cache
SCRATCH = 1 << 16  # entries that fit into the L2 cache
ENDS = 2, 4  # numbers of vectors that one pass sums and divides


def mean_of_arrays(parts: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Write the mean of at least two vectors, float32 or float64, shape (d,), to ``out``.

    They are summed in order in float64; the sum is divided by their number and rounded once.
    """
    if len(parts) in ENDS:
        _close_pieces(parts, out)
        return
    total = np.empty(min(PIECE, out.size))
    for start in range(0, out.size, PIECE):
        piece = slice(start, min(start + PIECE, out.size))
        first, second, *rest = (part[piece] for part in parts)
        sums = total[: first.size]
        _add(first, second, sums)
        while 1 + len(rest) not in ENDS:
            _add(sums, rest.pop(0), sums)
        _close_pieces((sums, *rest), out[piece], len(parts))


def _mean_by_pieces(parts: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Do the same through a scratch buffer: loops that may write to their input are not vectorised."""
    scratch = np.empty(min(SCRATCH, out.size), out.dtype)
    for start in range(0, out.size, SCRATCH):
        piece = slice(start, min(start + SCRATCH, out.size))
        mean = scratch[: piece.stop - start]
        mean_of_arrays([part[piece] for part in parts], mean)
        out[piece] = mean


def _close_pieces(parts: Sequence[np.ndarray], out: np.ndarray, count: int | None = None) -> None:
    close = _close if len(parts) == 2 else _close_four
    close(*parts, float(count or len(parts)), out)


@jit
def _add(a, b, out):
    for i in range(out.size):
        out[i] = np.float64(a[i]) + np.float64(b[i])


@jit
def _close(a, b, count, out):
    scale = 1 / count
    if math.frexp(count)[0] == 0.5:  # a power of two: a product is as exact and takes two thirds of the time
        for i in range(out.size):
            out[i] = (np.float64(a[i]) + np.float64(b[i])) * scale
    else:
        for i in range(out.size):
            out[i] = (np.float64(a[i]) + np.float64(b[i])) / count


@jit
def _close_four(a, b, c, d, count, out):
    scale = 1 / count
    if math.frexp(count)[0] == 0.5:
        for i in range(out.size):
            out[i] = (np.float64(a[i]) + np.float64(b[i]) + np.float64(c[i]) + np.float64(d[i])) * scale
    else:
        for i in range(out.size):
            out[i] = (np.float64(a[i]) + np.float64(b[i]) + np.float64(c[i]) + np.float64(d[i])) / count


def precision(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of a mean of vectors: float64 for float64, else float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def fold(parts: Sequence[torch.Tensor], out: torch.Tensor | None = None) -> torch.Tensor:
    """Return the mean of equally long vectors: their float64 sum in order, divided by their number.

    The same parts in the same order give the same bits, for any slice of the vectors and on any device.  ``out``
    receives the mean; None allocates a vector in the parts' ``precision``.
    """
    first, *rest = parts
    if out is None:
        out = first.new_empty(first.numel(), dtype=precision(first.dtype))
    if rest and first.device.type == "cpu" and first.dtype == out.dtype:
        _mean_by_pieces([part.numpy() for part in parts], out.numpy())
    else:
        _fold_plainly(parts, out)
    return out


def _fold_plainly(parts: Sequence[torch.Tensor], out: torch.Tensor) -> None:
    """Compute the mean for any dtype and device; the reference of the compiled code."""
    first, *rest = parts
    total = first.to(torch.float64, copy=True)
    for part in rest:
        total += part
    out.copy_(total.div_(len(parts)))
