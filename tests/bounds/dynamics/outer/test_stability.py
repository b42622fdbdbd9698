"""Limits of the outer rate against closed forms, published values and the scripts themselves."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from bounds.dynamics.outer import OuterStep, Workers, best_nesterov, largest_lr, worst_factor
from bounds.dynamics.outer.merge import RULES
from tests.bounds.dynamics.outer.simulation import run

MOMENTA = [0.0, 0.3, 0.5, 0.7, 0.9, 0.95]


def times_h(merge, x=0.2, tau=4, **options):
    return largest_lr(merge, x=x, tau=tau, **options) * (1 - (1 - x) ** tau)


@pytest.mark.parametrize("beta", MOMENTA)
def test_limits_in_closed_form(beta):
    assert times_h("blocking", momentum=beta) == pytest.approx(2 * (1 + beta) / (1 + 2 * beta), rel=1e-12)
    assert times_h("blocking", momentum=beta, nesterov=False) == pytest.approx(2 * (1 + beta), rel=1e-12)
    assert times_h("delayed", momentum=beta, nesterov=False) == pytest.approx(1 - beta, rel=1e-12)
    root = 2 * (1 - beta) / (1 - beta**2 + math.sqrt((1 - beta**2) ** 2 + 4 * beta**2 * (1 - beta)))
    assert times_h("delayed", momentum=beta) == pytest.approx(root, rel=1e-12)


def test_published_limits():
    delayed = [times_h("delayed", momentum=beta) for beta in MOMENTA]
    assert delayed == pytest.approx([1, 0.71821, 0.56155, 0.41931, 0.25314, 0.18748], abs=5e-6)
    assert times_h("blocking", momentum=0.9) == pytest.approx(1.357143, abs=5e-7)
    assert [times_h("eager", momentum=0.9, m=m) for m in (2, 8)] == pytest.approx([0.76971, 0.32025], abs=5e-6)
    # at h = 1 the corrected merge has the blocking limit until delay = .75 tau, and 1.087 at delay = tau
    far = {"x": 0.9, "tau": 8, "momentum": 0.9}
    assert [times_h("corrected", delay=d, **far) for d in (2, 4, 6, 8)] == pytest.approx(
        [1.35714, 1.35728, 1.37099, 1.08622], abs=5e-6
    )


def test_a_slowly_moving_direction_takes_less_of_a_corrected_merge():
    """The limit at h = 1 is not the limit at small h, where most of a gradient is a round old."""
    slow = {"x": 0.01, "tau": 8, "momentum": 0.9}
    assert times_h("corrected", delay=6, **slow) == pytest.approx(0.485663, abs=5e-7)
    assert times_h("corrected", delay=8, x=1e-6, tau=8, momentum=0.9) == pytest.approx(
        times_h("delayed", momentum=0.9), rel=1e-4
    )
    assert times_h("corrected", delay=2, **slow) > 1.9  # above the blocking limit: a little delay damps


def test_eager_of_one_worker_blocks_and_of_many_is_delayed():
    assert times_h("eager", m=1, momentum=0.9) == pytest.approx(times_h("blocking", momentum=0.9), rel=1e-12)
    assert times_h("eager", m=10**9, momentum=0.9) == pytest.approx(times_h("delayed", momentum=0.9), rel=1e-7)


@dataclass(frozen=True)
class OuterSteps:
    """What a script reads of an ``OuterStep``, with a rate a run and a coordinate and a momentum a coordinate."""

    lr: np.ndarray
    momentum: np.ndarray
    nesterov: bool


@pytest.mark.every(3)
@pytest.mark.parametrize("merge", RULES)
@pytest.mark.parametrize("nesterov", [True, False])
def test_scripts_diverge_beyond_the_limit_and_converge_below(merge, nesterov):
    """One coordinate for each curvature and momentum, one run on each side of its limit."""
    grid = list(itertools.product([0.02, 0.2, 0.9, 1.4], [0.0, 0.5, 0.9]))
    xs, betas = np.array(grid).T
    options = {"tau": 5, "delay": 3, "m": 3, "nesterov": nesterov}
    limits = np.array([largest_lr(merge, x=x, momentum=beta, **options) for x, beta in grid])
    zeros = np.zeros((3, len(grid)))
    workers = Workers(zeros + xs, zeros, zeros, np.ones(len(grid)))
    outer = OuterSteps(np.outer([0.98, 1.02], limits), betas, nesterov)

    with np.errstate(over="ignore", invalid="ignore"):
        theta = run(workers, merge, eta=1.0, tau=5, delay=3, rounds=6000, outer=outer, runs=2)
    early, late = (np.abs(theta[part]) for part in (slice(200, 600), slice(-200, None)))
    growth = late.max(0) / early.max(0)

    assert np.all((growth[0] < 0.5) | (late[-1, 0] < 1e-9)), growth
    assert not np.any(growth[1] < 2), growth


def test_rates_at_which_local_steps_diverge_have_no_stable_outer_rate():
    assert largest_lr("blocking", x=2.5, tau=2) == 0
    assert largest_lr("corrected", x=1.9, tau=2, delay=1) == 0  # differences between workers grow


def test_overwriting_every_step_moves_nothing():
    assert largest_lr("overwrite", x=0.1, tau=4, delay=4) == math.inf


def test_limits_keep_the_shape_of_x():
    assert largest_lr("blocking", x=[[0.1, 0.2], [0.3, 0.4]], tau=3).shape == (2, 2)
    with pytest.raises(ValueError, match="x = eta lambda must be > 0"):
        largest_lr("blocking", x=[0.1, 0.0], tau=3)


def test_the_published_optimum():
    best = best_nesterov(eta=1.0, tau=10, L=1.0, mu=1e-3)
    assert best.condition == pytest.approx(100.45, abs=5e-3)
    assert (best.outer.lr, best.outer.momentum) == pytest.approx((1.3289, 0.7937), abs=5e-5)
    assert best.factor == pytest.approx(0.88498, abs=5e-6)
    slow = {"x": np.array([1e-3]), "tau": 10}
    assert worst_factor("blocking", outer=OuterStep(), **slow) == pytest.approx(0.99004, abs=5e-6)
    assert worst_factor("blocking", outer=OuterStep(0.7, 0.9), **slow) == pytest.approx(0.94537, abs=5e-6)


@pytest.mark.parametrize(("eta", "tau", "mu"), [(1.0, 10, 1e-3), (0.3, 4, 0.05), (0.5, 1, 0.2), (0.7, 3, 1.0)])
def test_no_neighbour_contracts_faster_than_the_optimum(eta, tau, mu):
    best = best_nesterov(eta=eta, tau=tau, L=1.0, mu=mu)

    def worst(lr, momentum):
        points = np.concatenate([np.linspace(mu, 1, 60), np.geomspace(mu, 1, 60)])
        return worst_factor("blocking", x=eta * points, tau=tau, outer=OuterStep(lr, momentum))

    reached = worst(best.outer.lr, best.outer.momentum)
    assert reached == pytest.approx(best.factor, rel=1e-6, abs=1e-6)
    for lr, momentum in ((1.03, 1), (0.97, 1), (1, 1.03), (1, 0.97)):
        other = (best.outer.lr * lr, min(best.outer.momentum * momentum, 0.999))
        assert worst(*other) > reached - 1e-7


def test_the_optimum_needs_a_range_of_eigenvalues():
    with pytest.raises(ValueError, match="0 < mu <= L"):
        best_nesterov(eta=1.0, tau=4, L=1.0, mu=2.0)
