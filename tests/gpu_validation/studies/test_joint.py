"""The joint bound on records made up by hand, and one small run of each kind."""

import math
from dataclasses import replace

import pytest

from bounds import theorems
from bounds.claims import Unbiased
from gpu_validation.judging.plotting import figure_html
from gpu_validation.judging.verdict import Verdict
from gpu_validation.studies.error_feedback import largest_gradient
from gpu_validation.studies.joint import (
    METHODS,
    PRESET,
    TAU_0,
    WORKLOADS,
    dimension,
    gradient_limit,
    joint_bound,
    schedule,
    seconds_to,
)

pytestmark = pytest.mark.timeout(120)

FIXED = [[8, 30]]
FALLING = [[8, 10], [4, 10], [1, 40]]
SMALL = replace(PRESET, schedules=("1", "adacomm"), seeds=(0, 1), time_s=0.2, interval_s=0.1, real_steps=16)


def record(workload, kind, method, value, rounds=FIXED):
    """60 seeds that scatter by a thousandth around a mean of |grad F|^2, with losses that fall evenly."""
    runs = []
    for seed in range(60):
        runs.append(
            {
                "seconds": [0.0, 1.0, 2.0, 3.0],
                "bits": [0, 100, 200, 300],
                "losses": [4.0, 3.0, 2.0, 1.0],
                "rounds": rounds,
                "steps_done": sum(tau * count for tau, count in rounds),
                "took_s": 3.0,
                "gradient2": value * (1 + 1e-3 * (seed % 6 - 2.5)),
                "local_gradient2": value * (1 + 1e-3 * (seed % 6 - 2.5)),
            }
        )
    return {"unit": f"virtual:{workload}:{kind}:{method}", "eta": WORKLOADS[workload].eta, "runs": runs}


def judged(*records):
    return [row for row in PRESET.judge(records) if "|grad F|^2" in row.quantity]


@pytest.mark.every(4)
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("method", ["whole", "qsgd", "tcdq"])
@pytest.mark.parametrize(("kind", "rounds"), [("8", FIXED), ("adacomm", FALLING)])
def test_joint_bound_decides(workload, method, kind, rounds):
    bound = joint_bound(workload, method, rounds, 4)
    (below,) = judged(record(workload, kind, method, 0.5 * bound, rounds))
    (above,) = judged(record(workload, kind, method, 2 * bound, rounds))
    (near,) = judged(record(workload, kind, method, bound, rounds))
    assert (below.verdict, above.verdict, near.verdict) == (Verdict.HOLDS, Verdict.VIOLATED, Verdict.INCONCLUSIVE)
    assert below.decides
    assert below.bound == pytest.approx(bound)


def test_joint_bound_of_a_fixed_tau_is_the_theorem_in_iterations():
    w, claim = WORKLOADS["quadratic"], METHODS["tcdq"].claim(dimension(WORKLOADS["quadratic"]))
    assert claim == Unbiased(1.0, tight=True)
    c = w.constants()
    at = {"gap": c.gap, "eta": w.eta, "L": c.L, "sigma2": c.sigma2, "m": 4}
    fixed = theorems.pasgd_compressed(**at, tau=8, K=240, omega=1.0)
    assert joint_bound("quadratic", "tcdq", FIXED, 4) == pytest.approx(fixed, rel=1e-12)
    assert joint_bound("quadratic", "tcdq", FALLING, 4) < joint_bound("quadratic", "tcdq", [[8, 20]], 4)


def test_runs_of_unequal_length_are_weighed_by_their_steps():
    one = record("quadratic", "adacomm", "tcdq", 1.0, FALLING)
    other = record("quadratic", "adacomm", "tcdq", 1.0, [[8, 10], [4, 10]])
    one["runs"][3:] = other["runs"][3:]
    (row,) = judged(one)
    assert row.measured == pytest.approx(1.0, rel=1e-2)
    assert row.verdict is Verdict.OUT_OF_SCOPE  # bounds that differ between runs: no declared range of the excess
    assert "declared range" in row.reason


def test_rounds_beyond_the_condition_are_out_of_scope_and_say_why():
    (row,) = judged(record("quadratic", "8", "tcdq", 0.1, [[200, 2]]))
    assert row.verdict is Verdict.OUT_OF_SCOPE
    assert "learning-rate condition" in row.reason


