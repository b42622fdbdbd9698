"""Verdicts from records made by hand: each kind of row, on each side of its bound."""

import dataclasses
import math

import pytest

from bounds.limits import gaussian_unbiased_bits
from bounds.theorems import pasgd_compressed, pasgd_iterations
from gpu_validation.judging.verdict import Verdict
from gpu_validation.records.compression import Compression, Declared, Sample
from gpu_validation.studies.grid import rows as grid_rows
from gpu_validation.studies.grid.records import Curve, Probe, Timing, Traffic, Training
from gpu_validation.studies.grid.rows import compare

BUDGET = 1e-4


def sample(mean, *, n=400, sd=0.0):
    """n numbers of that mean and deviation: half of them above, half below."""
    return Sample.of([mean - sd, mean + sd] * (n // 2))


def compression(*, kind="Unbiased", constant=1.0, source="gaussian", bits=600.0, ratio=0.5, sd=0.0, **declared):
    sizes = {"exact_bits": None, "expected_upper_bits": 700.0, "worst_case_bits": 900.0, **declared}
    return Compression(
        source=source,
        d=100,
        declared=Declared(kind=kind, constant=constant, **sizes),
        bits=sample(bits, sd=10.0 if sizes["exact_bits"] is None else 0.0),
        ratio=sample(ratio, sd=sd),
        error_per_coordinate=sample(ratio, sd=sd),
    )


def training(c, **change):
    record = Training(
        workload="quadratic",
        operator="Op()",
        tau=4,
        processes=4,
        steps=200,
        seeds=tuple(range(200)),
        parameters={
            **{"eta": 0.05, "L": 1.0, "sigma2": 4.0, "gap": 1.24090645},
            **{"d": 10.0, "smallest": 0.01, "noise": 0.4},
        },
        exact_constants=True,
        inexact_reason="",
        gradient_norm2=(0.12, 0.13, 0.125, 0.128, 0.131, 0.129, 0.127, 0.126) * 25,
        final_loss=(0.04,) * 200,
        compression=c,
        traffic=Traffic(1000, 500, 500, 900, "counter"),
        timing=Timing(round_s=(0.0402, 0.0401, 0.0399), step_s=(0.0095,) * 8, delay_s=sample(0.002, n=8)),
        curve=Curve((0.1,), (100,), (1.0,)),
    )
    return dataclasses.replace(record, **change)


def rows(record):
    return {row.quantity + ("|" + row.theorem if row.quantity.startswith("squared") else ""): row
            for row in compare([record], false_alarm=BUDGET)}  # fmt: skip


@pytest.mark.parametrize(
    ("ratio", "sd", "verdict"),
    [(0.8, 0.1, "HOLDS"), (1.4, 0.1, "VIOLATED"), (1.0, 0.1, "INCONCLUSIVE"), (1.0, 0.0, "INCONCLUSIVE")],
)
def test_mean_distortion_is_judged_by_its_interval(ratio, sd, verdict):
    row = rows(Probe("Op()", compression(ratio=ratio, sd=sd)))["distortion, mean"]

    assert row.verdict == verdict
    assert row.bound == 1.0


@pytest.mark.parametrize(("ratio", "verdict"), [(0.3, "HOLDS"), (0.3 + 1e-7, "HOLDS"), (0.3 + 1e-5, "VIOLATED")])
def test_a_strict_contraction_is_judged_by_its_worst_message_up_to_rounding(ratio, verdict):
    c = compression(kind="StrictlyContractive", constant=0.3, ratio=ratio)

    assert rows(Probe("Op()", c))["distortion, worst message"].verdict == verdict


def test_without_a_claim_the_distortion_is_out_of_scope():
    row = rows(Probe("Op()", compression(kind="NoClaim", constant=None)))["distortion, mean"]

    assert row.verdict is Verdict.OUT_OF_SCOPE
    assert row.reason.startswith("no claim")


@pytest.mark.parametrize(("bits", "verdict"), [(3200, "HOLDS"), (3201, "VIOLATED")])
def test_fixed_length_codes_must_have_exactly_that_length(bits, verdict):
    c = compression(exact_bits=3200, bits=bits)

    assert rows(Probe("Op()", c))["codec bits, every message"].verdict == verdict


def test_variable_length_codes_are_judged_by_mean_and_longest():
    good = rows(Probe("Op()", compression(bits=600)))
    long = rows(Probe("Op()", compression(bits=895)))

    assert good["codec bits, mean"].verdict == good["codec bits, longest message"].verdict == "HOLDS"
    assert long["codec bits, mean"].verdict == long["codec bits, longest message"].verdict == "VIOLATED"


def test_the_limit_gives_a_verdict_on_gaussian_input_only():
    limit = gaussian_unbiased_bits(d=100, omega=0.5)
    above, below = (
        rows(Probe("Op()", compression(bits=bits, worst_case_bits=most)))["codec bits against the limit"]
        for bits, most in ((600, 900), (30, 60))
    )
    structured = rows(Probe("Op()", compression(bits=40, source="round deltas of x")))["codec bits against the limit"]

    assert (above.verdict, below.verdict) == ("HOLDS", "VIOLATED")
    assert above.bound == below.bound == structured.bound == limit
    assert structured.verdict is Verdict.OUT_OF_SCOPE
    assert "isotropic Gaussian" in structured.reason


@pytest.mark.parametrize("change", [{"source": "flat"}, {"ratio": 0.0}])
def test_a_single_vector_or_a_lossless_operator_has_no_limit_row(change):
    assert "codec bits against the limit" not in rows(Probe("Op()", compression(**change)))


def test_payload_must_be_equal_and_interface_not_below():
    good = rows(training(compression()))
    lost = rows(training(compression(), traffic=Traffic(1000, 499, 500, 450, "counter")))
    blind = rows(training(compression(), traffic=Traffic(1000, 500, 500, None, "counter")))

    payload, interface = "payload bytes, whole cell", "interface bytes, whole cell"
    assert good[payload].verdict == good[interface].verdict == "HOLDS"
    assert lost[payload].verdict == lost[interface].verdict == "VIOLATED"
    assert blind[interface].verdict == "OUT_OF_SCOPE"


def test_seconds_never_decide_and_are_never_violated():
    near = rows(training(compression()))["seconds per iteration"]
    far = rows(training(compression(), timing=Timing((0.4, 0.4001, 0.3999), (0.0095,) * 8, sample(0.002))))[
        "seconds per iteration"
    ]

    assert near.bound == pytest.approx(0.0095 + 0.002 / 4)
    noisy = Timing((0.01, 0.04, 0.07), (0.0095,) * 8, sample(0.002))
    scattered = rows(training(compression(), timing=noisy))["seconds per iteration"]
    assert (near.verdict, far.verdict, scattered.verdict) == ("HOLDS", "INCONCLUSIVE", "INCONCLUSIVE")
    assert "10 %" in far.reason
    assert "scatter" in scattered.reason
    assert {row.decides for row in (near, far, scattered)} == {False}


def test_a_row_of_seconds_would_have_noticed_what_it_says_and_nothing_where_others_disturb_the_machine():
    timing = Timing((0.0402, 0.0401, 0.0399), (0.0095,) * 8, sample(0.002, n=8))
    loud = rows(training(compression(), timing=timing))["seconds per iteration"]
    quiet = rows(training(compression(), timing=dataclasses.replace(timing, wanted_step_s=0.0095)))[
        "seconds per iteration"
    ]

    assert loud.noticed == (0, math.inf)
    below, above = quiet.noticed
    for factor, verdict in ((0.99 * below, "VIOLATED"), (1.01 * above, "VIOLATED"), (1.01 * below, "INCONCLUSIVE")):
        assert far_from(quiet.interval, factor * quiet.bound) == verdict


def far_from(interval, predicted):
    return grid_rows._judged(interval, predicted, grid_rows.TOLERANCE, quiet=True)[0]


def test_the_identity_is_compared_with_theorem_1_and_with_the_exact_dynamics():
    c = compression(kind="StrictlyContractive", constant=0.0, ratio=0.0, exact_bits=320, bits=320)
    record = training(c)
    found = rows(record)
    key = "squared gradient norm, average over steps|"

    theorem, exact = found[key + "pasgd_iterations"], found[key + "exact dynamics with additive noise"]
    at = {"eta": 0.05, "L": 1.0, "sigma2": 4.0, "gap": 1.24090645, "tau": 4, "m": 4, "K": 200}
    assert (theorem.bound, theorem.verdict) == (pasgd_iterations(**at), "HOLDS")
    assert exact.bound == pytest.approx(0.127287, abs=5e-7)
    assert exact.verdict == "HOLDS"
    few = rows(training(c, seeds=(0, 1), gradient_norm2=(0.12, 0.13), final_loss=(0.05, 0.06)))
    assert few[key + "exact dynamics with additive noise"].verdict == "INCONCLUSIVE"
    assert few[key + "exact dynamics with additive noise"].reason.startswith("not contradicted, not shown")
    off = rows(training(c, gradient_norm2=(0.5, 0.51, 0.52, 0.5, 0.49, 0.5, 0.5, 0.51) * 25))
    assert off[key + "exact dynamics with additive noise"].verdict == "VIOLATED"


def test_unbiased_operators_are_compared_with_the_joint_bound_where_it_applies():
    key = "squared gradient norm, average over steps|pasgd_compressed"
    at = {"eta": 0.05, "L": 1.0, "sigma2": 4.0, "gap": 1.24090645, "tau": 4, "m": 4, "K": 200, "omega": 1.0}

    held = rows(training(compression()))[key]
    broken = rows(training(compression(), gradient_norm2=(9.0, 9.1, 9.0, 9.0, 9.1, 9.0, 9.1, 9.0)))[key]
    outside = rows(training(compression(constant=50.0)))[key]
    estimated = rows(training(compression(), exact_constants=False, inexact_reason="L is estimated"))[key]

    assert (held.bound, held.verdict) == (pasgd_compressed(**at), "HOLDS")
    assert broken.verdict == "VIOLATED"
    assert outside.verdict == "OUT_OF_SCOPE"
    assert "omega" in outside.reason
    assert (estimated.verdict, estimated.reason) == ("OUT_OF_SCOPE", "L is estimated")
    assert estimated.bound == held.bound


def test_biased_operators_have_no_theorem():
    c = compression(kind="StrictlyContractive", constant=0.6)
    row = next(r for name, r in rows(training(c)).items() if name.startswith("squared"))

    assert row.verdict is Verdict.OUT_OF_SCOPE
    assert "unbiased" in row.reason


def test_the_false_alarm_budget_is_split_over_the_sampled_comparisons():
    record = Probe("Op()", compression(ratio=0.8, sd=0.1))
    alone = {r.quantity: r for r in compare([record], false_alarm=BUDGET)}
    among = {r.quantity: r for r in compare([record] * 50, false_alarm=BUDGET)}

    assert among["distortion, mean"].interval[0] < alone["distortion, mean"].interval[0]


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(1.0, 1.0, "HOLDS"), (1.0, 1.1, "VIOLATED"), (0.9, 1.0, "VIOLATED")]
)
def test_where_nothing_is_random_every_seed_must_have_the_number_of_the_law(low, high, verdict):
    one = {"hessians": [[[1.0]], [[1.0]]], "centres": [[1.0], [1.0]]}  # F(x) = (x - 1)^2 / 2 at both workers
    setting = {"workload": "heterogeneous", "problem": one, "processes": 2, "tau": 2, "steps": 4}
    number = sum(0.95 ** (2 * k) for k in range(4)) / 4  # a step takes eta = 0.05 of the way; mean of squared gradients
    measured = (low * number,) * 100 + (high * number,) * 100
    judged = rows(training(compression(constant=0.0), gradient_norm2=measured, **setting))

    assert judged["squared gradient norm, average over steps|exact dynamics of different data"].verdict == verdict
