"""The error-feedback study: the memory stays below its bound, nothing is lost, signs alone fail where they must."""

import pytest

from gpu_validation.judging.verdict import Verdict
from gpu_validation.studies.carry_out import carry_out
from gpu_validation.studies.error_feedback import METHODS, PRESET, ErrorFeedbackStudy, descend, largest_gradient
from gpu_validation.workloads import LogisticRegression
from operators import Key

SMALL = ErrorFeedbackStudy(batches=(64,), samples=640, seeds=(10, 11), steps=20)


@pytest.fixture(scope="module")
def memory():
    unit = "memory:ef(topk:0.01)"
    return {"unit": unit, **SMALL.measure(unit)}


def test_memory_gradient_and_conservation_hold(memory):
    rows = SMALL.judge([memory])
    assert [str(r.verdict) for r in rows] == ["HOLDS", "INCONCLUSIVE", "HOLDS"]  # two runs show no mean
    assert 0 < rows[0].measured < rows[0].bound


@pytest.mark.parametrize(("field", "value"), [("G", 1e-4), ("conserved", 0.01), ("gap", 0.0)])
def test_false_constant_or_lost_mass_would_be_found(memory, field, value):
    broken = {**memory, field: value} | ({"L": 1e-6, "G": 1e-3} if field == "gap" else {})
    assert any(r.verdict is Verdict.VIOLATED for r in SMALL.judge([broken]))


def test_no_gradient_is_longer_than_the_stated_largest():
    workload = LogisticRegression(batch=1)
    model = workload.model()
    for step in range(50):
        loss = workload.loss(model, key=Key(0, step=step, rank=0))
        model.zero_grad()
        loss.backward()
        norm = sum(float(p.grad.square().sum()) for p in model.parameters()) ** 0.5
        assert norm <= largest_gradient(workload)


def test_memory_brings_top_k_near_plain_descent():
    workload = LogisticRegression(batch=64)
    final = {name: descend(workload, METHODS[name], 1, 0.2, 60, 0)["loss"][-1] for name in METHODS if name != "signsgd"}
    assert final["ef(topk:0.01)"] < final["topk:0.01"] - 0.05
    assert final["sgd"] < final["ef(topk:0.01)"]


def test_signs_stay_on_the_line_and_memory_finds_the_minimum(tmp_path):
    assert "counter:kinks:signsgd" in PRESET.units()
    (first,) = carry_out(SMALL, tmp_path, seconds=0).records
    assert (first["unit"], first["final"] > 0.2) == ("counter:slope:signsgd", True)
    kinks = {"unit": "counter:kinks:signsgd", **SMALL.measure("counter:kinks:signsgd")}
    (row,) = SMALL.judge([kinks])
    assert row.verdict is Verdict.HOLDS
    assert SMALL.measure("counter:kinks:ef(scaled_sign)")["final"] < 1e-6
