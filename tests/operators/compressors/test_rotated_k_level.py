"""Rotated k-level quantisation against a scalar oracle, its constants under Haar rotations, unbiasedness above."""

import math

import numpy as np
import pytest

from bounds.claims import Unbiased
from operators import CorruptMessage, Key, KLevel, RotatedKLevel
from operators.compressors.k_level import extremes

from ..conftest import named_vectors
from ..oracles import refuses_payloads
from ..plain_philox import bits32_numpy
from ..rotations import rotated


def oracle(x, k, key, float_field):
    """(ends, levels as text, decoded values) in plain Python."""
    x, d = [float(v) for v in x], len(x)
    if not any(x):
        return (0.0, 0.0), "0" * (d * (k - 1).bit_length()), [0.0] * d
    exponent = math.frexp(max(map(abs, x)))[1]
    z = [float(np.float32(v)) for v in rotated([math.ldexp(v, -exponent) for v in x], key.fold_in(0), rounds=1)]
    low, high, text, sent = min(z), max(z), "", []
    for v, word in zip(z, bits32_numpy(key.fold_in(1), d).tolist(), strict=True):
        level = 0
        if high > low:
            level = k - 1 if v == high else math.floor((k - 1) * (v - low) / (high - low) + word / 2**32)
        text += f"{level:0{(k - 1).bit_length()}b}"
        sent.append(low + (high - low) * level / (k - 1))
    back = rotated(sent, key.fold_in(0), forward=False, rounds=1)
    return (math.ldexp(low, exponent), math.ldexp(high, exponent)), text, [math.ldexp(v, exponent) for v in back]


@pytest.mark.parametrize("k", [2, 3, 16])
@pytest.mark.parametrize("d", [2, 9, 64, 65, 100])
def test_payload_and_values_equal_the_oracle(k, d, key, bitstring, float_field):
    operator = RotatedKLevel(k)
    for name, x in named_vectors(d):
        if name in ("one-hot", "two scales") and d > 64:
            continue  # ties for the ends, up to rounding: see the sure bound below
        message = operator.encode(x, key=key)
        ends, text, values = oracle(x, k, key, float_field)
        assert message.payload.numpy()[:8].view(">f4") == pytest.approx(ends, rel=1e-6), name
        same = sum(a == b for a, b in zip(bitstring(message)[64:], text, strict=True))
        assert same == len(text), name
        size = np.linalg.norm(np.asarray(x, float))
        assert operator.decode(message, d=d, key=key).numpy() == pytest.approx(values, abs=3e-6 * size), name
        assert message.bits == operator.bits(d).exact == KLevel(k).bits(d).exact


@pytest.mark.parametrize("d", [2, 3, 16, 64])
def test_two_levels_have_the_exact_error_for_every_vector(d):
    """n = 600 keys at a one-hot and a geometric vector: mean and error within 6 standard errors."""
    n, claim = 600, RotatedKLevel(2).claim(d)
    assert claim.tight
    for x in (np.eye(d)[0], 0.5 ** np.arange(d)):
        errors = np.array([RotatedKLevel(2)(x, key=Key(5, step=i)) - x for i in range(n)]) / np.linalg.norm(x)
        squares = (errors**2).sum(axis=1)
        assert abs(squares.mean() - claim.omega) < 6 * squares.std() / math.sqrt(n) + 1e-9
        assert (np.abs(errors.mean(axis=0)) < 6 * errors.std(axis=0) / math.sqrt(n) + 1e-6).all()


def test_constants_of_two_levels_are_the_closed_forms():
    """Two coordinates are both ends; at d = 3 the product of the extremes has mean -sqrt(3)/pi."""
    assert RotatedKLevel(2).claim(2).omega == pytest.approx(0, abs=1e-12)
    assert RotatedKLevel(2).claim(3).omega == pytest.approx(math.sqrt(3) / math.pi - 1 / 3, abs=1e-12)


