"""Judgements of records made up by hand, what the theories advise, and one small run of each kind."""

from dataclasses import replace

import numpy as np
import pytest

from bounds.dynamics import heterogeneous, third_order
from gpu_validation.judging.plotting import figure_html
from gpu_validation.judging.verdict import Verdict
from gpu_validation.studies import tau_star
from gpu_validation.studies.tau_star import (
    PLANNED,
    PRESET,
    PROBLEMS,
    advice,
    best_tau,
    exact_value,
    planned,
    regrets,
    third_derivative,
)

pytestmark = pytest.mark.timeout(120)

ADVISED = {"theorem 2": 8, "theorem 2, capped": 8, "theorem 1'": 16, "plan": 8}
TAUS = [1, 8, 16, 128]


def swept(name, value, *, gap=lambda tau: 1.0, seeds=6):
    """Seeds that scatter by a thousandth around ``value(tau)``."""
    records = []
    for seed in range(seeds):
        scale = 1 + 1e-3 * (seed % 6 - 2.5)
        runs = [{"tau": t, "steps": 100, "gradient2": scale * value(t), "gap": scale * gap(t)} for t in TAUS]
        own = {"eta": 0.1, "tau": 2, "steps": 100, "gradient2": 2 * scale, "gap": scale}
        unit = f"grid:{name}:{seed}"
        records.append({"unit": unit, "advised": ADVISED, "taus": TAUS, "runs": runs, "planned": own})
    return records


def rows_of(records, theorem):
    return {row.tau: row for row in PRESET.judge(records) if row.theorem == theorem}


def real(difference, *, raced_s=1.0):
    return {
        "unit": "real:quadratic:8",
        "tau": 8,
        "m": 4,
        "steps": 100,
        "raced_s": raced_s,
        "fenced_s": [0.016, 0.016],
        "gradient2": 0.5,
        "compared": 20,
        "largest_difference": difference,
        "method": "by hand",
        "scheduling": "normal",
    }


def test_exact_values_are_not_contradicted_and_a_tenth_more_is_violated():
    problem = PROBLEMS["quadratic"]
    right = rows_of(swept("quadratic", lambda tau: exact_value(problem, tau), seeds=300), "exact dynamics")
    wrong = rows_of(swept("quadratic", lambda tau: 1.1 * exact_value(problem, tau), seeds=300), "exact dynamics")
    assert set(right) == set(TAUS)
    assert {row.verdict for row in right.values()} == {Verdict.INCONCLUSIVE}  # a norm has no largest value
    assert {row.verdict for row in wrong.values()} == {Verdict.VIOLATED}


@pytest.mark.parametrize("name", ["quadratic", "logistic", "kink"])
def test_convex_bound_judges_every_tau_and_theorem_1_only_within_its_condition(name):
    low = PRESET.judge(swept(name, lambda _: 1e-6, seeds=24))
    high = PRESET.judge(swept(name, lambda _: 1e6))
    for rows, verdict in ((low, Verdict.HOLDS), (high, Verdict.VIOLATED)):
        convex = {row.tau: row.verdict for row in rows if row.theorem == "pasgd_convex"}
        assert convex == dict.fromkeys(TAUS, verdict)
        classic = {row.tau: row for row in rows if row.theorem == "pasgd_iterations"}
        assert classic[1].verdict is verdict
        assert classic[128].verdict is Verdict.OUT_OF_SCOPE
        assert "eta" in classic[128].reason


def test_heterogeneous_runs_must_end_at_the_fixed_point():
    w = PROBLEMS["heterogeneous"].workload

    def limit(tau):
        away = heterogeneous.fixed_point(w.H, w.c, eta=w.eta, tau=tau) - heterogeneous.minimiser(w.H, w.c)
        return float(0.5 * away @ w.H.mean(axis=0) @ away)

    def judged(factor):
        records = [swept("heterogeneous", lambda _: 1.0)[0] for _ in range(2)]
        for record in records:
            for run in record["runs"]:
                run["gap"] = factor * limit(run["tau"])
        rows = [row for row in PRESET.judge(records) if row.theorem == "fixed point of a round"]
        return {row.tau: row.verdict for row in rows}

    assert judged(1.0) == dict.fromkeys(TAUS, Verdict.HOLDS)
    assert judged(1.001)[128] is Verdict.VIOLATED


def test_regret_is_over_the_best_tau_of_the_grid_and_never_judged():
    records = swept("kink", lambda tau: {1: 4.0, 8: 2.0, 16: 1.0, 128: 3.0}[tau])
    assert best_tau(records, "gradient2") == 16
    assert regrets(records, "theorem 2", "gradient2") == pytest.approx(np.full(6, 2.0))
    assert regrets(records, "theorem 1'", "gradient2") == pytest.approx(np.ones(6))
    assert regrets(records, PLANNED, "gradient2") == pytest.approx(np.full(6, 2.0))
    assert regrets(records, "third order", "gradient2") is None  # a kink has none
    rows = [row for row in PRESET.judge(records) if "best tau" in row.quantity]
    assert {row.verdict for row in rows} == {Verdict.OUT_OF_SCOPE}
    assert all("neither claims" in row.reason for row in rows)


