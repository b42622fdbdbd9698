"""Casts against torch and a scalar oracle with exact fractions, sharp constants, the ends of the range, damage."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from operators import FloatCast, Key
from operators.random import words_from

from ..oracles import assert_equals_oracle, refuses_payloads
from ..plain_philox import bits32_numpy

TORCH = {"fp16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
SHAPE = {"fp16": (16, 11, -14, 14), "bf16": (16, 8, -126, 126), "e4m3": (8, 4, -6, 7), "e5m2": (8, 3, -14, 14)}
INSTANCES = [*FloatCast.examples(), FloatCast("bf16", "stochastic")]


def oracle(x, operator, words):
    """(bits as text, decoded values) in fractions."""
    width, p, lowest, highest = SHAPE[operator.format]
    x = [Fraction(float(v)) for v in x]
    if not any(x):
        return "0" * (16 + width * len(x)), [0.0] * len(x)
    exponent = math.frexp(float(max(map(abs, x))))[1] - 1
    text, decoded = f"{exponent + 150:016b}", []
    for v, word in zip(x, words, strict=True):
        scaled = abs(v) * Fraction(2) ** (highest - exponent)
        binade = max(lowest, math.frexp(float(scaled))[1] - 1) if v else lowest
        spacing = Fraction(2) ** (binade + 1 - p)
        n = math.floor(scaled / spacing)
        rest = scaled / spacing - n
        if operator.rounding == "stochastic":
            n += Fraction(int(word), 2**32) < Fraction(math.floor(rest * 2**32), 2**32)
        else:
            n = round(scaled / spacing)  # halves to even
        code = n + (binade - lowest) * 2 ** (p - 1)
        text += f"{int(v < 0 and n > 0)}{code:0{width - 1}b}"
        magnitude = float(np.float32(float(n * spacing * Fraction(2) ** (exponent - highest))))
        decoded.append(-magnitude if v < 0 else magnitude)
    return text, decoded


@pytest.mark.every(3)
@pytest.mark.parametrize("operator", INSTANCES, ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, key):
    vectors = [x[:300] for x in vectors]
    words = bits32_numpy(key, len(vectors[0]))
    tiny = np.where(np.arange(len(words)) % 2, 2.0**-149, -(2.0**-127)).astype(np.float32)
    assert_equals_oracle(operator, (*vectors, tiny), key, lambda x: oracle(x, operator, words))


@pytest.mark.parametrize("format", TORCH)
def test_in_the_format_s_own_range_it_is_the_cast_of_torch(format, key):
    rng = np.random.default_rng(0)
    x = torch.from_numpy((rng.standard_normal(5000) * np.exp2(rng.uniform(-20, 0, 5000))).astype(np.float32))
    highest = SHAPE[format][3]
    x = x.clamp(-1.9, 1.9) * 2.0 ** min(highest, 20)
    x[0] = 2.0 ** min(highest, 20)
    if format == "bf16":
        assert torch.equal(FloatCast(format)(x, key=key), x.to(TORCH[format]).float())
    else:
        scaled = x * 2.0 ** (highest - min(highest, 20))
        assert torch.equal(FloatCast(format)(scaled, key=key), scaled.to(TORCH[format]).float())


@pytest.mark.parametrize("format", ["fp16", "bf16", "e4m3", "e5m2"])
def test_decoded_mean_equals_input_and_variance_is_the_exact_one(format):
    x = np.array([3, -1, 0.3, 0, -0.0, 2.1, -2.5, 1e-6], np.float32).astype(float)
    operator, total, square, steps = FloatCast(format, "stochastic"), np.zeros(8), 0.0, 1024
    for j in range(steps):  # every coordinate sees each quantile of its word once
        with words_from(lambda key, n, start, w=(2 * j + 1) * 2**32 // (2 * steps): np.full(n, w, np.uint32)):
            y = operator(x, key=Key(0))
        total += y
        square += ((y - x) ** 2).sum()
    spacing = np.maximum(np.abs(x) * 2.0 ** (1 - SHAPE[format][1]), 2.0**-14)
    assert (np.abs(total / steps - x) <= spacing / steps + 1e-9).all()
    assert square / steps / (x @ x) == pytest.approx(operator.claim_at(x).omega, rel=0.02)


@pytest.mark.parametrize("operator", INSTANCES, ids=repr)
@pytest.mark.parametrize("d", [1, 2, 1000, 10**6])
def test_witness_reaches_the_claim(operator, d):
    claim, at = operator.claim(d), operator.claim_at(operator.witness(d))
    constant = "alpha" if operator.rounding == "nearest" else "omega"
    assert getattr(at, constant) == pytest.approx(getattr(claim, constant), rel=1e-9)


@pytest.mark.parametrize(
    ("format", "nearest", "stochastic"),
    [
        ("fp16", 2.38e-7, 2.38e-7),
        ("bf16", 1.514e-5, 1.514e-5),
        ("e4m3", 3.46e-3, 3.47e-3),
        ("e5m2", 1.23e-2, 1 / 80),
    ],
)
def test_published_constants(format, nearest, stochastic):
    assert FloatCast(format).claim(1).alpha == pytest.approx(nearest, rel=0.004)
    assert FloatCast(format, "stochastic").claim(1).omega == pytest.approx(stochastic, rel=0.004)


@pytest.mark.parametrize("operator", INSTANCES, ids=repr)
def test_the_largest_and_smallest_numbers_survive(operator, key):
    for x in (2.0**127, -(2.0**127), 2.0**-149, 3 * 2.0**-149):
        assert operator(np.array([x], np.float32), key=key)[0] == x
    with pytest.raises(ValueError, match=r"2\^127; got 1.8"):
        operator.encode(np.array([1.1 * 2.0**127], np.float32), key=key)


@pytest.mark.parametrize("arguments", [{"format": "e3m4"}, {"rounding": "up"}])
def test_meaningless_parameters_are_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        FloatCast(**arguments)


ONE = "0" + "1110" + "000"  # 2^7, the scaled 1


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        (150, ONE),  # cut off
        (150, ONE + "0" * 9),
        (150, "0" + "1101" + "111" + "0" * 8),  # the largest is too small
        (150, "0" + "1111" + "001" + ONE),  # and too large
        (150, "0" + "1111" + "111" + ONE),  # NaN
        (150, ONE + "1" + "0" * 7),  # negative zero
        (0, ONE + ONE),
        (278, ONE + ONE),
        (277, "0" + "1111" + "000" + ONE),  # 2^128
        (65535, ONE + ONE),
    ],
)
def test_payload_that_nobody_sends_is_refused(head, tail, message_of):
    refuses_payloads(FloatCast("e4m3"), 2, message_of(f"{head:016b}" + tail))
    assert FloatCast("e4m3").decode(message_of(f"{150:016b}" + ONE + ONE), d=2).tolist() == [1, 1]
