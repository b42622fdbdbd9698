"""Steps times bits: the families, their minima, and the published figures of merit."""

import math

import numpy as np
import pytest

from bounds import Contractive, NoClaim, Status, StrictlyContractive, Unbiased, limits, theorems
from bounds.total_communication import (
    best_level,
    best_levels,
    best_merit,
    best_subsampling,
    level_of,
    merit,
    methods,
    subsampled,
    total_bits,
)

D = 10**6
PROBLEM = {"kappa": 1e4, "m": 16, "epsilon": 1e-3}


def test_methods_are_found_by_their_form():
    assert {"dcgd_iterations", "diana", "adiana", "marina", "ef21"} <= set(methods())
    assert "koloskova" not in methods()
    assert "lower_unbiased_iterations" not in methods()


def test_total_is_steps_times_bits_and_broadcasts_over_the_problem():
    workers, condition = np.array([[1], [16], [256]]), np.array([10.0, 1e3])
    total = total_bits("diana", Unbiased(8.0), 4e6, kappa=condition, m=workers, epsilon=1e-3)
    steps = theorems.diana(omega=8.0, kappa=condition, m=workers, epsilon=1e-3)
    assert total.bits.shape == (3, 2)
    assert np.all(total.bits == steps * 4e6)
    assert np.all(np.diff(total.bits, axis=0) < 0)  # more workers average more noise away
    assert np.all(np.diff(total.bits, axis=1) > 0)
    assert total.status is Status.PROVED


def test_an_exact_operator_costs_the_steps_of_gradient_descent():
    total = total_bits("dcgd_iterations", Unbiased(0.0), 32.0 * D, **PROBLEM)
    assert total.steps == pytest.approx(1e4 * math.log(1e3), rel=1e-14)


@pytest.mark.parametrize(
    ("claim", "bits", "published"),
    [
        (Unbiased(0.5708), D, 1.57),  # EDEN, one bit
        (Unbiased(1 / 8), 9 * D, 10.1),  # natural compression
        (Unbiased(0.0), 16 * D, 16),  # half precision
        (Unbiased(99.0), 0.32 * D, 32),  # a random hundredth of 32-bit floats
    ],
)
def test_merit_reproduces_the_published_figures(claim, bits, published):
    assert merit(claim, bits, D) == pytest.approx(published, rel=5e-3)


def test_merit_of_the_information_limit_falls_to_its_infimum():
    omega = np.geomspace(1e-3, 1e6, 60)
    for m in (1, 16, 256):
        values = (1 + omega / m) * limits.unbiased_bits(d=D, omega=omega) / D
        assert np.all(np.diff(values) < 0)
        assert values[-1] == pytest.approx(1 / (2 * m * math.log(2)), rel=1e-3)


def test_subsampling_leaves_one_workers_merit_unchanged():
    claim, bits = Unbiased(0.4), 1.0 * D
    for fraction in (1.0, 0.1, 1e-4):
        assert merit(*subsampled(claim, bits, fraction), D) == pytest.approx(merit(claim, bits, D), rel=1e-12)


def test_best_merit_reproduces_the_published_figures_for_256_workers():
    omega, value = best_merit(Unbiased(0.0), 32 * D + 64, D, m=256, overhead_bits=64)  # random coordinates, one seed
    assert value == pytest.approx(0.131, abs=5e-4)
    assert merit(Unbiased(0.5708), D, D, m=256) == pytest.approx(1.00, abs=5e-3)
    near = [
        merit(*subsampled(Unbiased(0.0), 32 * D + 64, f / (1 + omega), overhead_bits=64), D, m=256)
        for f in (0.9, 1, 1.1)
    ]
    assert near[1] == pytest.approx(value, rel=1e-12)
    assert near[1] < min(near[0], near[2])


def test_best_merit_at_its_limits():
    assert best_merit(Unbiased(0.5), D, D, m=1, overhead_bits=64)[0] == 0.5
    assert best_merit(Unbiased(0.5), D, D, m=1) == (0.5, 1.5)
    assert best_merit(Unbiased(0.5), D, D, m=10) == (math.inf, pytest.approx(0.15))


def test_best_subsampling_agrees_with_the_closed_form_where_only_the_merit_counts():
    claim, bits, overhead = Unbiased(0.4), 1.0 * D, 64
    found = best_subsampling("dcgd_iterations", claim, bits, overhead_bits=overhead, **PROBLEM)
    omega, value = best_merit(claim, bits, D, m=PROBLEM["m"], overhead_bits=overhead)
    assert found.level == pytest.approx(omega, rel=1e-3)
    assert found.bits == pytest.approx(value * D * PROBLEM["kappa"] * math.log(1e3), rel=1e-9)


def test_best_omega_grows_as_the_root_of_the_number_of_workers():
    levels = [
        1 + best_subsampling("dcgd_iterations", Unbiased(0.4), D, overhead_bits=64, kappa=1e4, m=m, epsilon=1e-3).level
        for m in (17, 257)
    ]
    assert levels[1] / levels[0] == pytest.approx(4, rel=1e-3)