def test_memory_needs_bounded_gradients():
    (quadratic,) = judged(record("quadratic", "8", "ef(topk)", 0.1))
    assert quadratic.verdict is Verdict.OUT_OF_SCOPE
    assert "G^2" in quadratic.reason
    (logistic,) = judged(record("logistic", "8", "ef(topk)", 0.1))
    assert logistic.verdict is Verdict.HOLDS
    assert logistic.theorem == "pasgd_memory"
    (wrong,) = judged(record("logistic", "8", "ef(topk)", 2 * logistic.bound))
    assert wrong.verdict is Verdict.VIOLATED


def test_gradient_limit_is_a_fixed_point_above_every_sample():
    w = WORKLOADS["logistic"]
    G = gradient_limit(w, 0.81, 8, 400)
    assert pytest.approx(largest_gradient(w) + w.decay * w.eta * G * (400 + 8 / (1 - 0.9))) == G
    assert gradient_limit(replace(w, decay=1.0), 0.81, 8, 400) == math.inf


def test_every_schedule_and_compressor_stays_within_the_condition():
    for name in WORKLOADS:
        rule = schedule("adacomm", name, 0.3)
        assert rule.cap == TAU_0[name]
        for method in ("whole", "qsgd", "tcdq"):
            assert math.isfinite(joint_bound(name, method, [[TAU_0[name], 3]], PRESET.m))
            assert math.isfinite(joint_bound(name, method, [[8, 3]], PRESET.m))


def test_time_and_bits_to_the_synchronous_loss_are_shown_but_not_judged():
    base, faster = record("quadratic", "1", "whole", 0.1), record("quadratic", "8", "tcdq", 0.1)
    for run in faster["runs"]:
        run["losses"] = [4.0, 0.5, 0.4, 0.3]
        run["bits"] = [0, 50, 100, 150]
    rows = {row.quantity.split(" at ")[0]: row for row in PRESET.judge([base, faster]) if " at " in row.quantity}
    assert rows["times faster"].measured == 3.0
    assert rows["times fewer bits"].measured == 6.0
    assert {row.verdict for row in rows.values()} == {Verdict.OUT_OF_SCOPE}
    assert seconds_to({"seconds": [0.0], "losses": [2.0]}, 1.0) == math.inf


def test_real_processes_must_agree_bit_for_bit():
    run = record("quadratic", "8", "tcdq", 0.1)["runs"][0]
    run["raced_s"] = 2.4
    real = {"unit": "real:quadratic:8:tcdq", **run, "fenced_s": [0.008] * 2, "scheduling": "", "method": "by hand"}
    same, seconds = PRESET.judge([real | {"compared": 9, "largest_difference": 0.0}])
    assert same.verdict is Verdict.HOLDS
    assert not seconds.decides
    assert PRESET.judge([real | {"compared": 9, "largest_difference": 1e-16}])[0].verdict is Verdict.VIOLATED
    assert PRESET.judge([real]) == []  # AdaComm decides by its own clock


def test_figures_are_drawn_from_records_alone():
    records = [record("quadratic", "1", "whole", 0.1), record("logistic", "adacomm", "ef(topk)", 0.1, FALLING)]
    figures = PRESET.figures([*records, {"unit": "real:quadratic:8:tcdq", "method": "", **records[0]["runs"][0]}])
    shown = ("simulated seconds", "bits of all workers", "joint bound", "real processes")
    for figure, words in zip(figures, shown, strict=True):
        assert words in figure.caption
    for figure in figures:
        assert "Measured" in figure.caption
        assert "<svg" in figure_html(figure.draw(), figure.caption)


def test_a_small_run_is_judged_and_sends_fewer_bits():
    units = ("virtual:quadratic:1:whole", "virtual:quadratic:adacomm:tcdq")
    records = [{"unit": unit, **SMALL.measure(unit)} for unit in units]
    whole, tcdq = (found["runs"][0] for found in records)
    assert tcdq["bits"][-1] < 0.1 * whole["bits"][-1]
    assert tcdq["steps_done"] > whole["steps_done"]
    assert not any(row.verdict is Verdict.VIOLATED for row in SMALL.judge(records))


@pytest.mark.slow
def test_real_processes_repeat_virtual_workers():
    found = {"unit": "real:quadratic:8:ef(topk)", **SMALL.measure("real:quadratic:8:ef(topk)")}
    assert SMALL.judge([found])[0].verdict is Verdict.HOLDS
