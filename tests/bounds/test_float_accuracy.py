"""Every bound's float64 value against its certified enclosure, at random points up to the ends of its assumptions."""

import math

import numpy as np
import pytest

from bounds import AssumptionViolated, NotCertifiable, all_bounds
from tests.pooled import pooled

from .point_samplers import points

BOUNDS = all_bounds()
ACCURACY = 1e-9  # relative; what is left of a float64 formula that is nowhere ill-conditioned
TINY = 1e-290  # below, float64 underflows on the way
POINTS = 12
SLOW_POINTS = 3  # where an enclosure integrates
SLOW = {
    "covering_bits",
    "gaussian_block_converse",
    "mean_estimation_bits",
    "rabitq_inner_product",
    "rabitq_inner_product_worst",
    "shared_unbiased_bits",
    "sphere_bits",
    "sphere_unbiased_bits",
    "uniform_scalar_gap",
}
EXACT_EDGES = {  # the points that were wrong
    "mean_estimation": [{"bits": 1e-17, "d": 1, "m": 1, "sigma2": 1}, {"bits": 1e-9, "d": 1, "m": 4, "sigma2": 2}],
    "ef_memory": [{"alpha": 1 - 1e-15, "eta": 1, "G": 1}],
    "ef21": [{"alpha": 1 - 1e-15, "L": 1, "gap": 1, "epsilon": 1}],
    "ef_sgd": [{"alpha": 1 - 1e-15, "L": 1, "gap": 1, "eta": 1, "G": 1, "K": 1}],
    "pasgd_memory": [
        {"alpha": 0.5, "eta": 0.1, "L": 9.99999999999999, "gap": 1, "sigma2": 1, "G": 1, "tau": 1, "m": 1, "K": 1},
    ],
    "topk_sgd": [
        {"d": 10**12, "kept": 1, "L": 1, "gap": 1, "eta": 0.1, "G": 1, "K": 1, "topk_gap": 0},
        {"d": 7, "kept": 7, "L": 1, "gap": 1, "eta": 0.1, "G": 1, "K": 1, "topk_gap": 0},
    ],
    "gtopk_sgd": [{"d": 10**12, "kept": 1, "L": 1, "gap": 1, "eta": 0.1, "G": 1, "K": 1}],
    "student_rate": [{"dof": 1e9, "nmse": 1 - 2**-50}, {"dof": 28, "nmse": 0.9995}, {"dof": 27.9, "nmse": 0.9995}],
    "generalised_gaussian_rate": [{"shape": 2, "nmse": 1 - 2**-50}, {"shape": 2.0001, "nmse": 1 - 2**-40}],
    "gaussian_mixture_rate": [
        {"mixture_weight": 1 - 2**-50, "variance_ratio": 163.0, "nmse": 1 - 2**-40},
        {"mixture_weight": 0.3, "variance_ratio": 1 + 2**-30, "nmse": 1 - 2**-50},
        {"mixture_weight": 0.3, "variance_ratio": 1.0, "nmse": 1 - 2**-50},
    ],
    "uniform_scalar_gap": [{"quantiser_step": h} for h in (0.011, 5.0, 25.0, 69.5)],
    "topk_index_bits": [{"d": 417417, "kept": 417417}, {"d": 417417, "kept": 417416}, {"d": 10**12, "kept": 3}],
    "gaussian_block_converse": [{"d": 4 * 10**11, "miss": 0.999999989, "nmse": 0.99999143}],
    "dcgd": [
        {"K": 10**13, "L": 1, "R0": 1, "eta": 1e-12, "m": 2, "mu": 0.1, "omega": 1, "sigma2_opt": 0},
        {"K": 10**14, "L": 1, "R0": 1, "eta": 0.1, "m": 2, "mu": 1, "omega": 1, "sigma2_opt": 1},
    ],
    "proxskip": [{"eta": 1e-15, "mu": 1, "L": 1, "sync_probability": 0.5, "K": 10**15, "psi0": 1, "sigma2": 1}],
    "terngrad": [
        {"K": 10**14, "R0": 1, "eta": 1e-7, "max_norm_floor": 0, "max_norm_growth": 1e7, "mu": 3000},
        {"K": 3, "R0": 0, "eta": 0.3, "max_norm_floor": 1, "max_norm_growth": 20 / 3 * (1 - 2**-50), "mu": 1},
    ],
    "total_bits": [{"d": 1000, "gap": 1 + 2**-50, "epsilon": 1}],
    "total_bits_in_expectation": [{"d": 407383222571, "epsilon": 0.13094062440776968, "gap": 0.13094062440854237}],
    "layer_bits": [{"d": 1000, "layer_variance": 1 + 2**-50, "water_level": 1}],
    "lower_total_bits": [{"d": 3, "m": 10, "epsilon": 0.3 * (1 - 2**-50)}],
    "sparse_dithering_random_coarse_bits": [{"d": 10**11, "omega": 6e11}],
    "covering_bits": [{"alpha": 1 - 3e-10, "angle": 8e-6, "d": 10**11}],
    "mean_estimation_bits": [{"d": 8 * 10**7, "m": 364, "mse": (1 - 2**-45) / 364}],
    "pasgd_smooth": [
        {"K": 9, "L": 4e-8, "eta": 2e7, "gap": 1, "m": 2, "rho": 4e-8, "sigma2": 0, "tau": 10**6},
        {"K": 9, "L": 1, "eta": 1, "gap": 0, "m": 2, "rho": 1, "sigma2": 1, "tau": 1 + 2**-30},
    ],
}


def relative_error(bound, at):
    """How far the float64 value lies outside the enclosure, relative to it; 0 where both leave float64's range."""
    interval, value = bound.enclose(**at), bound(**at)
    low, high = float(interval.lo), float(interval.hi)
    if low <= value <= high:
        return 0.0
    return (low - value if value < low else value - high) / max(abs(low), abs(high), TINY)


@pytest.mark.parametrize(("name", "at"), [(name, at) for name, cases in EXACT_EDGES.items() for at in cases])
def test_float_value_keeps_its_digits_where_terms_cancel(name, at):
    assert relative_error(BOUNDS[name], at) <= ACCURACY


@pooled("name", [n for n, b in BOUNDS.items() if "not certifiable" not in b.note])
def test_float_value_lies_next_to_the_certified_one(name):
    rng = np.random.default_rng(20)
    checked = 0
    for at in points(BOUNDS[name], rng, SLOW_POINTS if name in SLOW else POINTS):
        try:
            error = relative_error(BOUNDS[name], at)
        except (AssumptionViolated, NotCertifiable):  # on the edge by rounding; an assumption that cannot be decided
            continue
        assert not math.isnan(error)
        assert error <= ACCURACY, f"{name} at {at}"
        checked += 1
    assert checked > 0
