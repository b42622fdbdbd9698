"""Norm and largest magnitude against numpy, whatever the length."""

import numpy as np
import pytest

from operators.tcdq import measure


@pytest.mark.parametrize("d", [1, 7, 64, 1001, 100_000])
@pytest.mark.parametrize("scale", [1e-38, 1.0, 1e37])
def test_norm_and_largest_equal_numpy(d, scale):
    x = (np.random.default_rng(d).standard_cauchy(d).clip(-9, 9) * scale).astype(np.float32)
    assert measure.norm(x) == pytest.approx(np.linalg.norm(x.astype(np.float64)), rel=1e-13)
    assert measure.largest(x) == np.abs(x).max()
