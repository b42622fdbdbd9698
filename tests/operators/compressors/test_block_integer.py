"""Block-wise integers against a scalar oracle, sharp constants, no wrapping level, and damage."""

import math

import numpy as np
import pytest

from operators import BlockInteger, Key
from operators.random import words_from

from ..oracles import assert_equals_oracle, refuses_payloads

INSTANCES = [*BlockInteger.examples(), BlockInteger(4, 1), BlockInteger(8, 7, "stochastic")]


def oracle(x, operator, words, float_field):
    """(bits as text, decoded values) in plain Python."""
    head, body, decoded = "", "", []
    most = 2 ** (operator.width - 1) - 1
    for start in range(0, len(x), operator.block):
        part = [float(v) for v in x[start : start + operator.block]]
        m = max(map(abs, part))
        head += float_field(m)
        for v, word in zip(part, words[start:], strict=False):
            u = int(word) / 2**32 if operator.rounding == "stochastic" else 0.5
            level = math.floor(most * abs(v) / m + u) if m else 0
            level = -level if v < 0 else level
            body += f"{level + most:0{operator.width}b}"
            decoded.append(float(np.float32(m / most * level)))
    return head + body, decoded


@pytest.mark.every(4)
@pytest.mark.parametrize("operator", INSTANCES, ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, d, key, float_field, words_of):
    words = words_of(key, d)
    assert_equals_oracle(operator, vectors, key, lambda x: oracle(x, operator, words, float_field))


@pytest.mark.parametrize("width", [4, 8])
def test_decoded_mean_equals_input_and_variance_is_the_exact_one(width):
    operator = BlockInteger(width, 5, "stochastic")
    x = np.array([3, -1, 0.25, 0, -0.0, 2, -2.5, 0.001], np.float32).astype(float)
    total, square, steps = np.zeros(8), 0.0, 1024
    for j in range(steps):  # every coordinate sees each quantile of its word once
        with words_from(lambda key, n, start, w=(2 * j + 1) * 2**32 // (2 * steps): np.full(n, w, np.uint32)):
            y = operator(x, key=Key(0))
        total += y
        square += ((y - x) ** 2).sum()
    assert np.abs(total / steps - x).max() <= 3 / operator.most / steps
    assert square / steps / (x @ x) == pytest.approx(operator.claim_at(x).omega, rel=0.02)


@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize(("d", "block"), [(1, 64), (2, 64), (64, 64), (1000, 64), (1000, 1000), (10, 1)])
def test_witness_reaches_the_claim(rounding, width, d, block):
    operator = BlockInteger(width, block, rounding)
    claim, at = operator.claim(d), operator.claim_at(operator.witness(d))
    if rounding == "nearest":
        assert at.alpha == pytest.approx(claim.alpha, rel=1e-9, abs=1e-12)
    else:
        assert at.omega == pytest.approx(claim.omega, rel=1e-9, abs=1e-12)


def test_published_constants():
    assert BlockInteger(8, 64).claim(64).alpha == pytest.approx(9.8e-4, rel=0.01)
    assert BlockInteger(4, 64).claim(64).alpha == pytest.approx(0.2432, abs=1e-4)


@pytest.mark.parametrize("width", [4, 8])
def test_largest_magnitude_is_exact_and_never_wraps(width, key):
    """All words at their largest, magnitudes one unit apart: no field exceeds 2 L."""
    x = np.array([1, -1, 1 - 2.0**-24, 2.0**-24 - 1], np.float32)
    for scale in np.float32(1) + np.arange(200, dtype=np.float32) * np.float32(2.0**-20):
        with words_from(lambda key, n, start: np.full(n, 2**32 - 1, np.uint32)):
            message = BlockInteger(width, 64, "stochastic").encode(x * scale, key=key)
        fields, most = message.payload[4:].numpy(), 2 ** (width - 1) - 1
        levels = (fields if width == 8 else np.r_[fields >> 4, fields & 15]).astype(int) - most
        assert sorted(levels.tolist()) == [-most, -most, most, most]
        assert np.abs(BlockInteger(width)(x[:2] * scale, key=key)).tolist() == [scale, scale]


def test_subnormal_block_is_kept(key):
    x = np.array([1.0, 0, 2.0**-140, -(2.0**-141)], np.float32)
    assert BlockInteger(8, 2)(x, key=key)[:3].tolist() == x[:3].tolist()


@pytest.mark.parametrize("arguments", [{"width": 7}, {"block": 0}, {"rounding": "up"}])
def test_meaningless_parameters_are_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        BlockInteger(**arguments)


@pytest.mark.parametrize(
    ("scale", "tail"),
    [
        (1.0, "1110"),  # cut off
        (1.0, "1110" + "0111" + "0"),
        (1.0, "1110" + "1111"),  # 8
        (1.0, "1101" + "0111"),  # the largest is missing
        (0.0, "1110" + "0111"),
        (-1.0, "1110" + "0111"),
        (-0.0, "0111" + "0111"),
        (math.inf, "1110" + "0111"),
        (math.nan, "1110" + "0111"),
    ],
)
def test_payload_that_nobody_sends_is_refused(scale, tail, message_of, float_field):
    refuses_payloads(BlockInteger(4), 2, message_of(float_field(scale) + tail))
