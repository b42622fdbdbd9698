"""The bend of a loss: exact where its value is known, and what a run does that sees it, or does not."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from bounds.runtime import Constant, RuntimeModel
from gpu_validation.averaging.pacing import probing
from gpu_validation.averaging.pacing.probing import COORDINATES, Turning, bend
from gpu_validation.studies.runs.simulation import simulate
from gpu_validation.studies.runs.spec import TrainingRun
from gpu_validation.workloads import Kink, LogisticRegression, Quadratic

STEP = Constant(1.0)


def of_loss(loss, y, x):
    """(bend, curve) between the points y and x."""
    values, gradients = [], []
    for point in (y, x):
        at_point = torch.tensor(point, dtype=torch.float64, requires_grad=True)
        value = loss(at_point)
        value.backward()
        values.append(float(value.detach()))
        gradients.append([at_point.grad])
    place, mean = ([torch.tensor(point, dtype=torch.float64)] for point in (y, x))
    return bend(values[0] - values[1], *gradients, place, mean)


def test_a_quadratic_is_not_bent_and_its_curve_is_that_of_its_hessian():
    draw = np.random.default_rng(0)
    matrix, slope = draw.normal(size=(5, 5)), draw.normal(size=5)
    hessian = torch.tensor(matrix @ matrix.T)
    y, x = draw.normal(size=(2, 5))

    bent, curve = of_loss(lambda p: p @ hessian @ p / 2 + torch.tensor(slope) @ p, y, x)

    assert abs(bent) < 1e-14
    assert curve == pytest.approx((y - x) @ hessian.numpy() @ (y - x) / 2, rel=1e-14)


@pytest.mark.parametrize(("y", "x"), [(2.0, 0.5), (-1.0, 0.5), (0.25, 3.0)])
def test_a_cubic_is_bent_by_a_twelfth_of_its_third_derivative(y, x):
    bent, _ = of_loss(lambda p: (5 * p**3 / 6 - 3 * p**2 + 2 * p).sum(), [y], [x])

    assert bent == pytest.approx(-5 * (y - x) ** 3 / 12, rel=1e-13)


@pytest.mark.parametrize(("y", "x"), [(2.0, -0.5), (-0.25, 3.0), (1.0, 3.0), (-1.0, -2.0)])
def test_the_absolute_value_is_bent_where_its_kink_lies_between(y, x):
    bent, curve = of_loss(lambda p: p.abs().sum(), [y], [x])

    assert bent == (abs(y) - abs(x) if y * x < 0 else 0.0)
    assert abs(bent) <= curve


def test_what_is_linear_in_the_model_is_in_neither():
    steep = torch.tensor([3.0, -1e3], dtype=torch.float64)
    plain = of_loss(lambda p: (p**4).sum(), [0.5, 1.0], [0.25, -1.0])

    assert of_loss(lambda p: (p**4).sum() + steep @ p, [0.5, 1.0], [0.25, -1.0]) == pytest.approx(plain, abs=1e-12)


def test_a_gradient_that_is_none_counts_as_zero():
    one = [torch.ones(2)]

    assert bend(0.0, [None], one, [torch.tensor([2.0, 2.0])], one) == (-1.0, -1.0)
    assert bend(0.0, one, [None], [torch.tensor([2.0, 2.0])], one) == (-1.0, 1.0)


def test_the_angle_between_two_movements():
    turning = Turning()
    points = [(0.0, 0.0), (1.0, 0.0), (2.0, 1.0), (2.0, 0.0), (2.0, 0.0)]

    cosines = [turning.cosine(torch.tensor(point)) for point in points]

    assert all(map(math.isnan, cosines[:2]))
    assert cosines[2:4] == pytest.approx([math.sqrt(0.5), -math.sqrt(0.5)])
    assert math.isnan(cosines[4])


def test_of_a_large_model_evenly_spaced_entries_are_followed():
    d, turning, whole = 5 * COORDINATES + 3, Turning(), torch.Generator().manual_seed(0)
    first, second = torch.randn(2, d, generator=whole)
    second += first / 2

    cosines = [turning.cosine(point) for point in (torch.zeros(d), first, first + second)]

    step = -(-d // COORDINATES)
    some = torch.stack([first, second])[:, ::step]
    assert some.shape[1] <= COORDINATES
    assert cosines[2] == pytest.approx(float(torch.nn.functional.cosine_similarity(*some, dim=0)), rel=1e-5)
    exact = float(torch.nn.functional.cosine_similarity(first, second, dim=0))
    assert cosines[2] == pytest.approx(exact, abs=4 / math.sqrt(COORDINATES))
    assert [len(kept) for kept in turning.state()] == [some.shape[1]] * 2


def test_what_is_followed_does_not_change_with_the_model():
    turning, model = Turning(), torch.zeros(2)

    turning.cosine(model)
    for step in ((1.0, 0.0), (0.0, 1.0)):
        model += torch.tensor(step)
        cosine = turning.cosine(model)
    assert cosine == 0.0


# -- runs ----------------------------------------------------------------------------------------------------
def run_of(workload, budget_s, *, m=4, delay_s=4.0):
    run = TrainingRun(workload, "auto", STEP, 0, budget_s=budget_s, points=1000)
    return simulate(run, RuntimeModel(STEP, delay_s=delay_s, m=m))


def bends_of(workload, monkeypatch, budget_s=200.0):
    seen, inner = [], probing.bend

    def spying(*arguments):
        seen.append(inner(*arguments))
        return seen[-1]

    monkeypatch.setattr(probing, "bend", spying)
    run_of(workload, budget_s)
    return np.array(seen)


def test_probes_see_no_bend_on_the_quadratic_whose_steps_end_elsewhere(monkeypatch):
    bends = bends_of(Quadratic(copies=50, noise=0.1, eta=0.1), monkeypatch)

    assert len(bends) >= 8
    assert np.all(np.abs(bends[:, 0]) < 1e-12 * bends[:, 1])


@pytest.mark.thorough
def test_probes_see_a_small_bend_of_a_smooth_convex_loss_and_a_large_one_at_a_kink(monkeypatch):
    smooth = bends_of(LogisticRegression(), monkeypatch)
    kink = bends_of(Kink.hard(tau=16, d=200, noise=2.0, eta=0.08), monkeypatch)

    assert np.all(np.abs(smooth[:, 0]) <= 0.05 * smooth[:, 1])
    assert np.all(np.abs(kink[:, 0]) <= kink[:, 1])
    assert np.median(np.abs(kink[-4:, 0]) / kink[-4:, 1]) > 0.05


KINK = Kink.hard(tau=16, d=400, noise=2.0, eta=0.08)


def floor_of(losses):
    return np.mean(losses[-len(losses) // 3 :])


@pytest.mark.thorough
def test_a_run_arrives_at_a_kink_whose_bend_it_sees_and_not_where_the_probe_says_zero(monkeypatch):
    synchronous = TrainingRun(KINK, 1, STEP, 0, steps=400, points=400)
    floor = floor_of(simulate(synchronous, RuntimeModel(STEP, m=4))["losses"])

    seeing = floor_of(run_of(KINK, 2000.0)["losses"])
    monkeypatch.setattr(probing, "bend", lambda *_: (0.0, 1.0))
    blind = floor_of(run_of(KINK, 2000.0)["losses"])

    assert blind > 1.6 * floor
    assert seeing < 1.2 * floor


@pytest.mark.thorough
def test_a_bend_beyond_every_convex_one_changes_nothing(monkeypatch):
    def taus(value):
        monkeypatch.setattr(probing, "bend", lambda *_: value)
        return run_of(replace(KINK, d=50), 400.0)["rounds"]

    assert taus((2.0, 1.0)) == taus((0.0, 1.0))
    assert taus((0.5, 1.0)) != taus((0.0, 1.0))
