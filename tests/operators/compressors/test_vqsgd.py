"""vqSGD against a scalar oracle, its exact probabilities, mean and variance, damage."""

import math

import numpy as np
import pytest

from operators import VQSGD, Key
from operators.random import words_from

from ..oracles import refuses_payloads
from ..plain_philox import bits32_numpy


def upward(value):
    rounded = np.float32(value)
    return float(rounded if float(rounded) >= value else np.nextafter(rounded, np.float32(np.inf)))


def oracle(x, repeats, words):
    """(norm, points, decoded values) in plain Python; point 2i is +e_i, 2i + 1 is -e_i."""
    x, d = [float(v) for v in x], len(x)
    norm = upward(math.sqrt(math.fsum(v * v for v in x)))
    whole, decoded, points = math.sqrt(d) * norm, [0.0] * d, []
    rest = max(0.0, whole - math.fsum(map(abs, x)))
    for j in range(repeats if norm else 0):
        high, low = int(words[2 * j]), int(words[2 * j + 1])
        target = (high * 2**20 + (low >> 12) + 0.5) / 2**52 * whole - rest
        if target < 0:
            even = int((target + rest) / rest * 2 * d)
            point = 2 * (even // 2) + (even % 2) ^ (x[even // 2] < 0)
        else:
            i = 0
            while target >= abs(x[i]):
                target -= abs(x[i])
                i += 1
            point = 2 * i + (x[i] < 0)
        points.append(point)
        decoded[point // 2] += (-1) ** point * whole / repeats
    return norm, points or [0] * repeats, decoded


@pytest.mark.parametrize("repeats", [1, 3, 20])
def test_payload_and_values_equal_the_oracle(repeats, vectors, d, key, bitstring, float_field):
    operator, words = VQSGD(repeats), bits32_numpy(key, 2 * repeats)
    width = max(1, math.ceil(math.log2(2 * d)))
    for x in vectors:
        message = operator.encode(x, key=key)
        norm, points, values = oracle(x, repeats, words)
        assert bitstring(message) == float_field(norm) + "".join(f"{p:0{width}b}" for p in points)
        assert operator.decode(message, d=d).numpy() == pytest.approx(np.array(values, np.float32), rel=1e-6)
        assert message.bits == operator.bits(d).exact == 32 + repeats * width


@pytest.mark.every(3)
@pytest.mark.parametrize("x", [[1, 0.5], [3, -1, 0.25, 0, -0.0, 2, -2.5], [0, 0, -5.0], [1, 1, 1, 1], [-2.0]])
def test_every_point_has_its_probability_and_the_mean_is_the_input(x):
    """A sweep of the uniform number over its range: probabilities to one step."""
    x, steps = np.array(x, np.float32), 4096
    d, norm = x.size, float(np.linalg.norm(x.astype(float)))
    counts, total, square = np.zeros(2 * d), np.zeros(d), 0.0
    for j in range(steps):
        word = (2 * j + 1) << 19
        with words_from(lambda key, n, start, w=word: np.array([w, 0] * (n // 2), np.uint32)):
            y = VQSGD()(x, key=Key(0)).astype(float)
        i = int(np.abs(y).argmax())
        counts[2 * i + (y[i] < 0)] += 1
        total, square = total + y, square + ((y - x) ** 2).sum()
    slack = 1 - np.abs(x).sum() / (math.sqrt(d) * norm)
    want = np.full(2 * d, slack / (2 * d))
    want[2 * np.arange(d) + (x < 0)] += np.abs(x) / (math.sqrt(d) * norm)
    assert counts / steps == pytest.approx(want, abs=3 / steps)
    assert total / steps == pytest.approx(x, abs=6 * d * norm / steps)
    assert square / steps / norm**2 == pytest.approx(VQSGD().claim(d).omega, abs=20 * d / steps)


@pytest.mark.parametrize("repeats", [1, 7])
def test_variance_is_d_minus_one_over_the_repeats_for_every_vector(repeats):
    """n = 1500 draws, 6 standard errors."""
    n, d = 1500, 9
    for x in (np.ones(d), np.eye(d)[3], 0.5 ** np.arange(d)):
        y = np.array([VQSGD(repeats)(x, key=Key(1, step=i)) for i in range(n)])
        errors = ((y - x) ** 2).sum(axis=1) / (x @ x)
        claim = VQSGD(repeats).claim(d)
        assert claim.tight
        assert abs(errors.mean() - (d - 1) / repeats) < 6 * errors.std() / math.sqrt(n) + 1e-6
        assert claim.omega == (d - 1) / repeats


def test_negative_slack_of_rounding_is_clipped():
    """Flat vectors have no slack; the norm's rounding must not make it negative or select beyond the end."""
    for d in (3, 1000, 4097):
        x = np.full(d, 1 / 3, np.float32)
        for word in (0, 2**32 - 1):
            with words_from(lambda key, n, start, w=word: np.full(n, w, np.uint32)):
                y = VQSGD()(x, key=Key(0))
            assert np.count_nonzero(y) == 1


def test_zero_coordinates_are_drawn_from_the_slack_only():
    """Without slack: sqrt(d) |x| = |x|_1 holds for the flat vector alone, so give its zero-free part all the mass."""
    x = np.array([0, 2, 0, -2], np.float32)
    with words_from(lambda key, n, start: np.full(n, 2**32 - 1, np.uint32)):
        assert VQSGD()(x, key=Key(0)).tolist()[:3] == [0, 0, 0]


def test_vectors_whose_point_exceeds_binary32_are_refused(key):
    with pytest.raises(ValueError, match="rescale x"):
        VQSGD().encode(np.full(100, 3e37, np.float32), key=key)


def test_no_draw_is_refused():
    with pytest.raises(ValueError, match="repeats must be at least 1; got repeats = 0"):
        VQSGD(0)


@pytest.mark.parametrize(
    ("norm", "points"),
    [
        (1.0, "110"),  # 6 of 2d = 6 points
        (0.0, "001"),
        (-1.0, "000"),
        (-0.0, "000"),
        (math.nan, "000"),
        (math.inf, "000"),
        (3e38, "000"),
        (1.0, "00"),
        (1.0, "0000"),
    ],
)
def test_payload_that_nobody_sends_is_refused(norm, points, message_of, float_field):
    refuses_payloads(VQSGD(), 3, message_of(float_field(norm) + points))
