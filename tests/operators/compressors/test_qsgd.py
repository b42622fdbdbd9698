"""QSGD against a scalar oracle, its exact mean and variance, its message lengths, and payloads that nobody sent."""

import math
import struct

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from operators import QSGD, Key, Message
from operators.random import words_from

from ..oracles import assert_equals_oracle, refuses_payloads

CODES = ("dense", "sparse", "flag", "fixed")
ALL_CODES = [QSGD(levels=s, norm=n, code=c) for s in (1, 5) for n in ("l2", "max") for c in CODES]
INSTANCES = [*QSGD.examples(), *ALL_CODES]


def omega(n):
    text = "0"
    while n > 1:
        text = f"{n:b}" + text
        n = len(f"{n:b}") - 1
    return text


def oracle(operator, x, words):
    """(bits as text, decoded values) in plain Python, bucket by bucket."""
    text, fields, values, s = "", "", [], operator.levels
    size = operator.bucket or len(x)
    for start in range(0, len(x), size):
        part = [float(v) for v in x[start : start + size]]
        norm = max(map(abs, part)) if operator.norm == "max" else math.sqrt(math.fsum(v * v for v in part))
        norm32 = np.float32(norm)
        norm32 = float(norm32 if float(norm32) >= norm else np.nextafter(norm32, np.float32(np.inf)))
        text += "".join(f"{b:08b}" for b in struct.pack(">f", norm32))
        level, sign = [0] * len(part), ["1" if v < 0 else "0" for v in part]
        if norm32:
            level = [
                math.floor(s * abs(v) / norm32 + int(w) / 2**32) for v, w in zip(part, words[start:], strict=False)
            ]
            if operator.code == "dense":
                text += "".join(omega(n + 1) + (g if n else "") for n, g in zip(level, sign, strict=True))
            elif operator.code == "flag":
                text += "".join(f"1{g}{omega(n)}" if n else "0" for n, g in zip(level, sign, strict=True))
            elif operator.code == "sparse":
                last = -1
                for i, n in enumerate(level):
                    if n:
                        text, last = text + omega(i - last) + sign[i] + omega(n), i
                text += omega(len(part) - last)
        if operator.code == "fixed":
            fields += "".join(
                f"{s - n if g == '1' else s + n:0{(2 * s).bit_length()}b}" for n, g in zip(level, sign, strict=True)
            )
        values += [math.copysign(np.float32(norm32 / s * n), v) if n else 0.0 for n, v in zip(level, part, strict=True)]
    return text + fields, values


@pytest.mark.every(5)
@pytest.mark.parametrize("operator", INSTANCES, ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, d, key, words_of):
    words = words_of(key, d)
    assert_equals_oracle(operator, vectors, key, lambda x: oracle(operator, x, words))


@pytest.mark.every(4)
@pytest.mark.parametrize("operator", INSTANCES, ids=repr)
@pytest.mark.parametrize("name", ["flat", "gauss", "two-valued"])
def test_decoded_mean_equals_input_and_variance_and_bits_stay_within_the_claims(operator, name):
    d, steps = 64, 512
    x = {
        "flat": np.ones(d),
        "gauss": np.random.default_rng(1).standard_normal(d),
        "two-valued": np.r_[1.0, np.full(d - 1, 1 / (operator.levels + math.sqrt(operator.levels**2 + d - 1)))],
    }[name].astype(np.float32)
    total, square, bits = np.zeros(d), 0.0, 0
    for j in range(steps):  # every coordinate sees each quantile of its word once
        word = (2 * j + 1) * 2**32 // (2 * steps)
        with words_from(lambda key, n, start, w=word: np.full(n, w, np.uint32)):
            message = operator.encode(x, key=Key(0))
        y = operator.decode(message, d=d).numpy().astype(float)
        total += y
        square += ((y - x) ** 2).sum()
        bits += message.bits
    step = np.linalg.norm(x.astype(float)) / operator.levels
    assert np.abs(total / steps - x).max() <= step * (1 / steps + 1e-6)
    variance = square / steps / (x.astype(float) @ x)
    assert variance <= operator.claim(d).omega + d * step**2 / steps / (x.astype(float) @ x) + 1e-6
    assert variance == pytest.approx(operator.claim_at(x).omega, abs=2 * d * step**2 / steps / (x.astype(float) @ x))
    if operator.code != "sparse":  # separable: the sweep gives the exact mean length up to its step
        assert bits / steps <= operator.bits(d).expected_upper + 20 * d / steps


