"""Level search and packing against comparison with every threshold."""

import numpy as np
import pytest

from bounds.special.lloyd_max import lloyd_max_levels, lloyd_max_thresholds
from operators.quantisers.lloyd_max import lloyd_max_grid, pack_nearest, pack_positive, unpack_levels


def values(bits):
    """Random numbers, every threshold and its neighbours, and both ends."""
    edges = lloyd_max_thresholds(bits).astype(np.float32)
    near = [np.nextafter(edges, np.float32(side)) for side in (-9, 9)]
    random = np.random.default_rng(bits).standard_normal(500)
    return np.concatenate([random, [0.0, -0.0, 1e9, -1e9], edges, *near]).astype(np.float32)


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("spare", range(8))
def test_codes_count_the_thresholds_below_and_sums_are_exact(bits, spare):
    v, grid = values(bits)[spare:], lloyd_max_grid(bits)
    out = np.zeros((v.size * bits + 7) // 8, np.uint8)
    search = grid.levels, grid.start, grid.per_unit, grid.below, grid.inside
    along, square = pack_nearest(v, np.float32(1), bits, *search, out)

    edges = [float(np.float32(t)) for t in lloyd_max_thresholds(bits)]
    codes = [sum(float(x) > t for t in edges) for x in v]
    text = "".join(f"{code:0{bits}b}" for code in codes)
    assert "".join(f"{byte:08b}" for byte in out) == text + "0" * (-len(text) % 8)
    levels = [float(np.float32(lloyd_max_levels(bits)[code])) for code in codes]
    assert along == pytest.approx(sum(float(x) * c for x, c in zip(v, levels, strict=True)), rel=1e-12)
    assert square == pytest.approx(sum(c * c for c in levels), rel=1e-12)

    back = np.empty(v.size, np.float32)
    unpack_levels(out, bits, grid.levels, back)
    assert back.tolist() == levels


@pytest.mark.parametrize("bits", [1, 3])
def test_values_are_scaled_before_they_are_compared(bits):
    v, grid = values(bits)[:504], lloyd_max_grid(bits)
    search = grid.levels, grid.start, grid.per_unit, grid.below, grid.inside
    scaled, plain = (np.zeros((v.size * bits + 7) // 8, np.uint8) for _ in range(2))
    pack_nearest(v * np.float32(4), np.float32(0.25), bits, *search, scaled)
    pack_nearest(v, np.float32(1), bits, *search, plain)
    assert (scaled == plain).all()


@pytest.mark.parametrize("n", [1, 7, 8, 9, 500])
def test_signs_are_packed_as_the_two_levels_are(n):
    v, out, nearest = values(1)[-n:], np.empty((n + 7) // 8, np.uint8), np.empty((n + 7) // 8, np.uint8)
    grid = lloyd_max_grid(1)
    search = grid.levels, grid.start, grid.per_unit, grid.below, grid.inside
    pack_nearest(v, np.float32(1), 1, *search, nearest)
    assert pack_positive(v, out) == pytest.approx(sum(abs(float(x)) for x in v), rel=1e-12)
    assert (out == nearest).all()