@pytest.mark.parametrize("d", [2, 5, 64])
def test_extremes_of_normal_numbers_have_the_known_moments(d):
    """n = 40000, 6 standard errors; d = 2: (g - h)^2 and g h."""
    g = np.random.default_rng(d).standard_normal((40_000, d))
    high, low = g.max(axis=1), g.min(axis=1)
    for found, sample in zip(extremes(d), ((high - low) ** 2, high * low), strict=True):
        assert abs(sample.mean() - found) < 6 * sample.std() / 200
    if d == 2:
        assert extremes(2) == pytest.approx((2, 0), abs=1e-11)


@pytest.mark.parametrize("k", [3, 4, 16])
@pytest.mark.parametrize("d", [3, 16, 64])
def test_error_of_more_levels_is_below_its_bound_and_above_half_of_it(k, d):
    """n = 300 keys at a geometric vector."""
    n, x = 300, 0.5 ** np.arange(d)
    errors = np.array([RotatedKLevel(k)(x, key=Key(9, step=i)) - x for i in range(n)]) / np.linalg.norm(x)
    squares, omega = (errors**2).sum(axis=1), RotatedKLevel(k).claim(d).omega
    assert omega / 2 < squares.mean() + 6 * squares.std() / math.sqrt(n)
    assert squares.mean() - 6 * squares.std() / math.sqrt(n) < omega <= KLevel(k).claim(d).omega


def test_pair_stays_unbiased_above_64_coordinates():
    """n = 3000 keys, 6 standard errors."""
    n, x = 3000, np.zeros(65)
    x[:2] = 1, 0.9
    assert RotatedKLevel(4).claim(65) == Unbiased(KLevel(4).claim(65).omega)
    errors = np.array([RotatedKLevel(4)(x, key=Key(6, step=i)) - x for i in range(n)])
    assert (np.abs(errors.mean(axis=0)) < 6 * errors.std(axis=0) / math.sqrt(n)).all()


def test_gaussian_vectors_pay_for_their_range(key):
    """Two levels at d = 10^5: about 17.6, the square of the largest normal number."""
    x = np.random.default_rng(0).standard_normal(10**5)
    error = ((RotatedKLevel(2)(x, key=key) - x) ** 2).sum() / (x @ x)
    assert error == pytest.approx(17.6, rel=0.25)


def test_ends_that_meet_among_subnormal_numbers_decode(key):
    for d in (65, 1000):
        for scale in (2.0**-126, 2.0**-130):
            x = np.full(d, scale, np.float32)
            assert np.isfinite(RotatedKLevel(2)(x, key=key)).all()


def test_meaningless_levels_and_huge_vectors_are_refused(key):
    with pytest.raises(ValueError, match="got k = 1"):
        RotatedKLevel(1)
    with pytest.raises(ValueError, match="rescale x"):
        RotatedKLevel().encode(np.full(100, 3e38, np.float32), key=key)


@pytest.mark.parametrize(
    ("low", "high", "levels"),
    [(1.0, -1.0, "0001"), (-1.0, math.inf, "0001"), (-1.0, 1.0, "0000"), (0.0, 0.0, "0001"),
     (-1.0, 1.0, "00010")],
)  # fmt: skip
def test_payload_that_nobody_sends_is_refused(low, high, levels, message_of, float_field, key):
    refuses_payloads(RotatedKLevel(2), 4, message_of(float_field(low) + float_field(high) + levels), key=key)


def test_entry_that_exceeds_binary32_after_the_rotation_is_refused(message_of, float_field):
    """|z| = 5e38, so a rotated coordinate sometimes exceeds 3.4e38; no decoded vector may hold infinity."""
    message, refused = message_of(float_field(-2.5e38) + float_field(2.5e38) + "0101"), 0
    for step in range(40):
        try:
            assert RotatedKLevel(2).decode(message, d=4, key=Key(0, step=step)).isfinite().all()
        except CorruptMessage:
            refused += 1
    assert 0 < refused < 40
