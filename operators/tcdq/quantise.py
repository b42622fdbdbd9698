"""From a vector to symbols: the nearest admitted integer sequence, by Viterbi's algorithm in lockstep lanes.

With y = x/step + u and F = floor(y), the nearest integer with residue j modulo 4 is the only one of F - 1, F,
F + 1, F + 2 that has it: the forward pass keeps F and one survivor bit per state, the way back finds the rest.
A symbol is packed as 64 k + phase, where n - u = v (k - w), 0 <= w < 1, and the phase is floor(64 w).
"""

from __future__ import annotations

import numpy as np

from ..compilation import jit
from .trellis import HALF_BITS, PHASE, UNIT, Grid, mix

PHASES = 64
_PHASE_SHIFT = 18  # UNIT / PHASES = 2^18
CHUNK = 64  # rows whose branch metrics are prepared together
SETTLE = 16  # rows between two subtractions of the least metric


@jit(inline="always")
def _floor(value, scale, inverse, dither):
    """Return (F, y - F) of y = value scale inverse + dither; only the fractions are added, so none is lost."""
    r = value * scale * inverse
    whole = np.floor(r)
    g = (r - whole) + dither
    down = np.floor(g)
    return np.int32(whole) + np.int32(down), g - down


@jit(inline="always")
def _select(metric, update, cost, before, bits, lanes):
    """Add, compare and select in every lane; ``bits`` receives the survivors."""
    states = metric.shape[0]
    for lane in range(lanes):
        bits[lane] = 0
    for s in range(states):
        upper, lower = before[2 * s], before[2 * s + 1]
        p, i, q, j = upper >> 2, upper & 3, lower >> 2, lower & 3
        for lane in range(lanes):
            a = metric[p, lane] + cost[i, lane]
            b = metric[q, lane] + cost[j, lane]
            bits[lane] |= (b < a) << s
            update[s, lane] = min(a, b)


@jit(inline="always")
def _settle(metric, lanes):
    for lane in range(lanes):
        least = metric[0, lane]
        for s in range(1, metric.shape[0]):
            least = min(least, metric[s, lane])
        for s in range(metric.shape[0]):
            metric[s, lane] -= least


@jit(inline="always")
def costs(fraction, quarter, cost, lanes):
    """Squared distances to the residues 0 .. 3, from y modulo 4."""
    two = np.float32(2)
    for lane in range(lanes):
        g = np.float32(quarter[lane] & 3) + fraction[lane]
        even = min(g, np.float32(4) - g)
        odd = abs(g - np.float32(1))
        odd = min(odd, np.float32(4) - odd)
        cost[0, lane] = even * even
        cost[2, lane] = (two - even) * (two - even)
        cost[1, lane] = odd * odd
        cost[3, lane] = (two - odd) * (two - odd)


@jit(inline="always")
def dithered(x, i, grid):
    """Return floor and fraction of one dithered point."""
    u = np.int32(2 * np.int32(mix(i, grid.first, grid.second) >> np.uint32(8)) + 1 - UNIT)
    return _floor(x, grid.scale, grid.inverse, np.float32(u) * np.float32(2.0**-23))


@jit(inline="always")
def packed(floor, label, i, grid):
    """Return the symbol of coordinate i: of the integer with residue ``label`` among four around its point."""
    u = np.int32(2 * np.int32(mix(i, grid.first, grid.second) >> np.uint32(8)) + 1 - UNIT)
    low = np.int32(floor - 1)
    n = np.int32(low + ((label - low) & 3))
    parity = np.int32(label & 1)
    a = np.int32(u - np.int32(parity << HALF_BITS))
    k = np.int32(np.int32((n - parity) >> 1) - np.int32(a >> 24))
    return np.int32(np.int32(k << 6) | np.int32((a & PHASE) >> _PHASE_SHIFT))


@jit
def forward(x, grid, before, metric, floors, survivors):
    """Any number of states and lanes: ``metric`` (states, lanes) is brought to the end."""
    rows, lanes = survivors.shape
    update, cost = np.empty_like(metric), np.empty((4, lanes), np.float32)
    fractions, bits = np.empty(lanes, np.float32), np.empty(lanes, np.int64)
    for t in range(rows):
        row = t * lanes
        present = min(lanes, x.size - row)
        for lane in range(present):
            floors[row + lane], fractions[lane] = dithered(x[row + lane], row + lane, grid)
        costs(fractions, floors[row:], cost, present)
        _select(metric, update, cost, before, bits, present)
        for lane in range(present):
            survivors[t, lane] = bits[lane]
        for s in range(metric.shape[0]):  # to assign a slice takes two seconds more to compile
            for lane in range(present):
                metric[s, lane] = update[s, lane]
        if t % SETTLE == SETTLE - 1:
            _settle(metric, lanes)


