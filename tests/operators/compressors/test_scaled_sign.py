"""Scaled sign against a scalar oracle, its exact error, and payloads that nobody sent."""

import math
import struct

import numpy as np
import pytest
import torch

from operators import Message, ScaledSign

from ..oracles import assert_equals_oracle, refuses_payloads


def oracle(x):
    """(bits as text, decoded values) in plain Python."""
    mean = math.fsum(abs(float(v)) for v in x) / len(x)
    mean32 = struct.unpack(">f", struct.pack(">f", mean))[0]
    signs = [bool(v < 0) for v in x]
    text = "".join(f"{b:08b}" for b in struct.pack(">f", mean)) + "".join("01"[s] for s in signs)
    return text, [-mean32 if s else mean32 for s in signs]


def test_payload_and_values_equal_the_oracle(vectors, d, key):
    operator = ScaledSign()
    assert_equals_oracle(operator, vectors, key, oracle)
    assert operator.bits(d).exact == d + 32


def test_error_is_the_energy_minus_the_squared_mean(vectors, d, key):
    for x in vectors:
        if not x.any():
            continue
        wide = x.astype(float)
        error = ((ScaledSign()(x, key=key).astype(float) - wide) ** 2).sum() / (wide @ wide)
        assert error == pytest.approx(ScaledSign().claim_at(x).alpha, abs=1e-6)
        assert error <= ScaledSign().claim(d).alpha + 1e-6


def test_one_hot_reaches_the_claim():
    x = np.zeros(64, np.float32)
    x[5] = -2
    assert ScaledSign().claim_at(x).alpha == ScaledSign().claim(64).alpha == 1 - 1 / 64


def test_negligible_input_sends_zero(key):
    assert not ScaledSign()(np.full(9, -(2.0**-127), np.float32), key=key).any()


@pytest.mark.parametrize(
    ("head", "rest", "bits"),
    [
        (np.nan, [0], 40),
        (np.inf, [0], 40),
        (-1.0, [0], 40),
        (-0.0, [0], 40),
        (0.0, [1], 40),
        (1.0, [0], 39),
        (1.0, [0, 0], 48),
        (1.0, [], 32),
    ],
)
def test_payload_that_nobody_sends_is_refused(head, rest, bits):
    payload = torch.tensor([*struct.pack(">f", head), *rest], dtype=torch.uint8)
    refuses_payloads(ScaledSign(), 8, Message(payload, bits))
