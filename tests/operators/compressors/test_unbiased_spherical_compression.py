"""Unbiased Spherical Compression: mean and variance against their exact values, norms rounded fairly."""

import math

import numpy as np
import pytest

from operators import Key, SphericalCompression, UnbiasedSphericalCompression
from operators.coding.spherical import cap
from operators.compressors.spherical_compression import _stochastic
from operators.random import words_from

from ..oracles import refuses_payloads


@pytest.mark.parametrize("operator", UnbiasedSphericalCompression.examples(), ids=repr)
@pytest.mark.parametrize("d", [1, 2, 7, 8, 9, 64])
def test_values_equal_those_of_the_twin_rescaled(operator, d, key):
    """Same N and direction as SphericalCompression; the length is |x|/m instead of <x, v>."""
    x = np.random.default_rng(d).standard_normal(d)
    y, twin = operator(x, key=key), SphericalCompression(operator.alpha, operator.block)(x, key=key)
    for start in range(0, d, operator.block):
        part = slice(start, min(start + operator.block, d))
        n = part.stop - start
        length = np.linalg.norm(x[part]) / (cap(operator.alpha, n)[1] if n > 1 else 1)
        assert y[part] == pytest.approx(twin[part] / np.linalg.norm(twin[part]) * length, rel=1e-5)


@pytest.mark.parametrize(("d", "alpha", "m"), [(2, 0.1, 0.9828), (5, 0.2, 0.9299), (10, 0.5, 0.7644)])
def test_mean_cosine_is_the_known_one(d, alpha, m):
    assert cap(alpha, d)[1] == pytest.approx(m, abs=6e-5)
    y = np.linspace(math.sqrt(1 - alpha), 1, 2_000_001)
    density = (1 - y**2) ** ((d - 3) / 2) if d > 2 else None
    if density is not None:  # the midpoint rule on the cosine's density
        assert cap(alpha, d)[1] == pytest.approx((y * density).sum() / density.sum(), abs=1e-6)


THOROUGH = [pytest.param(alpha, block, marks=pytest.mark.thorough) for alpha, block in ((0.8, 12), (0.1, 2))]


@pytest.mark.parametrize(("alpha", "block"), [(0.5, 8), *THOROUGH])
def test_mean_and_variance_are_exact(alpha, block):
    """n = 4000 keys: every coordinate's mean and the variance within 5 standard errors."""
    operator, x, n = UnbiasedSphericalCompression(alpha, block), np.arange(1.0, block + 1), 4000
    ys = np.stack([operator(x, key=Key(0, step=t)) for t in range(n)])
    assert (np.abs(ys.mean(0) - x) < 5 * ys.std(0) / math.sqrt(n)).all()
    errors = ((ys - x) ** 2).sum(1) / (x @ x)
    assert abs(errors.mean() - operator.claim(block).omega) < 5 * errors.std() / math.sqrt(n)
    assert operator.claim(block).tight


def test_norms_are_rounded_to_neighbours_with_the_right_mean():
    norms, total = np.array([1 + 2**-25, 1 - 2**-26, 3.0, 0.0]), np.zeros(4)
    for j in range(64):
        with words_from(lambda key, n, start, w=(2 * j + 1) << 25: np.full(n, w, np.uint32)):
            total += _stochastic(norms, Key(0))
    assert (total / 64 == norms).all()


def test_norm_beyond_binary32_is_an_error_and_damage_is_refused(key, message_of):
    with pytest.raises(ValueError, match="rescale"):
        UnbiasedSphericalCompression().encode(np.full(8, 1.1e38, np.float32), key=key)
    refuses_payloads(UnbiasedSphericalCompression(), 8, message_of("1" * 40), key=key)
