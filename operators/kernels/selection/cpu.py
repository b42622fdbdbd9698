"""Selection compiled for the CPU: a sampled threshold leaves few candidates, radix passes choose among them.

The threshold only decides how many candidates there are.  If fewer than k pass it, or more than the buffer
holds, the radix passes take all coordinates: the result is exact for every input.
"""

from __future__ import annotations

import numpy as np
import torch

from ...compilation import jit
from ..threads import shared

SMALL = 8192  # below it a stable sort is faster
SAMPLE = 1 << 14
PIECE = 4096


@jit
def _critical(histogram, k):
    """Return (bin that holds the k-th largest, how many of that bin are wanted)."""
    left = k
    for b in range(histogram.size - 1, -1, -1):
        if histogram[b] >= left:
            return b, left
        left -= histogram[b]
    return 0, 0


@jit
def _radix(patterns, k, out):
    """Positions of the k largest patterns without sign, by their high 15 and then their low 16 bits."""
    magnitude = np.uint32(0x7FFFFFFF)
    high = np.zeros(1 << 15, np.int64)
    for i in range(patterns.size):
        high[(patterns[i] & magnitude) >> np.uint32(16)] += 1
    top, remaining = _critical(high, k)
    low = np.zeros(1 << 16, np.int64)
    for i in range(patterns.size):
        if (patterns[i] & magnitude) >> np.uint32(16) == top:
            low[patterns[i] & np.uint32(0xFFFF)] += 1
    bottom, ties = _critical(low, remaining)
    threshold = np.uint32((top << 16) | bottom)
    j = 0
    for i in range(patterns.size):
        m = patterns[i] & magnitude
        if m > threshold:
            out[j] = i
            j += 1
        elif m == threshold and ties > 0:
            out[j] = i
            j += 1
            ties -= 1


@jit
def _candidates(patterns, threshold, out):
    """Return positions with a magnitude of at least ``threshold`` into ``out``; returns how many, or -1 if too many.

    Comparisons are vector loops; most groups of eight hold none and are passed over at once.
    """
    hit, j = np.empty(PIECE, np.uint8), 0
    eights = hit.view(np.uint64)
    for start in range(0, patterns.size, PIECE):
        if j + PIECE > out.size:
            return -1
        part = patterns[start : min(start + PIECE, patterns.size)]
        for i in range(part.size):
            hit[i] = (part[i] & np.uint32(0x7FFFFFFF)) >= threshold
        hit[part.size : (part.size + 7) & ~7] = 0
        for g in range((part.size + 7) >> 3):
            if eights[g] != 0:
                for i in range(8 * g, 8 * g + 8):
                    out[j] = start + i
                    j += hit[i]
    return j


def _threshold(patterns: np.ndarray, k: int) -> np.uint32:
    """Return a magnitude that somewhat more than k of all are expected to reach; 0 if that is no help."""
    sample = patterns[:: patterns.size // SAMPLE] & np.uint32(0x7FFFFFFF)
    expected = k * sample.size / patterns.size
    rank = int(expected + 4 * expected**0.5 + 4)
    return np.uint32(0) if 4 * rank > sample.size else np.partition(sample, sample.size - rank)[sample.size - rank]


def _among(patterns: np.ndarray, start: int, stop: int, threshold: np.uint32, k: int) -> np.ndarray:
    """Return the candidates at start .. stop - 1, or the single number -1 if there are too many."""
    n, share = stop - start, (stop - start) / patterns.size
    candidates = np.empty(int(2 * k * share) + n // 16 + 2 * PIECE, np.int64)
    count = int(_candidates(patterns[start:stop], threshold, candidates))
    return candidates[:count] + start if count >= 0 else np.full(1, -1)


def largest(x: torch.Tensor, k: int) -> torch.Tensor:
    """Narrow the candidates by a sample, then sort by digits; sort short vectors."""
    if x.numel() < SMALL:
        order = np.argsort(-np.abs(x.numpy()), kind="stable")
        return torch.from_numpy(np.sort(order[:k]))
    patterns, out = x.numpy().view(np.uint32), np.empty(k, np.int64)
    threshold = _threshold(patterns, k) if x.numel() > 4 * SAMPLE else np.uint32(0)
    if threshold > 0:
        parts = shared(patterns.size, PIECE, lambda start, stop: _among(patterns, start, stop, threshold, k))
        candidates = np.concatenate(parts)
        if candidates.size >= k and candidates.min() >= 0:
            _radix(patterns[candidates], k, out)
            return torch.from_numpy(candidates[out])
    _radix(patterns, k, out)
    return torch.from_numpy(out)
