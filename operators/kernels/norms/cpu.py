"""Norms of runs compiled for the CPU: 64 accumulators, which the compiler keeps in vector registers."""

from __future__ import annotations

import numba
import numpy as np
import torch

LANES, PIECE = 64, 4096


@numba.njit(cache=True, nogil=True)
def largest_pattern(patterns):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Largest bit pattern (uint32) without its sign: above 0x7F7FFFFF if and only if some entry is no number."""
    top = np.uint32(0)
    for i in range(patterns.size):
        top = max(top, patterns[i] & np.uint32(0x7FFFFFFF))
    return top


@numba.njit(cache=True, nogil=True)
def _fold(lanes):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    width = LANES // 2
    while width > 0:
        for i in range(width):
            lanes[i] += lanes[i + width]
        width >>= 1
    return lanes[0]


@numba.njit(cache=True, nogil=True)
def _pieces(x, squares):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Sums of the pieces of 4096 terms; ``x`` is float32 (magnitudes or squares) or float64 (as it is)."""
    out = np.empty((x.size + PIECE - 1) // PIECE)
    lanes = np.empty(LANES)
    for p in range(out.size):
        piece = x[p * PIECE : min((p + 1) * PIECE, x.size)]
        lanes[:] = 0.0
        whole = piece.size // LANES
        for row in range(whole):
            part = piece[row * LANES : (row + 1) * LANES]
            if squares:
                for i in range(LANES):
                    lanes[i] += np.float64(part[i]) * np.float64(part[i])
            else:
                for i in range(LANES):
                    lanes[i] += np.float64(abs(part[i]))
        for i in range(whole * LANES, piece.size):
            term = np.float64(piece[i])
            lanes[i - whole * LANES] += term * term if squares else abs(term)
        out[p] = _fold(lanes)
    return out


@numba.njit(cache=True, nogil=True)
def ordered_sum(x, squares):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Sum of the magnitudes, or of the squares, of a float32 array; 0 for an empty one."""
    if x.size == 0:
        return 0.0
    sums = _pieces(x, squares)
    while sums.size > 1:
        sums = _pieces(sums, False)
    return sums[0]


@numba.njit(cache=True, nogil=True)
def _largest(patterns, step, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for b in range(out.size):
        out[b] = largest_pattern(patterns[b * step : min((b + 1) * step, patterns.size)])


@numba.njit(cache=True, nogil=True)
def _sums(x, step, squares, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for b in range(out.size):
        out[b] = ordered_sum(x[b * step : min((b + 1) * step, x.size)], squares)


def largest(x: torch.Tensor, step: int) -> torch.Tensor:
    """See the package."""
    out = np.empty(-(-x.numel() // step), np.uint32)
    _largest(x.numpy().view(np.uint32), step, out)
    return torch.from_numpy(out.view(np.float32))


def absolute_sum(x: torch.Tensor, step: int) -> torch.Tensor:
    """See the package."""
    out = np.empty(-(-x.numel() // step))
    _sums(x.numpy(), step, False, out)
    return torch.from_numpy(out)


def energy(x: torch.Tensor, step: int) -> torch.Tensor:
    """See the package."""
    out = np.empty(-(-x.numel() // step))
    _sums(x.numpy(), step, True, out)
    return torch.from_numpy(out)
