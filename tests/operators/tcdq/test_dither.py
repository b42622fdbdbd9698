"""The dither's hash: the documented integers, a bijection, uniform, uncorrelated, and different for every key."""

import numpy as np
import pytest

from operators import Key
from operators.tcdq.trellis import hashes, seeds, shape

from . import oracle

N = 1 << 18


def test_compiled_hash_equals_the_integers():
    first, second = (int(s) for s in seeds(Key(5)))
    expected = [oracle.hashed(i, first, second) for i in range(500)]
    assert hashes(Key(5), 500).tolist() == expected


def test_hash_is_a_bijection_of_the_index():
    assert np.unique(hashes(Key(5), N)).size == N


@pytest.mark.parametrize("shift", [24, 16, 8])
def test_bytes_of_the_hash_are_uniform(shift):
    """Chi-square with 255 degrees of freedom over 20 keys: sum below its 1 - 1e-7 quantile, about 5100 + 5.4 sd."""
    total = 0.0
    for key in range(20):
        counts = np.bincount((hashes(Key(key, step=3), 20_000) >> shift) & 255, minlength=256)
        total += ((counts - 20_000 / 256) ** 2).sum() / (20_000 / 256)
    assert abs(total - 5100) < 5.4 * np.sqrt(2 * 5100)


@pytest.mark.parametrize("lag", [1, 2, 16, 64, 1024])
def test_neighbours_and_lanes_are_uncorrelated(lag):
    """n = 2^18 products of variables with variance 1: 5.3 standard errors."""
    u = (hashes(Key(11), N + lag) / 2.0**32 - 0.5) * np.sqrt(12)
    assert abs(np.mean(u[:-lag] * u[lag:])) < 5.3 / np.sqrt(N)


def test_streams_of_neighbouring_keys_are_uncorrelated_at_every_shift_tried():
    a = (hashes(Key(1), 4096) / 2.0**32 - 0.5) * np.sqrt(12)
    for other in (Key(2), Key(1, step=1), Key(1, rank=1), Key(1).fold_in(1)):
        b = (hashes(other, 4096) / 2.0**32 - 0.5) * np.sqrt(12)
        spectrum = np.fft.ifft(np.fft.fft(a) * np.conj(np.fft.fft(b))).real / np.sqrt(4096)
        assert np.abs(spectrum).max() < 6.5  # 4 x 4096 normal variables, level 1e-6


@pytest.mark.parametrize("spacing", [1, 2])
def test_dither_is_symmetric_on_its_cell(spacing):
    shift, offset = shape(spacing)
    ends = [2 * (h >> shift) + 1 - offset for h in (0, 2**32 - 1)]
    assert ends == [-(spacing * 2**23) + 1 if spacing == 1 else -(2**24) + 1, -ends[0]]
