"""The constants of both ends: step, spread and the bits that are set apart."""

import math

import pytest

from operators.tcdq.model import COARSEST, plan_of
from tests.pooled import pooled


@pooled("states", [1, 4, 8, 64, 128, 256])
@pytest.mark.parametrize("omega", [1.5, 0.01, 1e-6])
@pytest.mark.parametrize("d", [3, 100, 5000, 1 << 18])
def test_step_gives_the_declared_error_and_the_spread_of_what_is_coded(states, omega, d):
    plan = plan_of(d, omega, states)
    c = plan.code.mean_error(d)
    assert plan.ratio**2 * d * c == pytest.approx(omega, rel=1e-12)
    # |x|^2 / (step^2 d) + c, per coordinate, in spacings
    assert (plan.spread * plan.code.spacing) ** 2 == pytest.approx(1 / (plan.ratio**2 * d) + c, rel=1e-12)
    assert plan.sigma == plan.spread / 2**plan.low <= COARSEST
    assert plan.low == 0 or 2 * plan.sigma > COARSEST


@pytest.mark.parametrize("norm", [2.0**-126, 1e-20, 0.75, 1.0, 3.0, 3e38])
def test_step_is_split_into_significand_and_power_of_two(norm):
    plan = plan_of(100, 0.1, 8)
    step, scale = plan.step(norm)
    assert math.frexp(scale)[0] == 0.5
    assert step * scale == pytest.approx(norm * plan.ratio, rel=1e-15)
    assert plan.ratio <= step < 2 * plan.ratio


def test_formats_change_at_the_documented_sizes():
    assert not plan_of(1023, 1.0, 8).fits
    assert plan_of(1024, 1.0, 8).fits
    assert plan_of((1 << 17) - 1, 1.0, 8).form.streams == 1
    assert plan_of(1 << 17, 1.0, 8).form.streams == 16
