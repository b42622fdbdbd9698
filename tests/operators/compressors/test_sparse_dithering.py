"""Sparse Dithering against a scalar oracle, the paper's example and counts, and payloads that nobody sent."""

import math

import numpy as np
import pytest

from operators import CorruptMessage, SparseDithering

from ..oracles import assert_equals_oracle, refuses_payloads


def oracle(x, nu, float_field, support_field):
    """(bits as text, decoded values) in plain Python."""
    d, r = len(x), math.sqrt(math.fsum(float(v) ** 2 for v in x))
    if r == 0:
        return "0" * 31, [0.0] * d
    h = 2 * math.sqrt(nu / d)
    n = [math.floor(abs(float(v)) / (h * r) + 0.5) for v in x]
    g = np.float32(math.fsum(abs(float(v)) * m for v, m in zip(x, n, strict=True)) / sum(m * m for m in n) / h)
    kept = [i for i in range(d) if n[i]]
    text = float_field(g)[1:] + (f"{len(kept) - 1:0{(d - 1).bit_length()}b}" if d > 1 else "")
    text += "".join("1" if x[i] < 0 else "0" for i in kept) + "".join("1" * (n[i] - 1) + "0" for i in kept)
    values = [float(np.float32(float(g) * h * math.copysign(m, v))) for v, m in zip(x, n, strict=True)]
    return text + support_field([m > 0 for m in n]), values


@pytest.mark.parametrize("operator", SparseDithering.examples(), ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, key, float_field, support_field):
    def expected(x):
        text, values = oracle(x, operator.nu, float_field, support_field)
        return text, pytest.approx(values, rel=1e-7)

    assert_equals_oracle(operator, vectors, key, expected)


@pytest.mark.parametrize("operator", SparseDithering.examples(), ids=repr)
def test_error_stays_within_nu(operator, vectors, key):
    for x in vectors:
        wide = x.astype(float)
        error = ((operator(x, key=key).astype(float) - wide) ** 2).sum()
        assert error <= operator.nu * (wide @ wide) * (1 + 1e-6)


def test_half_way_levels_reach_nu(key):
    """All |x_i| just above half a step from a level: the rounding error is all of d h^2/4, the projection's nearly."""
    d, nu = 4096, 0.1
    h = 2 * math.sqrt(nu / d)
    low = np.full(d, 0.499 * h)
    low[: d // 8] = math.sqrt((1 - (d - d // 8) * (0.499 * h) ** 2) / (d // 8))
    error = ((SparseDithering(nu)(low, key=key) - low) ** 2).sum() / (low @ low)
    assert 0.8 * nu < error <= nu


def test_worked_example(key):
    x = np.array([3.0, 0, -4, 0])
    operator = SparseDithering(nu=0.1)
    assert operator.encode(x, key=key).bits == 43
    assert operator(x, key=key) == pytest.approx([2.769231, 0, -4.153846, 0], abs=1e-6)
    assert ((operator(x, key=key) - x) ** 2).sum() / 25 == pytest.approx(0.00307692, abs=1e-8)


def test_bits_of_all_ones_and_of_a_spike(key):
    spike = np.zeros(1000)
    spike[700] = -5
    assert SparseDithering(0.1).encode(np.ones(1000), key=key).bits == 31 + 10 + 3 * 1000
    assert 31 + 10 + 51 + 9.96 < SparseDithering(0.1).encode(spike, key=key).bits <= 31 + 10 + 51 + 9.97 + 2


@pytest.mark.parametrize(("d", "per_coordinate"), [(100, 3.138), (1000, 2.835), (10**4, 2.804), (10**5, 2.801)])
def test_gaussian_bits_are_the_known_ones(d, per_coordinate, key):
    x = np.random.default_rng(d).standard_normal((max(1, 10**5 // d), d)).astype(np.float32)
    bits = np.mean([SparseDithering(0.1).encode(row, key=key).bits for row in x]) / d
    assert bits == pytest.approx(per_coordinate, abs=2 / d + 0.004)


def test_headline_holds_where_the_docstring_says():
    beyond = [d for d in range(1, 400) if SparseDithering(0.1).bits(d).worst_case > 30 + math.log2(d) + 3.35 * d]
    assert {1, 2, 3, 9, 10} <= set(beyond)
    assert max(beyond) < 93


@pytest.mark.parametrize(("d", "worst"), [(1, 34), (2, 38)])
def test_worst_case_of_tiny_vectors_is_reached(d, worst, key):
    angles = np.linspace(0, np.pi / 2, 2001)
    found = [np.array([math.cos(a), math.sin(a)])[:d] for a in angles[: 1 if d == 1 else None]]
    assert max(SparseDithering(0.1).encode(x, key=key).bits for x in found) == worst
    assert SparseDithering(0.1).bits(d).worst_case == worst


def test_nearly_worst_vector_comes_close_to_the_worst_case(key):
    """k = .844 d levels, each just above its rounding point, levels 2 and 3."""
    d, best = 10**4, 0
    for share in np.linspace(0.75, 0.95, 9):
        k = int(share * d)
        m = math.floor(0.5 + math.sqrt(d / 0.4 / k))
        raised = math.floor((d / 0.4 - k * (m - 0.5) ** 2) / (2 * m)) - 10
        x = np.r_[np.full(raised, m + 0.50001), np.full(k - raised, m - 0.49999), np.zeros(d - k)]
        best = max(best, SparseDithering(0.1).encode(x, key=key).bits)
    assert 0.98 * SparseDithering(0.1).bits(d).worst_case < best <= SparseDithering(0.1).bits(d).worst_case


def test_scale_beyond_binary32_is_an_error(key):
    with pytest.raises(ValueError, match="rescale"):
        SparseDithering().encode(np.full(4, 3e38, np.float32), key=key)


@pytest.mark.parametrize("nu", [0.0, 1.0, -0.1, math.nan])
def test_meaningless_parameter_is_refused(nu):
    with pytest.raises(ValueError, match="nu must"):
        SparseDithering(nu)


ONE = "0111111100000000000000000000000"  # 1.0 without its sign


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0" * 32,  # zero and more
        "1111111100000000000000000000000",  # infinity
        ONE,
        ONE + "11" + "000" + "000",  # 4 of 3 coordinates
        ONE + "00" + "0" + "1110" + "00",  # level 4 of at most 3
        ONE + "00" + "0" + "0" + "11",  # rank 3 of 3
        ONE + "00" + "0" + "0" + "0",  # rank cut short
        ONE + "00" + "0" + "0" + "000",  # left over
    ],
)
def test_payload_that_nobody_sends_is_refused(text, message_of):
    refuses_payloads(SparseDithering(0.1), 3, message_of(text))


def test_every_other_ending_of_a_long_support_is_refused(key, bitstring, message_of):
    x = np.zeros(100)
    x[[3, 50, 51, 99]] = [1, -1, 2, 1]
    text = bitstring(SparseDithering(0.1).encode(x, key=key))
    for bad in (text[:-1], text + "0", text + "1"):
        with pytest.raises(CorruptMessage):
            SparseDithering(0.1).decode(message_of(bad), d=100)
