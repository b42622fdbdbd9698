"""Estimates of Q and of the kurtosis by the probes of "auto": exact on a cubic, and what a run with "auto" reports."""

import math

import numpy as np
import pytest
import torch

from gpu_validation.averaging.pacing.probing import Probe, ThirdOrder
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from tests.gpu_validation.ranks import in_ranks

Q = 0.7


class Point(torch.nn.Module):
    def __init__(self, at):
        super().__init__()
        self.x = torch.nn.Parameter(torch.tensor([at], dtype=torch.float64))

    def forward(self):
        return (Q * self.x**3 / 6 + self.x**2).sum()


def test_on_a_cubic_q_is_exact():
    model = Point(1.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    probe = Probe(model, list(model.parameters()), optimizer)

    def closure():
        optimizer.zero_grad()
        value = model()
        value.backward()
        return value

    probe.await_last_step()
    loss = float(closure().detach())
    with torch.no_grad():
        model.x.fill_(0.25)  # the mean
    probe.measure(closure, probe.weights(), loss)
    assert probe.third_order.hessian_lipschitz == pytest.approx(Q, rel=1e-12)
    assert probe.third_order.probes == 1


def test_the_kurtosis_is_that_of_the_gradients():
    """Gaussian gradients in 8 dimensions: 1 + 2/8."""
    found = ThirdOrder()
    assert found.kurtosis is None
    for norm2 in np.random.default_rng(0).chisquare(8, 20_000):
        found = found.after(bend=math.nan, distance2=math.nan, loss=1.0, norm2=float(norm2))
    assert found.kurtosis == pytest.approx(1.25, rel=0.01)
    assert found.hessian_lipschitz is None


@pytest.mark.parametrize(("bend", "expected"), [(1e-7, 0.0), (-1e-3, 12e-3)])
def test_a_bend_that_the_losses_do_not_resolve_counts_as_none(bend, expected):
    found = ThirdOrder().after(bend=bend, distance2=1.0, loss=1.0, norm2=1.0)
    assert found.hessian_lipschitz == pytest.approx(expected)


def trained(place, schedule):
    model = Point(1.0 + place.rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    averaging = PeriodicAveraging(model, optimizer, schedule=schedule)
    noise = torch.Generator().manual_seed(place.rank)
    for _ in range(70):
        draw = torch.randn(1, generator=noise, dtype=torch.float64)

        def closure(draw=draw):
            optimizer.zero_grad()
            value = model() + (draw * model.x).sum()
            value.backward()
            return value

        loss = closure()
        optimizer.step()
        averaging.step(loss, closure)
    return averaging.third_order


def test_auto_reports_both_and_other_schedules_none():
    for found in in_ranks(lambda place: trained(place, "auto"), 2):
        assert found.probes >= 1
        assert found.hessian_lipschitz == pytest.approx(Q, rel=1e-3)
    assert in_ranks(lambda place: trained(place, 8), 2) == [None, None]