@pytest.mark.parametrize(("s", "d"), [(1, 64), (2, 64), (4, 64), (1, 1000), (4, 4096)])
def test_flat_vector_reaches_the_claim_while_levels_are_few(s, d):
    assert QSGD(levels=s).claim_at(np.ones(d)).omega == pytest.approx(QSGD(levels=s).claim(d).omega, rel=1e-12)


@pytest.mark.parametrize(("s", "d"), [(1, 2), (1, 64), (4, 64), (16, 1000)])
def test_two_valued_vector_reaches_the_claim_of_the_largest_magnitude(s, d):
    x = np.full(d, 1 / (s + math.sqrt(s * s + d - 1)))
    x[0] = 1
    operator = QSGD(levels=s, norm="max")
    assert operator.claim_at(x).omega == pytest.approx(operator.claim(d).omega, rel=1e-12)


@pytest.mark.parametrize(
    ("s", "d", "value"),
    [
        (16, 64, 0.0625),  # d/(4 s^2): 240 = s^2 - d/4 is even
        (1, 2, math.sqrt(2) - 1),
        (1, 1, 0.0),
        (300, 1, 0.0),
        (1, 3, math.sqrt(3) - 1),
        (1, 4, 1.0),
        (2, 2, 1 / 8 - (1 - math.sqrt(18) / 4) ** 2),
        (2, 5, 5 / 16 - (1 - math.sqrt(13) / 4) ** 2),
    ],
)
def test_claim_of_many_levels_has_the_value_by_hand(s, d, value):
    assert QSGD(levels=s).claim(d).omega == pytest.approx(value, rel=1e-13)


@given(s=st.integers(1, 200), d=st.integers(1, 40))
@example(s=32768, d=2)
@example(s=32768, d=3)
@example(s=32767, d=10**5)
def test_claim_is_reached_at_the_witness(s, d):
    operator = QSGD(levels=s)
    assert operator.claim_at(operator.witness(d)).omega == pytest.approx(operator.claim(d).omega, rel=1e-6, abs=1e-30)


@given(s=st.integers(1, 12), x=st.lists(st.floats(0, 1), min_size=1, max_size=8).filter(any))
@example(s=3, x=[3.8e-279])
@example(s=3, x=[1e-320, 5e-324])
def test_no_vector_exceeds_the_claim(s, x):
    operator = QSGD(levels=s)
    assert operator.claim_at(np.array(x)).omega <= operator.claim(len(x)).omega + 1e-12


@pytest.mark.parametrize("d", [1, 2, 7, 100])
@pytest.mark.parametrize("s", [1, 2, 5])
def test_claim_of_the_largest_magnitude_is_reached_at_the_witness_and_nowhere_exceeded(s, d):
    operator, draw = QSGD(s, norm="max"), np.random.default_rng(s)
    omega = operator.claim(d).omega

    def variance(x):
        unit = np.max(np.abs(x)) / s
        above = np.abs(x) / unit % 1
        return float((above * (1 - above)).sum() * unit**2 / (x @ x))

    assert variance(operator.witness(d)) == pytest.approx(omega, abs=1e-14)
    assert max(variance(np.append(1.0, draw.random(d - 1) ** 3)) for _ in range(1000)) <= omega + 1e-14


