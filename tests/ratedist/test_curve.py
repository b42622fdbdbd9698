"""Measured curves meet the limit of their source from above."""

import numpy as np
import pytest

import ratedist as rd
from ratedist.sources import Gaussian, Laplace


@pytest.mark.parametrize("source", [Gaussian(), Laplace()])
def test_operators_lie_above_the_rate_distortion_function(source):
    curve = rd.measured_curve(["tcdq:omega=1", "tcdq:omega=0.1", "topk:0.1", "identity"], source, d=5000)
    assert [point.bits for point in curve.points] == sorted(point.bits for point in curve.points)
    for point in curve.points:
        if point.operator == "identity":
            assert point.limit is None
        else:
            assert point.gap > 0
            assert point.gap == pytest.approx(point.bits - point.limit.hi)


def test_a_gradient_is_its_own_source():
    x = np.random.default_rng(1).standard_normal(2000)
    curve = rd.measured_curve(["qsgd:4"], x)
    assert curve.d == 2000
    assert curve.to_dict()["points"][0]["limit"]["lo"] <= curve.points[0].limit.hi


def test_bad_dimension_is_refused():
    with pytest.raises(ValueError, match="d must satisfy"):
        rd.measured_curve(["qsgd:4"], Gaussian(), d=0)
