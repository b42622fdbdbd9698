"""Top-k against a scalar oracle, its exact error, and payloads that nobody sent."""

import struct

import numpy as np
import pytest
import torch

from operators import Message, TopK

from ..oracles import assert_equals_oracle, refuses_payloads


def oracle(x, k):
    """(bits as text, decoded values): sort by magnitude, then by index; Rice-code the gaps."""
    keep = sorted(sorted(range(len(x)), key=lambda i: (-abs(x[i]), i))[:k])
    gaps = [b - a - 1 for a, b in zip([-1, *keep], keep, strict=False)]
    codes = ["".join("1" * (g >> r) + "0" + (f"{g % 2**r:0{r}b}" if r else "") for g in gaps) for r in range(13)]
    best = min(range(13), key=lambda r: (len(codes[r]), r))
    support = f"{best:05b}" + codes[best] if k < len(x) else ""
    values = "".join(f"{b:08b}" for i in keep for b in struct.pack(">f", x[i]))
    kept = set(keep)
    return support + values, [float(v) if i in kept else 0.0 for i, v in enumerate(x)]


@pytest.mark.parametrize("operator", TopK.examples(), ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, d, key):
    k = round(d * (1 - operator.claim(d).alpha))
    assert_equals_oracle(operator, vectors, key, lambda x: oracle(x, k))


def test_bits_of_the_worst_support_reach_the_declared_worst_case(key):
    x = np.zeros(1000, np.float32)
    x[-1] = 1
    assert TopK(k=1).encode(x, key=key).bits == TopK(k=1).bits(1000).worst_case


def test_error_is_the_tail_energy_and_equal_magnitudes_reach_the_claim(vectors, d, key):
    operator = TopK(fraction=0.3)
    for x in vectors:
        if not x.any():
            continue
        wide = x.astype(float)
        error = ((operator(x, key=key).astype(float) - wide) ** 2).sum() / (wide @ wide)
        assert error == pytest.approx(operator.claim_at(x).alpha, abs=1e-12)
        assert error <= operator.claim(d).alpha + 1e-12
    assert operator.claim_at(np.ones(d)).alpha == pytest.approx(operator.claim(d).alpha)


def test_fraction_means_its_decimal_value():
    assert TopK(fraction=0.07).claim(100).alpha == 1 - 7 / 100  # 0.07 * 100 > 7 in binary


@pytest.mark.parametrize("arguments", [{}, {"fraction": 0.1, "k": 1}, {"fraction": 0}, {"fraction": 1.5}, {"k": 0}])
def test_meaningless_parameters_are_refused(arguments):
    with pytest.raises(ValueError, match=r"fraction|k must"):
        TopK(**arguments)


def test_more_coordinates_than_there_are_is_an_error(key):
    with pytest.raises(ValueError, match="k = 12"):
        TopK(k=12).encode(np.ones(10, np.float32), key=key)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00000" + "10" + "0" * 31,  # a value cut short
        "00000" + "10" + "0" * 33,  # a bit left over
        "00000" + "1" * 8 + "0" + "0" * 32,  # position 8 of 8
        "00001" + "01" + "0" * 32,  # remainder coded where r = 0 is shorter
        "00000" + "10" + "01111111100000000000000000000001",  # NaN
    ],
)
def test_payload_that_nobody_sends_is_refused(text):
    raw = int((text + "0" * (-len(text) % 8)) or "0", 2).to_bytes((len(text) + 7) // 8, "big")
    refuses_payloads(TopK(k=1), 8, Message(torch.tensor(list(raw), dtype=torch.uint8), len(text)))
