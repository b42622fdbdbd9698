"""Arithmetic-coded Sparse Dithering against a coder with integers of any length, its rate, and damage."""

import math

import numpy as np
import pytest

from operators import ArithmeticSparseDithering, SparseDithering
from operators.compressors.sparse_dithering import TOTAL, multiplier, per_coordinate, quantise, table

from ..oracles import refuses_payloads


def omega(n):
    text = "0"
    while n > 1:
        text, n = f"{n:b}" + text, len(f"{n:b}") - 1
    return text


def coded(levels, ends):
    """The range coder with one unbounded integer and no carries."""
    most, symbols = (len(ends) - 3) // 2, []
    for n in levels:
        inside = abs(n) <= most
        s = (2 * abs(n) - (n > 0)) if inside else len(ends) - 2
        symbols.append((ends[s], ends[s + 1], TOTAL))
        bits = [] if inside else [int(n < 0), *map(int, omega(abs(n) - most))]
        symbols += [(b, b + 1, 2) for b in bits]
    low, width, shift = 0, 2**64 - 1, 0
    for start, stop, total in symbols:
        share = width // total
        low, width = low + share * start, share * (stop - start) if stop < total else width - share * start
        while width < 2**56:
            low, width, shift = low << 8, width << 8, shift + 8
    t = next(t for t in range(1, 64) if ((-(-low >> (64 - t))) + 1) << (64 - t) <= low + width)
    return f"{-(-low >> (64 - t)):0{shift + t}b}"


@pytest.mark.parametrize("operator", ArithmeticSparseDithering.examples(), ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, d, key, bitstring, float_field):
    twin, ends = SparseDithering(operator.nu), [int(e) for e in table(operator.nu)]
    for x in vectors:
        message = operator.encode(x, key=key)
        g, levels = quantise(x, operator.nu)
        assert bitstring(message) == float_field(g)[1:] + (coded([int(n) for n in levels], ends) if g else "")
        assert (operator.decode(message, d=d) == twin.decode(twin.encode(x, key=key), d=d)).all()
        assert message.bits <= operator.bits(d).worst_case


def test_law_is_the_one_of_the_derivation():
    assert float(multiplier(0.1)) == pytest.approx(0.1629042799, abs=1e-10)
    shares = np.diff(table(0.1))
    assert shares.sum() == TOTAL
    assert TOTAL / shares[0] == pytest.approx(5.391457551, rel=0.002)


@pytest.mark.parametrize(("nu", "ideal"), [(0.5, 2.1456), (0.2, 2.6236), (0.1, 3.0182), (0.05, 3.4368), (0.01, 4.4778)])
def test_worst_case_a_coordinate_is_the_entropy_limit_within_a_hundredth(nu, ideal):
    assert ideal - 1e-4 < per_coordinate(nu) < ideal + 0.01
    assert per_coordinate(nu) < SparseDithering(nu).bits(10**6).worst_case / 10**6


def test_a_vector_drawn_from_the_worst_law_comes_close_to_the_worst_case(key):
    d, rate = 10**5, float(multiplier(0.1))
    n = np.arange(9)
    p = np.where(n > 0, 2 * np.exp(-rate * (n - 0.5) ** 2), 1)
    x = np.repeat(np.maximum(n - 0.49999, 0), np.floor(d * p / p.sum()).astype(int))
    bits = ArithmeticSparseDithering(0.1).encode(x, key=key).bits
    assert 0.99 < bits / ArithmeticSparseDithering(0.1).bits(x.size).worst_case <= 1


def test_a_spike_is_escaped_cheaply(key):
    x = np.zeros(10**6)
    x[-1] = 1
    bits = ArithmeticSparseDithering(0.1).encode(x, key=key).bits
    assert bits < 10**6 * math.log2(5.4) + 100
    assert ArithmeticSparseDithering(0.1)(x, key=key)[-1] == 1


@pytest.mark.parametrize("change", ["cut", "zero", "one", "byte", "flip"])
def test_damage_of_the_ending_is_refused(change, key, bitstring, message_of):
    text = bitstring(ArithmeticSparseDithering(0.1).encode(np.arange(100.0), key=key))
    bad = {
        "cut": text[:-1],
        "zero": text + "0",
        "one": text + "1",
        "byte": text + "0" * 8,
        "flip": text[:-1] + ("0" if text[-1] == "1" else "1"),
    }[change]
    refuses_payloads(ArithmeticSparseDithering(0.1), 100, message_of(bad))


@pytest.mark.parametrize("text", ["", "0" * 32, "1" * 31, "0" + "1" * 30])
def test_payload_that_nobody_sends_is_refused(text, message_of):
    refuses_payloads(ArithmeticSparseDithering(0.1), 3, message_of(text))


@pytest.mark.parametrize("nu", [0.0, 1.0, 1e-4, math.nan])
def test_meaningless_parameter_is_refused(nu):
    with pytest.raises(ValueError, match="nu must"):
        ArithmeticSparseDithering(nu)
