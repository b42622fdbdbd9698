import math

import numpy as np
import pytest

from bounds.estimate import noise_scale, variance_from_half_batches


def gradients(rng, mean, batch, count):
    """Gradients of batches of ``batch`` samples whose noise has trace 20."""
    return mean + rng.standard_normal((count, mean.size)) * math.sqrt(20 / mean.size / batch)


def test_half_batches_give_the_variance_of_the_whole_batch():
    rng = np.random.default_rng(1)
    a, b = (gradients(rng, np.ones(50), 16, 2000) for _ in range(2))
    found = variance_from_half_batches(((a - b) ** 2).sum(axis=1), level=0.9999)
    assert 20 / 32 in found.interval
    assert found.interval.hi - found.interval.lo < 0.05 * found.value
    with pytest.raises(ValueError, match="must be >= 0; got -1"):
        variance_from_half_batches([-1.0])


def test_trace_signal_and_scale_are_recovered():
    rng = np.random.default_rng(2)
    mean = np.full(50, 0.2)  # |grad F|^2 = 2
    small, large = gradients(rng, mean, 8, 3000), gradients(rng, mean, 64, 3000)
    found = noise_scale((small**2).sum(axis=1), (large**2).sum(axis=1), small=8, large=64, level=0.9999)
    assert 20 in found.trace.interval
    assert 2 in found.gradient2.interval
    assert 10 in found.scale.interval
    assert found.trace.value == pytest.approx(20, rel=0.05)
    assert found.variance_of_batch(8).value == pytest.approx(found.trace.value / 8)


def test_exact_expectations_give_exact_answers():
    found = noise_scale([2 + 20 / 8] * 3, [2 + 20 / 64] * 3, small=8, large=64)
    assert found.trace.value == pytest.approx(20)
    assert found.gradient2.value == pytest.approx(2)
    assert found.scale.value == pytest.approx(10)


def test_an_invisible_gradient_leaves_the_scale_open_above():
    rng = np.random.default_rng(3)
    small, large = gradients(rng, np.zeros(50), 8, 40), gradients(rng, np.zeros(50), 64, 40)
    found = noise_scale((small**2).sum(axis=1), (large**2).sum(axis=1), small=8, large=64)
    assert found.gradient2.interval.lo < 0
    assert found.scale.interval.hi == math.inf
    assert found.scale.interval.lo > 0


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="come in pairs; got 2 small and 1 large"):
        noise_scale([1.0, 2.0], [1.0], small=1, large=2)
    with pytest.raises(ValueError, match="1 <= small < large; got small = 4, large = 4"):
        noise_scale([1.0], [1.0], small=4, large=4)
    with pytest.raises(ValueError, match="batch must be >= 1"):
        noise_scale([2.0], [1.0], small=1, large=2).variance_of_batch(0)
