"""The measured gap: exact for a deterministic operator, positive for unbiased ones, reproducible."""

import math

import numpy as np
import pytest
import torch

import ratedist as rd
from operators import QSGD

X = np.random.default_rng(0).standard_normal(20_000)


def test_gap_of_a_deterministic_operator_by_hand():
    x = np.array([4.0, 3.0, 0.0, 0.0])
    found = rd.gap("topk:k=1", x)
    message_bits = found.statement.at["bits"] * 4
    assert found.statement.at["nmse"] == pytest.approx(9 / 25)
    assert found == pytest.approx(message_bits / 4 - math.log2(25 / 9) / 2)
    assert found.lo == found.hi == found
    assert not found.certified


def test_unbiased_operators_never_beat_the_limit_on_gaussian_vectors():
    for specification in ("tcdq:omega=1", "qsgd:4", "natural"):
        assert rd.gap(specification, X) > 0


def test_an_operator_without_a_claim_is_held_against_the_limit_at_its_best_multiple():
    """EDEN is unbiased but for its Hadamard rotation and claims nothing: 1 bit is .275 from the limit, not .604."""
    for bits, fair in ((1, 0.275), (2, 0.459), (4, 0.648)):
        found = rd.measure(f"eden:{bits}", X)
        assert found.claim.startswith("none")
        assert found.gap == pytest.approx(fair, abs=0.01)
        unbiased = found.bits - math.log2(1 + 1 / found.nmse) / 2
        assert found.gap == pytest.approx(unbiased, abs=0.01)
        assert found.scale == pytest.approx(1 / (1 + found.nmse), rel=0.02)
        assert "nothing is claimed" in found.limit_of
        assert f"times {found.scale:.4g}" in rd.gap(f"eden:{bits}", X).explain()


def test_best_multiple_of_an_operator_without_a_claim_by_hand():
    """C(x) = x/2 in disguise: the receiver may double it, so there is no error that bits would have to pay for."""
    from bounds.claims import NoClaim
    from operators import FloatCast

    class Halved(FloatCast):
        def claim(self, d):
            return NoClaim("it halves")

        def decode(self, message, *, d, key):
            return super().decode(message, d=d, key=key) / 2

    found = rd.measure(Halved(format="fp16"), X)
    assert found.nmse == pytest.approx(1 / 4, rel=1e-3)
    assert found.scale == pytest.approx(2, rel=1e-3)
    assert found.limit_nmse < 1e-4


def test_the_limit_of_a_claim_is_that_of_its_class_at_the_measured_error():
    for specification, kind in (("qsgd:4", "unbiased"), ("topk:0.1", "contractive")):
        found = rd.measure(specification, X)
        assert (found.scale, found.limit_nmse) == (1, found.nmse)
        assert found.limit_of.startswith(f"{kind}, at nmse")


def test_gap_is_reproducible_and_takes_tensors_and_instances():
    assert rd.gap("qsgd:4", X, seed=3) == rd.gap(QSGD(levels=4), torch.from_numpy(X), seed=3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rd.gap("identity", X), "makes no error"),
        (lambda: rd.gap("qsgd:4", np.zeros(3)), "zeros only"),
        (lambda: rd.gap("qsgd:4", [1.0, math.nan]), "finite in binary32; got nan at index 1: correct or clip"),
        (lambda: rd.gap("qsgd:4", "abc"), "float array"),
        (lambda: rd.gap("warp", X), "unknown operator 'warp'"),
        (lambda: rd.gap("qsgd:4", X, draws=0), "1 <= draws"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", [1e-44, 3e-42, 1e-39, 2.0**101])
@pytest.mark.parametrize("operator", ["qsgd:4", "terngrad", "topk:0.1", "scaled_sign", "eden:1", "signsgd"])
def test_a_vector_outside_the_range_of_claims_has_neither_claim_nor_gap(operator, scale):
    x = np.clip(X, -1, 1).astype(np.float64) * scale
    with pytest.raises(
        ValueError, match=r"no gap, for no claim holds for it: claims need max\|x\| [<>]= 2\^-?1"
    ) as caught:
        rd.gap(operator, x)
    assert "\n" not in str(caught.value)
    found = rd.measure(operator, x)
    assert (found.limit, found.gap, found.gap_range) == (None, None, None)
    assert found.claim.startswith("none: claims need max|x|")


def test_every_form_of_a_vector_is_measured_the_same():
    plain, tensor = X[:60].astype(np.float64), torch.from_numpy(X[:60].copy()).float()
    negative = torch.complex(torch.zeros(60), -tensor).conj().imag
    forms = (X[:60].astype(np.float32), plain.reshape(6, 10).tolist(), plain.astype(">f4"), negative, X[59::-1][::-1])
    expected = rd.measure("qsgd:4", plain)
    assert all(rd.measure("qsgd:4", form) == expected for form in forms)
    for refused in (np.ma.masked_array(X), [[1.0], [1.0, 2.0]], ["1", "2"], [True], torch.ones(3) * 1j, None):
        for use in (rd.measure, rd.gap, lambda op, x: rd.compare([op], x, bits=2)):
            with pytest.raises(ValueError, match=r"^x must"):
                use("qsgd:4", refused)


def test_an_exact_multiple_has_no_error_that_bits_would_pay_for():
    """x/2 without a claim: its best multiple is x, so there is neither a limit nor a gap (nor a fault of ours)."""
    found = rd.measure(rd.own(lambda x: x / 2, bits=8), X)
    assert (found.nmse, found.scale, found.limit, found.gap) == (0.25, 2.0, None, None)
    with pytest.raises(ValueError, match="makes no error on x, so it has no gap"):
        rd.gap(rd.own(lambda x: x / 2, bits=8, name="half"), X)
