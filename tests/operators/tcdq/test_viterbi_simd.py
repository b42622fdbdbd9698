"""The vectorised forward pass does what the plain one does, row by row."""

import numpy as np
import pytest

from operators import Key
from operators.tcdq.dither import seeds
from operators.tcdq.quantise import CHUNK, forward
from operators.tcdq.stream import Grid
from operators.tcdq.trellis import CODES, LANES
from operators.tcdq.viterbi_simd import viterbi_simd


@pytest.mark.parametrize("scale", [0.1, 3.0, 1e5])
def test_survivors_floors_and_metrics_equal_those_of_the_plain_pass(scale):
    rows = 3 * CHUNK
    x = (np.random.default_rng(1).standard_normal(rows * LANES + 5) * scale).astype(np.float32)
    results = []
    for fast in (True, False):
        metric = np.full((8, LANES), np.inf, np.float32)
        metric[0] = 0
        floors, survivors = np.zeros(x.size, np.int32), np.zeros((rows + 1, LANES), np.uint8)
        grid = Grid(np.float32(1), np.float32(1), *seeds(Key(1)))
        top = viterbi_simd(x, grid, metric, floors, survivors) if fast else 0
        forward(x, grid, CODES[8].before, top, metric, floors, survivors)
        assert top == (rows if fast else 0)
        results.append((metric, floors, survivors))
    for a, b in zip(*results, strict=True):
        assert np.array_equal(a, b)
