"""What the kit says about other projects' operators, brought as plain functions."""

import math

import pytest

from bounds.claims import Unbiased
from operators.laws import Budget, Outcome, check

from . import outside

BUDGET = Budget(
    draws=300, lengths=(65,), drawn_sizes=(1, 2, 8, 64, 65), sizes=(1, 2, 9, 65), drawn=2, large=2050
).untimed()


def dithering(d: int) -> Unbiased:
    return Unbiased(math.sqrt(d) / 16 - 1 if d >= 1024 else d / 1024)


def ternary(d: int) -> Unbiased:
    return Unbiased(0.5 * (math.sqrt(d) - 1))


def half(d: int) -> Unbiased:
    return Unbiased(d / max(1, d // 2) - 1)


ACCUSED = {
    "drive": (outside.drive, Unbiased(omega=1.0), "torch"),
    "terngrad-clipped": (outside.terngrad_clipped, ternary, "torch"),
    "random-k-with-replacement": (outside.random_k_with_replacement, half, "numpy"),
    "shrinking-quantiser": (outside.shrinking_quantiser, dithering, "numpy"),
    "induced-with-one-key": (outside.induced_with_one_key, Unbiased(omega=1.0), "torch"),
}


SLOWLY_ACCUSED = ("drive", "random-k-with-replacement")


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.thorough] * (n in SLOWLY_ACCUSED)) for n in ACCUSED]
)
def test_published_operator_with_its_fault_is_reported_biased(name):
    function, claim, array = ACCUSED[name]

    report = check(function, claim=claim, array=array, budget=BUDGET, seed=5, laws=["unbiasedness"])

    verdict = report["unbiasedness"]
    assert verdict.outcome is Outcome.FAIL, str(report)
    assert "E C(x) = x rejected" in verdict.text
    assert verdict.x is not None
    assert "check(" in report.reproduce


def test_a_constant_that_holds_for_long_vectors_only_is_refuted_before_the_mean():
    claim = Unbiased(omega=math.pi / 2 - 1)  # the limit of DRIVE's error for long vectors; at d = 2 it reaches 1

    report = check(outside.drive, claim=claim, array="torch", budget=BUDGET, seed=5, laws=["unbiasedness"])

    assert report["unbiasedness"].outcome is Outcome.FAIL
    assert report["unbiasedness"].text.startswith("E|C(x) - x|^2 <= 0.570796 |x|^2 rejected")


HONEST = {
    "terngrad": (outside.terngrad, ternary, "torch"),
    "quantiser": (outside.quantiser, dithering, "numpy"),
    "induced": (outside.induced, half, "torch"),
}


@pytest.mark.parametrize(
    "name", [n if n == "quantiser" else pytest.param(n, marks=pytest.mark.thorough) for n in HONEST]
)
def test_same_operator_without_the_fault_is_not_accused(name):
    function, claim, array = HONEST[name]

    report = check(function, claim=claim, array=array, budget=BUDGET, seed=6)

    assert report.ok, str(report)
    for law in ("corruption", "key-separation", "input-contract", "random-state", "declared-size"):
        assert report[law].outcome is Outcome.NOT_APPLICABLE


def test_operator_that_hands_its_input_over_beside_the_payload_is_convicted():
    report = check(outside.BilledNatural(), claim=Unbiased(omega=0.125), budget=Budget.quick().untimed(), seed=7)

    assert report["payload-alone"].outcome is Outcome.FAIL
    assert "payload" in report["payload-alone"].text


@pytest.mark.thorough
def test_drive_is_invisible_along_the_vector_itself_yet_convicted_by_a_coordinate():
    """<x_hat, x> = |x|^2 on every draw, so a test along x alone can never see the bias."""
    import torch

    x = torch.tensor([1.0, 0.5])
    for _ in range(20):
        assert float(outside.drive(x) @ x) == pytest.approx(float(x @ x), rel=1e-6)

    report = check(outside.drive, claim=Unbiased(omega=math.pi / 2 - 1), budget=BUDGET, seed=8, laws=["unbiasedness"])

    assert not report.ok
