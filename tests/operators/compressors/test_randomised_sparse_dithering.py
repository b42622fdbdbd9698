"""Randomised Sparse Dithering against a scalar oracle, its exact mean and variance, and its message lengths."""

import math

import numpy as np
import pytest

from operators import Key, RandomisedSparseDithering
from operators.random import words_from

from ..oracles import assert_equals_oracle, refuses_payloads


def oracle(x, operator, words, float_field, support_field):
    """(bits as text, decoded values) in plain Python."""
    d, r = len(x), math.sqrt(math.fsum(float(v) ** 2 for v in x))
    if r == 0:
        return "0" * 31, [0.0] * d
    g = np.float32(r)
    g = float(g if float(g) >= r else np.nextafter(g, np.float32(np.inf)))
    h = max(2 * math.sqrt(operator.omega), (1 + operator.omega) * (operator.omega >= 1)) / math.sqrt(d)
    n = [math.floor(abs(float(v)) / (g * h) + int(w) / 2**32) for v, w in zip(x, words, strict=True)]
    kept = [i for i in range(d) if n[i]]
    text = float_field(g)[1:] + f"{len(kept):0{d.bit_length()}b}"
    text += "".join("1" if x[i] < 0 else "0" for i in kept) + "".join("1" * (n[i] - 1) + "0" for i in kept)
    values = [float(np.float32(g * h * math.copysign(m, v))) for v, m in zip(x, n, strict=True)]
    return text + support_field([m > 0 for m in n]), values


@pytest.mark.parametrize("operator", RandomisedSparseDithering.examples(), ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, d, key, float_field, support_field, words_of):
    words = words_of(key, d)
    assert_equals_oracle(operator, vectors, key, lambda x: oracle(x, operator, words, float_field, support_field))


@pytest.mark.parametrize("operator", RandomisedSparseDithering.examples(), ids=repr)
@pytest.mark.parametrize("name", ["flat", "gauss", "one-hot"])
def test_decoded_mean_equals_input_and_variance_stays_within_omega(operator, name):
    d, steps = 64, 512
    x = {"flat": np.ones(d), "gauss": np.random.default_rng(1).standard_normal(d), "one-hot": np.eye(d)[5] * -7}[name]
    x = x.astype(np.float32)
    total, square = np.zeros(d), 0.0
    for j in range(steps):  # every coordinate sees each quantile of its word once
        word = (2 * j + 1) * 2**32 // (2 * steps)
        with words_from(lambda key, n, start, w=word: np.full(n, w, np.uint32)):
            y = operator(x, key=Key(0)).astype(float)
        total += y
        square += ((y - x) ** 2).sum()
    step = np.linalg.norm(x.astype(float)) * operator.spacing(d)
    assert np.abs(total / steps - x).max() <= step * (1 / steps + 1e-6)
    variance, resolution = square / steps / (x.astype(float) @ x), d * operator.spacing(d) ** 2 / steps
    assert variance <= operator.omega + resolution
    if name == "flat" and operator.omega >= 1:
        assert variance == pytest.approx(operator.omega, abs=resolution)


@pytest.mark.parametrize("omega", [0.01, 0.1, 0.5])
def test_a_flat_vector_half_way_between_levels_nearly_reaches_omega(omega):
    d = 10**6
    h = RandomisedSparseDithering(omega).spacing(d)
    m = math.floor(1 / (h * math.sqrt(d)))
    a = math.sqrt((1 / h**2 - (d // 2) * (m - 0.5) ** 2) / (d // 2)) if m else 0.5
    rest = np.array([m - 0.5, a] if m else [a, a])
    variance = d / 2 * h**2 * float((rest % 1 * (1 - rest % 1)).sum())
    assert omega * 0.7 <= variance <= omega * (1 + 1e-9)


def test_mean_bits_stay_below_the_declared_limits_and_the_published_ones():
    x = np.random.default_rng(0).standard_normal(10**4).astype(np.float32)
    bits = RandomisedSparseDithering(0.1).encode(x, key=Key(0)).bits / 10**4
    assert bits == pytest.approx(2.826, abs=0.01)
    for omega in (0.01, 0.1, 0.5):
        published = 30 + math.log2(10**4 + 1) + (math.log2(3) + 1 / (2 * math.sqrt(omega))) * 10**4
        assert RandomisedSparseDithering(omega).bits(10**4).expected_upper < published
    for omega, per_coordinate in ((1, 2.0), (2, 1.585), (4, 1.122), (10, 0.621)):
        limit = RandomisedSparseDithering(omega).bits(10**6).expected_upper / 10**6
        assert limit == pytest.approx(per_coordinate, abs=6e-4)


@pytest.mark.parametrize("omega", [0.1, 1.0, 4.0])
def test_mean_bits_of_the_flat_vector_stay_below_the_limit(omega):
    for d in (8, 64, 100, 1000):
        operator, x = RandomisedSparseDithering(omega), np.ones(d)
        bits = [operator.encode(x, key=Key(0, step=t)).bits for t in range(200)]  # n = 200, 4 standard errors
        assert np.mean(bits) - 4 * np.std(bits) / math.sqrt(200) <= operator.bits(d).expected_upper


def test_norm_beyond_binary32_is_an_error(key):
    with pytest.raises(ValueError, match="rescale"):
        RandomisedSparseDithering().encode(np.full(4, 3e38, np.float32), key=key)


@pytest.mark.parametrize("omega", [0.0, -1.0, math.inf, math.nan])
def test_meaningless_parameter_is_refused(omega):
    with pytest.raises(ValueError, match="omega must"):
        RandomisedSparseDithering(omega)


@pytest.mark.parametrize("tail", ["", "1000", "001", "0010", "00100110", "0000"])
def test_payload_that_nobody_sends_is_refused(tail, message_of):
    refuses_payloads(RandomisedSparseDithering(1.0), 4, message_of("0111111100000000000000000000000" + tail))
