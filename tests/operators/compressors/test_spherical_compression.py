"""Spherical Compression against a scalar oracle, its sure contraction, and the known mean lengths."""

import math

import numpy as np
import pytest
from scipy.stats import beta

from operators import CorruptMessage, Key, SphericalCompression, UnbiasedSphericalCompression
from operators.coding import spherical
from operators.coding.spherical import Golomb, cap

from ..oracles import refuses_payloads
from ..plain_philox import bits32_numpy


def direction(key, n, number):
    """v_N in plain Python: Box-Muller on consecutive pairs of words, normalised."""
    width = n + n % 2
    words = [int(w) for w in bits32_numpy(key.fold_in(n), width, start=(number - 1) * width)]
    v = []
    for a, b in zip(words[::2], words[1::2], strict=True):
        r, t = math.sqrt(-2 * math.log((a + 0.5) / 2**32)), 2 * math.pi * b / 2**32
        v += [r * math.cos(t), r * math.sin(t)]
    norm = math.sqrt(math.fsum(c * c for c in v[:n]))
    return [c / norm for c in v[:n]]


def golomb(number, p):
    m = next(m for m in range(1, 10**6) if (1 - p) ** m + (1 - p) ** (m + 1) <= 1)
    quotient, rest = divmod(number - 1, m)
    k = m.bit_length() - 1
    short = 2 ** (k + 1) - m
    tail = f"{rest:0{k}b}" if rest < short else f"{rest + short:0{k + 1}b}"
    return "1" * quotient + "0" + (tail if k or rest >= short else "")


def oracle(x, operator, key, float_field):
    """(bits as text, decoded values) in plain Python, block by block."""
    text, values = "", []
    for start in range(0, len(x), operator.block):
        part = [float(v) for v in x[start : start + operator.block]]
        norm, n = math.sqrt(math.fsum(v * v for v in part)), len(part)
        if norm == 0:
            text, values = text + "0" * 31, values + [0.0] * n
        elif n == 1:
            text, values = text + float_field(norm)[1:] + "01"[part[0] < 0], values + part
        else:
            number = 1
            while (dot := sum(a * b for a, b in zip(part, direction(key, n, number), strict=True))) < norm * math.sqrt(
                1 - operator.alpha
            ):
                number += 1
            text += float_field(np.float32(dot))[1:] + golomb(number, beta.sf(1 - operator.alpha, 0.5, (n - 1) / 2) / 2)
            values += [float(np.float32(float(np.float32(dot)) * c)) for c in direction(key, n, number)]
    return text, values


