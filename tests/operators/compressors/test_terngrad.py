"""TernGrad against a scalar oracle, its exact mean and variance, shared scales, clipping, damage."""

import math

import numpy as np
import pytest

from bounds.claims import NoClaim
from operators import Key, TernGrad
from operators.random import words_from

from ..oracles import assert_equals_oracle, refuses_payloads


def trits(levels):
    text = ""
    for i in range(0, len(levels), 5):
        group = levels[i : i + 5]
        text += f"{sum((t + 1) * 3**j for j, t in enumerate(group)):0{(3 ** len(group) - 1).bit_length()}b}"
    return text


def oracle(x, operator, words, float_field):
    """(bits as text, decoded values) in plain Python."""
    x = [float(v) for v in x]
    if operator.clip:
        limit = float(np.float32(operator.clip * math.sqrt(math.fsum(v * v for v in x) / len(x))))
        x = [min(max(v, -limit), limit) for v in x]
    m = operator.scale or max(map(abs, x))
    levels = [math.floor(abs(v) / m + int(w) / 2**32) if m else 0 for v, w in zip(x, words, strict=True)]
    levels = [-n if v < 0 else n for n, v in zip(levels, x, strict=True)]
    return ("" if operator.scale else float_field(m)) + trits(levels), [m * n for n in levels]


@pytest.mark.parametrize("operator", [*TernGrad.examples(), TernGrad(scale=2.0**110)], ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, d, key, float_field, words_of):
    words = words_of(key, d)
    assert_equals_oracle(operator, vectors, key, lambda x: oracle(x, operator, words, float_field))


@pytest.mark.parametrize("scale", [None, 8.0])
def test_decoded_mean_equals_input_and_variance_is_the_exact_one(scale):
    x = np.array([3, -1, 0.25, 0, -0.0, 2, -2.5])
    total, square, steps = np.zeros(7), 0.0, 512
    for j in range(steps):
        with words_from(lambda key, n, start, w=(2 * j + 1) * 2**32 // (2 * steps): np.full(n, w, np.uint32)):
            y = TernGrad(scale=scale)(x, key=Key(0))
        total += y
        square += ((y - x) ** 2).sum()
    assert np.abs(total / steps - x).max() <= 8 / steps
    assert square / steps / (x @ x) == pytest.approx(TernGrad(scale=scale).claim_at(x).omega, rel=0.02)


@pytest.mark.parametrize("d", [1, 2, 64, 1000])
def test_worst_vector_reaches_the_claim(d):
    x = np.full(d, 1 / (1 + math.sqrt(d)))
    x[0] = 1
    assert TernGrad().claim_at(x).omega == pytest.approx(TernGrad().claim(d).omega, abs=1e-12)


def test_shared_scale_makes_sums_of_n_messages_multiples_between_minus_n_and_n():
    n, d = 5, 100
    xs = np.random.default_rng(0).standard_normal((n, d)).astype(np.float32)
    operator = TernGrad.sharing(np.abs(x).max() for x in xs)
    assert operator.scale == np.abs(xs).max()
    total = sum(operator(x, key=Key(0, rank=r)).astype(float) for r, x in enumerate(xs)) / operator.scale
    assert (total == np.round(total)).all()
    assert np.abs(total).max() <= n


def test_zero_vectors_share_no_scale():
    assert TernGrad.sharing([0.0, 0.0]) == TernGrad()


def test_entry_above_the_shared_scale_is_an_error(key):
    with pytest.raises(ValueError, match=r"shared scale 1.0; got 2.0"):
        TernGrad(scale=1.0).encode(np.array([2.0]), key=key)


def test_clipping_is_biased_and_claims_nothing():
    x = np.r_[np.full(99, 0.01), 10.0]
    assert isinstance(TernGrad(clip=2.5).claim(100), NoClaim)
    assert isinstance(TernGrad(scale=1.0).claim(100), NoClaim)
    assert np.abs(TernGrad(clip=2.5)(x, key=Key(0))).max() == pytest.approx(2.5 * math.sqrt((x @ x) / 100))


@pytest.mark.parametrize("arguments", [{"clip": 0.0}, {"clip": -1.0}, {"scale": 0.0}, {"scale": 0.1}])
def test_meaningless_parameters_are_refused(arguments):
    with pytest.raises(ValueError, match="must be"):
        TernGrad(**arguments)


@pytest.mark.parametrize(
    ("scale", "tail"),
    [
        (1.0, trits([1, 0, 0, 0, 0]) + "11"),  # 3 is no digit
        (1.0, "11110011" + "00"),  # 243 is no group
        (1.0, trits([0] * 6)),  # the largest coordinate is missing
        (0.0, trits([1, 0, 0, 0, 0, 0])),
        (-1.0, trits([1, 0, 0, 0, 0, 0])),
        (np.inf, trits([1, 0, 0, 0, 0, 0])),
        (1.0, trits([1, 0, 0, 0, 0])),
        (1.0, trits([1, 0, 0, 0, 0, 0, 0])),
    ],
)
def test_payload_that_nobody_sends_is_refused(scale, tail, message_of, float_field):
    refuses_payloads(TernGrad(), 6, message_of(float_field(scale) + tail))
