"""The bulk of the forward pass for 8 states and 16 lanes: unrolled over the states, vectorised over the lanes.

The trellis is a constant of the module, so that the compiler sees every branch's place and label.
"""

from __future__ import annotations

import numpy as np

from ..compilation import jit
from .quantise import CHUNK, SETTLE, dithered
from .trellis import CODES, LANES

STATES = 8
SIZE = STATES * LANES
ENTERING = CODES[STATES].before.astype(np.int64)
UPPER, LOWER = ENTERING[0::2] >> 2, ENTERING[1::2] >> 2
LABEL, OTHER = ENTERING[0::2] & 3, ENTERING[1::2] & 3
F1, F2, F4 = np.float32(1), np.float32(2), np.float32(4)


@jit(inline="always")
def _row(metric, old, new, points, start, survivors, t):
    """One step in every lane; the old and new metrics are halves of one array at constant distance."""
    for lane in range(LANES):
        g = points[start + lane]
        h = F4 - g
        even = g if g < h else h
        odd = abs(g - F1)
        h = F4 - odd
        odd = odd if odd < h else h
        c0, c1, c2, c3 = even * even, odd * odd, (F2 - even) * (F2 - even), (F2 - odd) * (F2 - odd)
        bits = np.int32(0)
        for s in range(STATES):
            i, j = LABEL[s], OTHER[s]
            a = metric[old + UPPER[s] * LANES + lane] + (c0 if i == 0 else c1 if i == 1 else c2 if i == 2 else c3)
            b = metric[old + LOWER[s] * LANES + lane] + (c0 if j == 0 else c1 if j == 1 else c2 if j == 2 else c3)
            taken = b < a
            metric[new + s * LANES + lane] = b if taken else a
            bits = np.int32(bits | np.int32(np.int32(taken) << np.int32(s)))
        survivors[t * LANES + lane] = np.uint8(bits)


@jit
def viterbi_simd(x, grid, metric, floors, survivors):
    """As ``quantise.forward`` for the whole chunks at the beginning; returns the first row that it left out."""
    both = np.empty(2 * SIZE, np.float32)
    beginning = metric.reshape(-1)
    for i in range(SIZE):  # to assign a slice takes two seconds more to compile
        both[i] = beginning[i]
    points = np.empty(CHUNK * LANES, np.float32)
    flat = survivors.reshape(-1)
    rows = x.size // (LANES * CHUNK) * CHUNK
    for top in range(0, rows, CHUNK):
        base = top * LANES
        for i in range(CHUNK * LANES):
            floor, fraction = dithered(x[base + i], base + i, grid)
            floors[base + i] = floor
            points[i] = np.float32(floor & 3) + fraction
        for t in range(0, CHUNK, 2):
            _row(both, 0, SIZE, points, t * LANES, flat, top + t)
            _row(both, SIZE, 0, points, (t + 1) * LANES, flat, top + t + 1)
            if t % SETTLE == SETTLE - 2:
                for lane in range(LANES):
                    least = both[lane]
                    for s in range(1, STATES):
                        least = min(least, both[s * LANES + lane])
                    for s in range(STATES):
                        both[s * LANES + lane] -= least
    for i in range(SIZE):
        beginning[i] = both[i]
    return rows
