import numpy as np
import pytest
import sympy as sp

from bounds.symbols import L, eta, m, tau
from bounds.tau import compressed_optimum
from bounds.tau.compressed import OBJECTIVE, derivation

AT = {"gap": 1, "eta": "0.05", "L": 1, "sigma2": 1, "time_s": 2000, "step_s": 1, "message_s": 20}


def objective(t, u, *, workers, latency_s=0.0):
    """The joint bound written out by hand."""
    eta = 0.05
    return 2 / (eta * 2000) * (1 + (latency_s + 20 / u) / t) + eta * (2 * u - 1) / workers + eta**2 * (t - 1)


@pytest.mark.parametrize(
    ("change", "tau_u"),
    [
        ({"m": 8}, (9.283, 1.857)),
        ({"m": 8, "latency_s": 5}, (11.693, 1.654)),
        ({"m": 128}, (3.684, 11.789)),
        ({"m": 128, "latency_s": 5}, (7.723, 8.142)),
        ({"m": 512, "eta": "0.1"}, (1, 22.63)),
    ],
)
def test_published_optima(change, tau_u):
    best = compressed_optimum(**(AT | change))
    assert best.tau == pytest.approx(tau_u[0], abs=6e-4)
    assert best.u == pytest.approx(tau_u[1], abs=3e-3 if tau_u[1] > 20 else 6e-4)
    assert best.omega == best.u - 1
    assert best.covered


@pytest.mark.parametrize(("workers", "published"), [(8, (0.0809, 0.0870, 0.155)), (128, (0.0447, 0.0811, 0.0550))])
def test_joint_choice_beats_either_alone_by_the_published_figures(workers, published):
    grid = np.geomspace(1, 200, 20_000)
    joint = compressed_optimum(**AT, m=workers).value
    only_tau = objective(grid, 1.0, workers=workers).min()
    only_u = objective(1.0, grid, workers=workers).min()
    assert (joint, only_tau, only_u) == pytest.approx(published, rel=4e-3)


@pytest.mark.parametrize("latency_s", [0, 5, 300])
@pytest.mark.parametrize("workers", [2, 8, 128, 4096])
def test_no_pair_on_a_fine_grid_is_better(workers, latency_s):
    best = compressed_optimum(**AT, m=workers, latency_s=latency_s)
    t, u = np.geomspace(1, 500, 900)[:, None], np.geomspace(1, 500, 900)[None]
    values = objective(t, u, workers=workers, latency_s=latency_s)
    assert best.value == pytest.approx(objective(best.tau, best.u, workers=workers, latency_s=latency_s), rel=1e-12)
    assert best.value <= values.min() * (1 + 1e-12)


@pytest.mark.parametrize("workers", [2, 8, 128])
def test_the_whole_tau_is_the_best_of_all_whole_ones(workers):
    best = compressed_optimum(**AT, m=workers, latency_s=5)
    u = np.geomspace(1, 60, 20_000)[None]
    values = objective(np.arange(1, 60)[:, None], u, workers=workers, latency_s=5).min(axis=1)
    assert best.integer_tau == 1 + int(np.argmin(values))
    assert objective(best.integer_tau, best.integer_u, workers=workers, latency_s=5) <= values.min() * (1 + 1e-12)


def test_ratio_is_half_eta_L_m_without_latency():
    minimiser = derivation().minimiser
    u = next(symbol for symbol in minimiser if symbol.name == "amplification")
    assert sp.simplify(minimiser[u] / minimiser[tau] - eta * L * m / 2) == 0
    assert sp.Symbol("latency_s", nonnegative=True) in OBJECTIVE.free_symbols
    assert compressed_optimum(**AT, m=8).latex().count("^* &=") == 2
    assert compressed_optimum(**AT, m=8).derivation().minimiser == minimiser


def test_leaving_the_condition_is_said():
    assert not compressed_optimum(**(AT | {"eta": "0.9", "message_s": 10_000}), m=2).covered


def test_no_noise_is_refused():
    with pytest.raises(ValueError, match="sigma2 > 0"):
        compressed_optimum(**(AT | {"sigma2": 0}), m=8)