@pytest.mark.parametrize("s", [1, 2, 3, 5])
def test_a_fine_grid_of_directions_finds_the_claim_in_the_plane(s):
    angles = np.linspace(0, np.pi / 4, 20_001)
    best = max(QSGD(levels=s).claim_at(np.array([np.cos(a), np.sin(a)])).omega for a in angles)
    assert best == pytest.approx(QSGD(levels=s).claim(2).omega, abs=1e-6)


@pytest.mark.parametrize(("d", "published"), [(10**4, 1171), (10**6, 15051)])
def test_sparse_stream_of_one_level_has_the_known_length(d, published):
    x = np.random.default_rng(0).standard_normal(d).astype(np.float32)
    bits = np.mean([QSGD(levels=1).encode(x, key=Key(0, step=t)).bits for t in range(4)])
    assert bits == pytest.approx(published, rel=0.06)
    assert bits <= QSGD(levels=1).bits(d).expected_upper


@pytest.mark.parametrize(("code", "per_coordinate"), [("dense", 4), ("flag", 3)])
def test_all_ones_at_sqrt_d_levels_costs_the_known_bits(code, per_coordinate, key):
    assert QSGD(levels=64, code=code).encode(np.ones(4096), key=key).bits == 32 + per_coordinate * 4096


def test_norm_is_sent_rounded_up(key):
    x = np.random.default_rng(0).standard_normal((200, 9)).astype(np.float32)
    for row in x:
        sent = QSGD().encode(row, key=key).payload[:4].numpy().view(">f4")[0]
        assert 0 <= float(sent) - np.linalg.norm(row.astype(float)) < 2.0**-21


def test_no_level_exceeds_s():
    x = np.array([1 + 2**-23], np.float32)
    for j in range(50):
        v = np.float32(x[0] * (1 + j * 2**-20))
        with words_from(lambda key, n, start: np.full(n, 2**32 - 1, np.uint32)):
            assert QSGD(levels=7)(np.array([v]), key=Key(0))[0] == v


def test_norm_beyond_binary32_is_an_error(key):
    with pytest.raises(ValueError, match="rescale"):
        QSGD().encode(np.full(4, 3e38, np.float32), key=key)


def payload(head, tail):
    text = "".join(f"{b:08b}" for b in struct.pack(">f", head)) + tail
    raw = int(text + "0" * (-len(text) % 8), 2).to_bytes((len(text) + 7) // 8, "big")
    return Message(torch.tensor(list(raw), dtype=torch.uint8), len(text))


@pytest.mark.parametrize(
    ("code", "head", "tail"),
    [
        ("dense", 1.0, omega(4) + "0" + "0"),  # level 3 of 2
        ("dense", 1.0, "0"),  # a coordinate is missing
        ("dense", 1.0, "0000"),  # bits are left over
        ("dense", 0.0, "0"),  # zero norm and more
        ("dense", math.nan, "00"),
        ("dense", -1.0, "00"),
        ("dense", -0.0, ""),
        ("flag", 1.0, "10" + omega(3) + "0"),
        ("flag", 1.0, "10"),
        ("sparse", 1.0, omega(4)),  # beyond the end
        ("sparse", 1.0, omega(1) + "0" + omega(3) + omega(2)),
        ("sparse", 1.0, omega(1) + "0" + omega(1)),  # no end
        ("sparse", 1.0, "1" * 60),
        ("sparse", 1.0, ""),
        ("fixed", 1.0, "101010"),  # level 3 of 2 is the field 5
        ("fixed", 0.0, "011010"),
        ("fixed", math.inf, "010010"),
        ("fixed", -0.0, "010010"),
        ("fixed", 1.0, "010"),
        ("fixed", 1.0, "010010010"),
    ],
)
def test_payload_that_nobody_sends_is_refused(code, head, tail):
    refuses_payloads(QSGD(levels=2, code=code), 2, payload(head, tail))


@pytest.mark.parametrize(
    "arguments", [{"levels": 0}, {"levels": 40000}, {"norm": "l1"}, {"bucket": 0}, {"code": "huffman"}]
)
def test_meaningless_parameters_are_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        QSGD(**arguments)
