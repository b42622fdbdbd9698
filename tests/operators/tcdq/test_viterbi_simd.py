"""The vectorised passes do what the plain ones do, whatever the length and the code."""

import numpy as np
import pytest

from operators import Key
from operators.tcdq.quantise import back, forward
from operators.tcdq.trellis import CODES, LANES, Grid, seeds
from operators.tcdq.viterbi import symbols_in_lanes

GRID = Grid(np.float32(1), np.float32(1), *seeds(Key(1)))


def plain(x, before):
    states, out = before.size // 2, np.empty(x.size, np.int32)
    survivors = np.empty((-(-x.size // LANES), LANES), np.uint64)
    metric = np.full((states, LANES), np.inf, np.float32)
    metric[0] = 0
    forward(x, GRID, before, metric, out, survivors)
    back(out, survivors, metric.argmin(axis=0).astype(np.uint8), before.astype(np.uint8), GRID)
    return out


@pytest.mark.parametrize("states", [4, 8, 64])
@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0, 1e5])
def test_symbols_equal_those_of_the_plain_passes(scale, states):
    for d in (1024, 1025, 3072 + 15 * LANES, 4096 + 15 * LANES + 7):  # the last row is settled, and is not whole
        x = (np.random.default_rng(d).standard_normal(d) * scale).astype(np.float32)
        symbols = np.empty(d, np.int32)
        symbols_in_lanes(x, GRID, CODES[states].before, symbols)
        assert np.array_equal(symbols, plain(x, CODES[states].before))