@pytest.mark.parametrize(("kappa", "m"), [(10.0, 4), (1e3, 4), (1e3, 1000), (1e5, 1000)])
def test_best_omega_of_diana_is_the_one_of_brute_force(kappa, m):
    def bits_at(omega):
        return limits.unbiased_bits(d=D, omega=omega) + 64

    found = best_level("diana", bits_at, lower=1e-3, upper=1e5, kappa=kappa, m=m, epsilon=1e-3)
    omega = np.geomspace(1e-3, 1e5, 200_001)
    brute = theorems.diana(omega=omega, kappa=kappa, m=m, epsilon=1e-3) * bits_at(omega)
    assert found.bits == pytest.approx(brute.min(), rel=1e-6)


def test_cheapest_total_falls_with_workers_and_grows_with_the_condition_number():
    def bits_at(omega):
        return limits.unbiased_bits(d=D, omega=omega) + 64

    workers, condition = (1, 16, 256), (10.0, 1e3, 1e5)
    table = best_levels(
        "diana", bits_at, lower=1e-3, upper=1e5, workers=workers, condition_numbers=condition, epsilon=1e-3
    )
    bits = np.array([[table[m, kappa].bits for kappa in condition] for m in workers])
    assert np.all(np.diff(bits, axis=0) < 0)
    assert np.all(np.diff(bits, axis=1) > 0)
    levels = np.array([[table[m, kappa].level for kappa in condition] for m in workers])
    assert np.all(np.diff(levels[:, 1:], axis=0) > 0)  # more workers average more compression noise away ...
    assert levels[2, 0] < levels[2, 1]  # ... until learning the shifts dominates, at a small condition number


def test_best_level_is_no_worse_than_brute_force():
    def bits_at(alpha):
        return -D / 2 * np.log2(alpha) + 64

    problem = {"L": 1.0, "gap": 1.0, "epsilon": 1e-2}
    found = best_level("ef21", bits_at, lower=1e-6, upper=1 - 1e-9, **problem)
    alpha = np.linspace(1e-6, 1 - 1e-9, 200_001)
    brute = theorems.ef21(alpha=alpha, **problem) * bits_at(alpha)
    assert found.bits <= brute.min() * (1 + 1e-9)
    assert found.bits == pytest.approx(brute.min(), rel=1e-6)


def test_marina_counts_its_uncompressed_messages():
    problem = {"L": 1.0, "gap": 1.0, "epsilon": 0.01, "m": 4}
    given = total_bits("marina", Unbiased(9.0), 100.0, dense_bits=1000.0, sync_probability=0.25, **problem)
    assert given.bits_per_step == pytest.approx(0.25 * 1000 + 0.75 * 100)
    chosen = total_bits("marina", Unbiased(9.0), 100.0, dense_bits=1000.0, **problem)
    assert chosen.bits_per_step == pytest.approx(0.1 * 1000 + 0.9 * 100)
    with pytest.raises(ValueError, match="give its dense_bits"):
        total_bits("marina", Unbiased(9.0), 100.0, **problem)


def test_a_claim_gives_the_constant_its_theorem_needs():
    assert level_of(theorems.diana, Unbiased(3.0)) == 3
    assert level_of(theorems.ef21, Unbiased(3.0)) == 0.75
    assert level_of(theorems.ef21, StrictlyContractive(0.9)) == 0.9


def test_unsuited_requests_are_refused_with_a_reason():
    with pytest.raises(ValueError, match="unbiased operator; this one contracts with alpha = 0"):
        total_bits("diana", Contractive(0.5), 1.0, **PROBLEM)
    with pytest.raises(ValueError, match="makes none: signs only"):
        total_bits("diana", NoClaim("signs only"), 1.0, **PROBLEM)
    with pytest.raises(ValueError, match="recalled, not proved; pass allow_recalled=True"):
        total_bits("adiana", Unbiased(1.0), 1.0, **PROBLEM)
    with pytest.raises(ValueError, match="unknown method 'sgd'; choose one of"):
        total_bits("sgd", Unbiased(1.0), 1.0, **PROBLEM)
    with pytest.raises(ValueError, match="0 < fraction <= 1"):
        subsampled(Unbiased(1.0), 10.0, 0.0)
    with pytest.raises(ValueError, match="0 < lower < upper"):
        best_level("diana", lambda w: w, lower=2.0, upper=1.0, **PROBLEM)
    assert total_bits("adiana", Unbiased(1.0), 1.0, allow_recalled=True, **PROBLEM).status is Status.RECALLED


def test_impossible_counts_and_lengths_are_refused():
    with pytest.raises(ValueError, match="bits must be finite and >= 0; got bits = -32"):
        total_bits("diana", Unbiased(1.0), -32, **PROBLEM)
    with pytest.raises(ValueError, match="m must be an integer >= 1; got m = 0"):
        merit(Unbiased(1.0), 32, D, m=0)
    with pytest.raises(ValueError, match="m must be an integer >= 1; got m = 0"):
        best_merit(Unbiased(1.0), 32, D, m=0)


def test_two_shots_count_a_message_and_a_shard_of_the_mean():
    problem = {"kappa": 100.0, "m": 8, "epsilon": 0.1}

    total = total_bits("two_shot_diana", Unbiased(0.5), 4e6, **problem)

    assert total.steps == theorems.two_shot_diana(omega1=0.5, omega2=0.5, **problem)
    assert total.bits == pytest.approx(total.steps * 4e6 * (1 + 1 / 8), rel=1e-14)
    with pytest.raises(ValueError, match="needs an unbiased operator"):
        total_bits("two_shot_diana", Contractive(0.5), 4e6, **problem)
