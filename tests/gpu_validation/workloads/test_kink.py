"""The kink: its function by hand, and that local steps do cost what the worst case says."""

import math

import numpy as np
import pytest
import torch

from gpu_validation.workloads import Kink
from gpu_validation.workloads.quadratic import Point
from operators import Key


@pytest.mark.parametrize(("x", "value", "slope"), [(2.0, 2.0, 2.0), (0.0, 0.0, 0.0), (-0.1, 0.005, -0.1)])
def test_it_is_a_parabola_above_the_kink(x, value, slope):
    model = Point(np.array([x]))
    found = Kink(d=1, slope=0.25).objective(model)

    assert float(found.detach()) == pytest.approx(value)
    assert float(torch.autograd.grad(found, model.parameters())[0]) == pytest.approx(slope)


@pytest.mark.parametrize("x", [-0.3, -1.0, -20.0])
def test_it_is_a_line_below_the_kink_and_joins_the_parabola(x):
    model = Point(np.array([x]))
    found = Kink(d=1, slope=0.25).objective(model)

    assert float(found.detach()) == pytest.approx(0.25**2 / 2 + 0.25 * (-0.25 - x))
    assert float(torch.autograd.grad(found, model.parameters())[0]) == -0.25


def test_constants_by_hand():
    constants = Kink(d=3, noise=0.5).constants()

    assert (constants.L, constants.sigma2, constants.gap, constants.exact) == (1.0, 1.5, 1.5, True)
    assert Kink(d=3).evaluate(Kink(d=3).model())[0] == constants.gap


def test_the_hard_slope_balances_the_push_of_a_round():
    kink = Kink.hard(tau=16, noise=0.4, eta=0.05)

    assert kink.slope == pytest.approx(0.399 * 0.05 * math.sqrt(0.4) * 2 / 3 * 4, rel=1e-3)


def test_local_steps_cost_what_the_worst_case_says_up_to_a_constant():
    # workers in one long vector: groups of m coordinates are one problem, averaged every tau steps
    m, copies, tau, eta, noise = 64, 50, 16, 0.05, 0.4
    workload = Kink.hard(tau=tau, d=m * copies, noise=noise, eta=eta)
    model = workload.model()
    model.x.data.zero_()
    after = []
    for k in range(100 * tau):
        (slope,) = torch.autograd.grad(workload.loss(model, key=Key(0, step=k)), model.parameters())
        model.x.data -= eta * slope
        if (k + 1) % tau == 0:
            means = model.x.data.view(m, copies).mean(dim=0)
            model.x.data = means.repeat(m)
            after.append(means.numpy())
    late = np.maximum(np.array(after)[50:], -workload.slope)

    scale = eta**2 * noise * tau  # eta^2 L^2 sigma^2 tau, one coordinate
    assert 0.043 < np.square(late).mean() / scale < 0.048  # published values, at other m and tau


def test_values_outside_the_range_are_refused():
    with pytest.raises(ValueError, match="need d >= 1, slope > 0"):
        Kink(slope=0.0)
