import math

import numpy as np
import pytest

from bounds.estimate import smoothness_by_power_iteration, smoothness_by_secants


def rotated(eigenvalues, rng):
    q, _ = np.linalg.qr(rng.standard_normal((eigenvalues.size, eigenvalues.size)))
    return q * eigenvalues @ q.T


@pytest.mark.parametrize("largest", [3.0, -3.0])
def test_power_iteration_encloses_the_largest_magnitude(largest):
    rng = np.random.default_rng(1)
    for _ in range(50):
        hessian = rotated(np.concatenate([[largest], rng.uniform(-2.9, 2.9, 59)]), rng)
        found = smoothness_by_power_iteration(lambda v, h=hessian: h @ v, rng.standard_normal(60), level=0.999)
        assert found.interval.lo <= 3.0 * (1 + 1e-12)
        assert found.interval.hi >= 3.0
        assert found.value == found.interval.lo
        assert found.value > 2.6


def test_more_iterations_close_the_interval():
    rng = np.random.default_rng(2)
    hessian = rotated(np.linspace(0.1, 2.0, 40), rng)
    start = rng.standard_normal(40)
    widths = [
        smoothness_by_power_iteration(lambda v: hessian @ v, start, iterations=k).interval.width for k in (10, 40, 400)
    ]
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 0.05


def test_zero_hessian_is_flat_and_bad_starts_are_refused():
    assert smoothness_by_power_iteration(lambda v: 0 * v, np.ones(3)).interval.hi == 0
    with pytest.raises(ValueError, match="non-zero start"):
        smoothness_by_power_iteration(lambda v: v, np.zeros(3))
    with pytest.raises(ValueError, match="start must be finite"):
        smoothness_by_power_iteration(lambda v: v, np.array([1.0, math.inf]))


def test_secants_of_one_batch_are_lower_bounds_and_of_two_batches_useless():
    rng = np.random.default_rng(3)
    hessian = rotated(np.geomspace(0.01, 0.48, 30), rng)
    steps = 0.05 * rng.standard_normal((200, 30))
    same = steps @ hessian
    different = same + rng.standard_normal(same.shape) * 0.3
    distances = np.linalg.norm(steps, axis=1)
    found = smoothness_by_secants(np.linalg.norm(same, axis=1), distances)
    assert 0.2 < found.value <= 0.48
    assert found.interval.hi == math.inf
    assert smoothness_by_secants(np.linalg.norm(different, axis=1), distances).value > 4


def test_secant_along_the_top_direction_is_exact():
    assert smoothness_by_secants([1.5, 0.2], [0.5, 0.4]).value == 3.0
    with pytest.raises(ValueError, match=r"point distances > 0; got 1 and 1, smallest 1\.0 and 0\.0"):
        smoothness_by_secants([1.0], [0.0])
