"""Viterbi's algorithm with path metrics of a byte, so that a register of the processor holds four times as many.

A squared distance is counted in units of 1/20, rounded down; sums stop at 255, which no path near the best one comes
to.  That costs .0003 bit, but many paths are now equal.  A rule such as "the lower state wins" would prefer some signs
of the error: instead, a bit of the hash that the dither leaves says which of two branches wins, and at the end that
state wins whose number is least after an exclusive or with eight such bits.  Adding a codeword changes these bits as it
changes the states, and as they are uniform, it leaves the law of the error as it is.

In the first rows costs stop at 31: the paths from state 0 then stay below 255, where the metrics of all others are.
"""

from __future__ import annotations

import numpy as np

from ..compilation import jit
from .dither import mix
from .quantise import SETTLE, costs, dithered, packed

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
