import numpy as np
import pytest

from bounds.tau.in_eta import in_eta
from bounds.theorems.compressed_local_sgd import pasgd_compressed
from bounds.theorems.local_sgd import pasgd_convex, pasgd_iterations
from bounds.theorems.memory import qsparse
from bounds.theorems.published_local_sgd import stich
from bounds.theorems.seconds import pasgd_runtime

PROBLEM = {"gap": 2.0, "L": 1.5, "sigma2": 0.7, "m": 8}
CASES = [
    (pasgd_iterations, PROBLEM | {"tau": 5}),
    (pasgd_compressed, PROBLEM | {"tau": 5, "omega": 3.0}),
    (pasgd_convex, PROBLEM | {"tau": 5}),
    (qsparse, PROBLEM | {"tau": 5, "alpha": 0.6, "G": 2.0}),
]


@pytest.mark.parametrize(("bound", "at"), CASES, ids=lambda case: getattr(case, "name", ""))
def test_coefficients_rebuild_the_bound(bound, at):
    form = in_eta(bound, **at)
    for eta in (1e-4, 1e-3, 0.01):
        assert float(form.value(eta, 300.0)) == pytest.approx(bound(**at, eta=eta, K=300.0), rel=1e-13)


@pytest.mark.parametrize(("bound", "at"), CASES, ids=lambda case: getattr(case, "name", ""))
def test_largest_rate_is_the_edge_of_the_exact_condition(bound, at):
    largest = float(in_eta(bound, **at).eta_max)
    exact = {name: str(value) if isinstance(value, float) else value for name, value in at.items()}
    assert bound.enclose(**exact, eta=largest, K=10).hi > 0  # inside, exactly
    assert not bound.holds_at(**at, eta=largest * (1 + 1e-9), K=10)


@pytest.mark.parametrize(("bound", "at"), CASES, ids=lambda case: getattr(case, "name", ""))
def test_no_rate_on_a_fine_grid_is_better(bound, at):
    form = in_eta(bound, **at)
    grid = np.geomspace(1e-9, 1, 20_000) * form.eta_max
    for steps in (3.0, 300.0, 1e7):
        best = form.best_for_steps(steps)
        assert form.value(best, steps) <= form.value(grid, steps).min() * (1 + 1e-13)
    for target in (1e-5, 0.01, 3.0):
        best = form.best_for_target(target)
        fewest = form.steps_for(best, target)
        assert fewest <= form.steps_for(grid, target).min() * (1 + 1e-13)
        assert float(form.value(best, fewest)) == pytest.approx(target, rel=1e-12)


def test_coefficients_broadcast_over_tau():
    taus = np.arange(1, 9)
    form = in_eta(pasgd_iterations, **(PROBLEM | {"tau": taus}))
    each = [float(in_eta(pasgd_iterations, **(PROBLEM | {"tau": int(n)})).best_for_steps(50.0)) for n in taus]
    assert form.best_for_steps(50.0) == pytest.approx(each, rel=1e-14)


def test_without_noise_the_condition_alone_decides():
    form = in_eta(pasgd_iterations, **(PROBLEM | {"sigma2": 0.0, "tau": 3}))
    assert form.best_for_steps(10.0) == form.eta_max == form.best_for_target(0.1)


def test_an_unreachable_target_needs_infinitely_many_steps():
    form = in_eta(pasgd_iterations, **(PROBLEM | {"tau": 3}))
    assert form.steps_for(0.1, 1e-9) == np.inf


def test_other_forms_are_refused():
    with pytest.raises(ValueError, match="form"):
        in_eta(stich, gap=1)
    with pytest.raises(ValueError, match="not of the form"):
        in_eta(pasgd_runtime, gap=1)
