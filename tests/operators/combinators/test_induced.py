"""The induced operator against a scalar oracle, its exact constant by enumeration, separate keys, damage."""

import itertools

import numpy as np
import pytest

from bounds.claims import NoClaim, Unbiased
from operators import (
    QSGD,
    CorruptMessage,
    Identity,
    Induced,
    Key,
    NaturalCompression,
    RandomK,
    ScaledRandomK,
    ScaledSign,
    SignSGD,
    TernGrad,
    TopK,
)
from operators.bits import elias

from ..oracles import refuses_payloads


def text_of(message, bitstring, exact):
    text = bitstring(message)
    if exact:
        return text
    code, width = elias.build(message.bits + 1)
    return f"{code:0{width}b}" + text


@pytest.mark.parametrize("operator", Induced.examples(), ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, d, key, bitstring):
    """Two messages after each other; the sum of their vectors; tiny vectors 2^64 times larger."""
    for x in (*vectors, (vectors[4] * 2.0**-110).astype(np.float32)):
        small = 0 < np.abs(x).max() < 2.0**-62
        y = x * np.float32(2.0**64) if small else x
        first = operator.biased.encode(y, key=key.fold_in(0))
        kept = operator.biased.decode(first, d=d, key=key.fold_in(0)).numpy()
        second = operator.unbiased.encode(y - kept, key=key.fold_in(1))
        rest = operator.unbiased.decode(second, d=d, key=key.fold_in(1)).numpy()
        message = operator.encode(x, key=key)
        text = text_of(first, bitstring, operator.biased.bits(d).exact)
        text += text_of(second, bitstring, operator.unbiased.bits(d).exact)
        assert bitstring(message) == text + str(int(small))
        values = [(float(a) + float(b)) * (2.0**-64 if small else 1) for a, b in zip(kept, rest, strict=True)]
        assert operator.decode(message, d=d, key=key).tolist() == np.array(values, np.float32).tolist()


def test_constant_is_the_product_and_exact_where_both_are_tight():
    """Every support of both parts: ScaledRandomK is tight with 1 - k/d, RandomK with d/k - 1."""
    operator, d = Induced(ScaledRandomK(k=1), RandomK(k=2)), 3
    assert operator.claim(d) == Unbiased((1 - 1 / 3) * (3 / 2 - 1), tight=True)
    x = np.array([3.0, -1.0, 0.5])
    outcomes = []
    for kept in range(d):
        rest = np.where(np.arange(d) == kept, 0, x)
        outcomes += [
            x - rest + np.where(np.isin(np.arange(d), two), rest * d / 2, 0)
            for two in itertools.combinations(range(d), 2)
        ]
    outcomes = np.array(outcomes)
    assert np.allclose(outcomes.mean(axis=0), x)
    assert ((outcomes - x) ** 2).sum(axis=1).mean() == pytest.approx(operator.claim(d).omega * (x @ x))
    seen = {tuple(operator(x, key=Key(0, step=t)).tolist()) for t in range(300)}
    assert seen == {tuple(np.float32(row).tolist()) for row in outcomes}


@pytest.mark.parametrize(
    ("biased", "unbiased", "omega"),
    [
        (TopK(fraction=0.25), QSGD(levels=1), 0.75 * 7),
        (NaturalCompression(), QSGD(levels=1), 7 / 8),
        (NaturalCompression("nearest"), NaturalCompression(), 1 / 72),
    ],
)
def test_claims_multiply(biased, unbiased, omega):
    assert Induced(biased, unbiased).claim(64).omega == pytest.approx(omega)


def test_nothing_is_claimed_without_an_unbiased_second_or_a_constant_of_the_first():
    assert isinstance(Induced(TopK(k=1), ScaledSign()).claim(9), NoClaim)
    assert isinstance(Induced(SignSGD(), QSGD()).claim(9), NoClaim)


def test_both_parts_draw_from_streams_of_their_own(key):
    """With one stream for both, the second part would draw exactly the coordinates of the first, whose rest is 0."""
    y = Induced(ScaledRandomK(fraction=0.1), RandomK(fraction=0.1))(np.ones(1000), key=key)
    assert (y == 1).sum() == 100
    assert 80 <= (y == 10).sum() < 100


def test_residual_of_a_tiny_vector_is_not_lost(key):
    x = np.array([2.0**-126, 2.0**-140], np.float32)
    assert Induced(TopK(k=1), TernGrad())(x, key=key).tolist() == x.tolist()


def test_decoded_part_beyond_binary32_is_damage(key):
    big = np.full(2, 3e38, np.float32)
    pair = Induced(Identity(), Identity())
    message = pair.encode(big, key=key)
    message.payload[8:12] = message.payload[:4]
    with pytest.raises(CorruptMessage, match="exceeds binary32"):
        pair.decode(message, d=2)


@pytest.mark.parametrize("text", ["", "0", "0" * 40])
def test_payload_that_nobody_sends_is_refused(text, message_of):
    refuses_payloads(Induced(ScaledSign(), QSGD()), 2, message_of(text))
