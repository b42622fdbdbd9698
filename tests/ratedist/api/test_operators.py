"""The catalogue, the measured gap and the conformance check."""

import math

import numpy as np
import pytest
import torch

import ratedist as rd
from operators import QSGD, all_operators

X = np.random.default_rng(0).standard_normal(20_000)


def test_the_catalogue_holds_every_operator():
    found = rd.operators(d=1000)
    assert [entry.operator.partition(":")[0] for entry in found.entries] == list(all_operators())
    by_name = {entry.operator.partition(":")[0]: entry for entry in found.entries}
    assert by_name["identity"].bits == 32_000
    assert by_name["identity"].limit == math.inf
    assert by_name["signsgd"].limit is None
    assert by_name["randomk"].limit == pytest.approx(rd.bits_lower_bound(d=1000, omega=9))
    assert "tcdq" in repr(found)
    assert "<table>" in found._repr_html_()


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


def test_gap_is_reproducible_and_takes_tensors_and_instances():
    assert rd.gap("qsgd:4", X, seed=3) == rd.gap(QSGD(levels=4), torch.from_numpy(X), seed=3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rd.gap("identity", X), "makes no error"),
        (lambda: rd.gap("qsgd:4", np.zeros(3)), "zeros only"),
        (lambda: rd.gap("qsgd:4", [1.0, math.nan]), "finite in binary32; got nan at index 1: give"),
        (lambda: rd.gap("qsgd:4", "abc"), "float array"),
        (lambda: rd.gap("warp", X), "unknown operator 'warp'"),
        (lambda: rd.gap("qsgd:4", X, draws=0), "1 <= draws"),
        (lambda: rd.operators(d=0), "d must satisfy"),
        (lambda: rd.operators(d=1e12), "d <= 1000000000"),
        (lambda: rd.check("warp"), "unknown operator"),
        (lambda: rd.check("qsgd:4", budget="endless"), "budget must be one of quick, standard, deep"),
        (lambda: rd.check(3), "expected an operator"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_check_finds_a_liar():
    from bounds import Unbiased

    assert not rd.check(lambda x: x * 0.5, claim=Unbiased(0.1), budget="quick", seed=0).ok
