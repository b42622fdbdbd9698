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
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