@jit
def back(floors, survivors, state, before, grid):
    """Replace ``floors`` by packed symbols, last row first; ``state`` (uint8) is consumed.

    Indices are unsigned where it matters: no negative ones have to be looked for.
    """
    rows, lanes = survivors.shape
    flat, width, unit = survivors.reshape(-1), np.uint64(lanes), np.uint64(1)
    branches = np.empty(CHUNK * lanes, np.uint8)
    for top in range((rows - 1) // CHUNK * CHUNK, -1, -CHUNK):
        base = np.uint64(top * lanes)
        stop = min((top + CHUNK) * lanes, floors.size)
        count = min(CHUNK, rows - top)
        for r in range(count):
            row = count - 1 - r
            start = np.uint64(row) * width
            present = min(lanes, floors.size - (top + row) * lanes)
            for lane in range(present):
                i = np.uint64(lane)
                s = np.uint64(state[i])
                branch = before[np.uint64((s + s) | ((np.uint64(flat[base + start + i]) >> s) & unit))]
                branches[start + i] = branch
                state[i] = branch >> np.uint8(2)
        for step in range(stop - top * lanes):
            j = base + np.uint64(step)
            floors[j] = packed(floors[j], np.int32(branches[step]), np.uint32(j), grid)


@jit
def integers(x, grid, out):
    """Packed symbols of the code without a trellis: n = rint(y)."""
    for i in range(x.size):
        u = np.int32(2 * np.int32(mix(i, grid.first, grid.second) >> np.uint32(9)) + 1 - (UNIT >> 1))
        n, rest = _floor(x[i], grid.scale, grid.inverse, np.float32(u) * np.float32(2.0**-24))
        n += np.int32(rest >= np.float32(0.5))
        out[i] = np.int32(((n - (u >> 24)) << 6) | ((u & PHASE) >> _PHASE_SHIFT))


@jit
def integer_rows(x, scale, inverse, seeds, out):
    """Fill each row of ``out`` by ``integers``, with a scale and seeds of its own."""
    for row in range(x.shape[0]):
        integers(x[row], Grid(scale[row], inverse[row], seeds[row, 0], seeds[row, 1]), out[row])


# Viterbi's algorithm with path metrics of a byte, so that a register of the processor holds four times as many.
#
# A squared distance is counted in units of 1/20, rounded down; sums stop at 255, which no path near the best one comes
# to.  That costs .0003 bit, but many paths are now equal.  A rule such as "the lower state wins" would prefer some
# signs of the error: instead, a bit of the hash that the dither leaves says which of two branches wins, and at the end
# that state wins whose number is least after an exclusive or with eight such bits.  Adding a codeword changes these
# bits as it changes the states, and as they are uniform, it leaves the law of the error as it is.
#
# In the first rows costs stop at 31: the paths from state 0 then stay below 255, where the metrics of all others are.

GRAIN = np.float32(20)  # metrics are counted in 1/20 of the squared spacing of all integers
FULL = 255  # where sums stop
LEAST = 1  # the least metric after it was brought down: a tie is found by taking 1 off
EARLY, FIRST_COST = 8, 31  # rows in which not every state can be reached, and the most that a branch costs in them


@jit
def forward_coarse(x, grid, before, metric, floors, survivors):
    """Any number of lanes: ``metric`` (states, lanes; uint8) is brought to the end.

    Parameters
    ----------
    survivors : ndarray of uint8, shape (rows, lanes, states)
        Receives 1 where the second branch survives.
    """
    rows, lanes, states = survivors.shape
    update, cost = np.empty_like(metric), np.empty((4, lanes), np.float32)
    fractions = np.empty(lanes, np.float32)
    for t in range(rows):
        row = t * lanes
        present, most = min(lanes, x.size - row), FIRST_COST if t < EARLY else FULL
        for lane in range(present):
            floors[row + lane], fractions[lane] = dithered(x[row + lane], row + lane, grid)
        costs(fractions, floors[row:], cost, present)
        for lane in range(present):
            second_wins = np.int64(mix(row + lane, grid.first, grid.second) & np.uint32(1))
            c = [min(np.int64(cost[j, lane] * GRAIN), most) for j in range(4)]
            for s in range(states):
                upper, lower = before[2 * s], before[2 * s + 1]
                a = min(np.int64(metric[upper >> 2, lane]) + c[upper & 3], FULL)
                b = min(np.int64(metric[lower >> 2, lane]) + c[lower & 3], FULL)
                survivors[t, lane, s] = b - second_wins < a
                update[s, lane] = min(a, b)
        for lane in range(present):
            least = update[0, lane]
            for s in range(states):
                least = min(least, update[s, lane])
            for s in range(states):
                metric[s, lane] = update[s, lane] - (least - LEAST if t % SETTLE == SETTLE - 1 else 0)


@jit
def back_coarse(floors, survivors, state, before, grid):
    """Replace ``floors`` by packed symbols, last row first; ``state`` (int64) is consumed."""
    rows, lanes = survivors.shape[:2]
    for t in range(rows - 1, -1, -1):
        for lane in range(min(lanes, floors.size - t * lanes)):
            i, s = t * lanes + lane, state[lane]
            branch = before[2 * s + survivors[t, lane, s]]
            floors[i] = packed(floors[i], np.int32(branch & 3), np.uint32(i), grid)
            state[lane] = branch >> 2


def last_states(metric: np.ndarray, grid: tuple) -> np.ndarray:
    """Return the state in which each lane ends: int64, shape (lanes,).

    Parameters
    ----------
    metric : ndarray of uint8, shape (states, lanes)
        Of all paths.
    grid : Grid
        With the seeds of the dither.
    """
    states, lanes = metric.shape
    *_, first, second = grid
    order = np.array([int(mix(lane, first, second)) for lane in range(lanes)]) & (states - 1)
    return (metric.astype(np.int64) * states + (np.arange(states)[:, None] ^ order)).argmin(axis=0)