@pytest.mark.parametrize("operator", SphericalCompression.examples(), ids=repr)
@pytest.mark.parametrize("d", [1, 2, 7, 8, 9, 64])
def test_payload_and_values_equal_the_oracle(operator, d, key, bitstring, float_field):
    rng = np.random.default_rng(d)
    for x in (np.zeros(d), rng.standard_normal(d), np.where(np.arange(d) < 8, 0, 1e-3), -np.eye(d)[d // 2]):
        message = operator.encode(x, key=key)
        text, values = oracle(x.astype(np.float32), operator, key, float_field)
        sent = bitstring(message)
        assert len(sent) == len(text)
        assert sum(a != b for a, b in zip(sent, text, strict=True)) <= 2 * (d // 8 + 1)  # last bits of the scales
        assert operator.decode(message, d=d, key=key).tolist() == pytest.approx(values, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("operator", SphericalCompression.examples(), ids=repr)
def test_error_stays_within_alpha_for_every_message(operator, vectors, key):
    for step, x in enumerate(vectors):
        wide = x.astype(float)
        error = ((operator(x, key=key.fold_in(step)).astype(float) - wide) ** 2).sum()
        assert error <= operator.alpha * (wide @ wide) * (1 + 1e-6)


@pytest.mark.parametrize(
    ("d", "alpha", "bits"), [(2, 0.1, 4.689), (5, 0.2, 8.419), (8, 0.3, 10.132), (10, 0.5, 8.530), (12, 0.3, 13.90)]
)
def test_golomb_mean_is_the_known_one_and_close_to_the_entropy(d, alpha, bits):
    p = cap(alpha, d)[0]
    mean = Golomb.optimal(p).mean_bits(p)
    assert mean == pytest.approx(bits, abs=6e-4 if d < 12 else 6e-3)
    assert -math.log2(p) < mean <= -math.log2(p) + 1.4755


@pytest.mark.parametrize("p", [0.001, 0.03, 0.3, 0.5, 0.7, 1.0])
def test_golomb_code_is_a_prefix_code_of_the_stated_mean(p):
    code = Golomb.optimal(p)
    lengths = [sum(code.code(n)[0::2]) + 1 for n in range(1, 20_000)]
    assert sum(2.0**-length for length in lengths) == pytest.approx(1, abs=2**-20)
    assert sum(p * (1 - p) ** i * length for i, length in enumerate(lengths)) == pytest.approx(code.mean_bits(p))


def test_mean_bits_of_gaussian_blocks_is_the_declared_one():
    operator, d = SphericalCompression(0.5, 8), 8 * 5000  # n = 5000 blocks; the sequence is shared, so 20 keys
    x = np.random.default_rng(0).standard_normal(d)
    bits = [operator.encode(x, key=Key(0, step=t)).bits for t in range(20)]
    assert abs(np.mean(bits) - operator.bits(d).expected_upper) < 5 * np.std(bits) / math.sqrt(20)


@pytest.mark.parametrize("arguments", [{"alpha": 0.0}, {"alpha": 1.0}, {"block": 1}, {"alpha": 0.01, "block": 64}])
def test_meaningless_or_hopeless_parameters_are_refused(arguments):
    with pytest.raises(ValueError, match=r"must|draws"):
        SphericalCompression(**arguments)


@pytest.mark.parametrize("tail", ["", "1" * 50, "0", "0" * 20])
def test_payload_that_nobody_sends_is_refused(tail, message_of, key):
    refuses_payloads(SphericalCompression(0.5, 8), 8, message_of("0111111100000000000000000000000" + tail), key=key)


def test_infinite_scale_is_refused(message_of, key):
    with pytest.raises(CorruptMessage, match="no finite scale"):
        SphericalCompression(0.5, 8).decode(message_of("1111111100000000000000000000000"), d=8, key=key)


def test_a_far_direction_is_reached_without_making_the_ones_before(message_of, key):
    text = "0111111100000000000000000000000" + "1" * 10**5 + "0" + "0" * Golomb.optimal(cap(0.5, 8)[0]).k
    y = SphericalCompression(0.5, 8).decode(message_of(text), d=8, key=key).numpy()
    assert np.linalg.norm(y) == pytest.approx(1)


@pytest.mark.parametrize("operator", [SphericalCompression(), UnbiasedSphericalCompression()], ids=repr)
def test_a_message_made_in_pieces_is_that_made_at_once(operator, key, monkeypatch):
    x = np.random.default_rng(0).standard_normal(8 * 100 + 3).astype(np.float32)
    x[80:88] = 0
    message = operator.encode(x, key=key)
    monkeypatch.setattr(spherical, "PIECE", 7)
    in_pieces = operator.encode(x, key=key)
    assert (in_pieces.bits, in_pieces.payload.tolist()) == (message.bits, message.payload.tolist())


def test_directions_drawn_one_by_one_are_those_drawn_at_once(key, monkeypatch):
    """A message with few blocks and a large number takes the first way, many blocks the second."""
    d = 8 * 100 + 3
    message = SphericalCompression().encode(np.random.default_rng(0).standard_normal(d).astype(np.float32), key=key)
    expected = SphericalCompression().decode(message, d=d, key=key)
    monkeypatch.setattr(spherical, "_dense", lambda count: 0)
    assert SphericalCompression().decode(message, d=d, key=key).tolist() == expected.tolist()