def test_solved_problems_have_no_regret():
    assert regrets(swept("kink", lambda _: 1.0, gap=lambda _: 1e-20), "theorem 2", "gap") is None


def test_real_processes_must_agree_bit_for_bit_and_seconds_decide_nothing():
    same, seconds = PRESET.judge([real(0.0)])
    assert same.verdict is Verdict.HOLDS
    assert seconds.verdict is Verdict.HOLDS
    assert seconds.bound == pytest.approx(0.008 + 0.016 / 8)
    assert PRESET.judge([real(1e-16)])[0].verdict is Verdict.VIOLATED
    slow = PRESET.judge([real(0.0, raced_s=2.0)])[1]
    assert (slow.verdict, slow.decides) == (Verdict.INCONCLUSIVE, False)


def test_advice_is_ordered_as_the_theory_says():
    for name in PROBLEMS:
        found = advice(name)
        assert found["theorem 2, capped"] <= (found["theorem 2"] or np.inf)
        assert (found["theorem 1'"] or np.inf) >= (found["theorem 2"] or np.inf)
    assert advice("quadratic")["third order"] is None
    assert advice("logistic")["third order"] > 100
    assert "third order" not in advice("kink")


def test_third_derivative_gives_back_the_bias_of_two_steps():
    w = PROBLEMS["logistic"].workload
    size, sigma2 = third_derivative(w, 4)
    scalar = third_order.scalar_bias(third=size / (1 - 1 / 4), curvature=0.0, sigma2=sigma2, eta=w.eta, m=4, tau=2)
    assert 0 < sigma2 < w.constants().sigma2
    assert abs(scalar) == pytest.approx(size * w.eta**2 * sigma2 / 4)


def test_plan_with_its_own_rate_keeps_the_condition_of_theorem_1():
    eta, tau = planned("logistic")
    L = PROBLEMS["logistic"].workload.constants().L
    assert eta * L + (eta * L) ** 2 * tau * (tau - 1) <= 1 + 1e-9


def test_figures_are_drawn_from_records_alone():
    records = [*swept("quadratic", lambda tau: 1 / tau), *swept("kink", lambda tau: tau), real(0.0)]
    for figure in PRESET.figures(records):
        assert "Measured" in figure.caption
        assert "<svg" in figure_html(figure.draw(), figure.caption)


def test_units_are_short_pieces_that_cover_every_problem_and_seed():
    units = PRESET.units()
    assert len(units) == len(set(units))
    assert sum(unit.startswith("grid:kink:") for unit in units) == len(PRESET.seeds)
    assert {unit.split(":")[1] for unit in units if unit.startswith("real:")} == set(PRESET.confirmed)


def test_a_unit_holds_the_grid_and_the_advice(monkeypatch):
    monkeypatch.setitem(PROBLEMS, "heterogeneous", replace(PROBLEMS["heterogeneous"], time_s=0.4))
    small = replace(PRESET, grid=(1, 4), problems=("heterogeneous",))
    record = small.measure("grid:heterogeneous:0")
    assert set(record["taus"]) == {1, 4}
    assert [run["steps"] for run in record["runs"]] == [PROBLEMS["heterogeneous"].steps(tau) for tau in (1, 4)]
    assert record["advised"]["theorem 2"] == 4  # infinite, so the end of the grid


@pytest.mark.slow
def test_real_processes_repeat_virtual_workers():
    small = replace(PRESET, real_s=0.4)
    record = {"unit": "real:quadratic:8", **small.measure("real:quadratic:8")}
    assert small.judge([record])[0].verdict is Verdict.HOLDS
    assert record["gradient2"] == record["twin_gradient2"]


def test_seeds_around_tau_star_are_measured_at_every_tau(monkeypatch):
    monkeypatch.setattr(tau_star, "BEST", replace(tau_star.BEST, m=4, time_s=0.2))
    monkeypatch.setattr(tau_star, "SEEDS", 2)
    record = PRESET.measure("best:equal:3")

    assert record["claimed"] > 4  # a shorter run pays for fewer averagings
    assert {tau: len(values) for tau, values in record["values"].items()} == dict.fromkeys(
        ["1", "2", "4", "8", "16"], 2
    )
    for tau, values in record["values"].items():
        away = abs(np.mean(values) - tau_star.exact_value_at_workers(int(tau)))
        assert away < 6 * record["variances"][tau] ** 0.5
