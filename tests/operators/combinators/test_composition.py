"""Compositions against a scalar oracle, exact constants by enumeration, claims, damage."""

import math

import numpy as np
import pytest

from bounds.claims import Contractive, NoClaim, StrictlyContractive, Unbiased
from operators import (
    QSGD,
    Composition,
    FloatCast,
    NaturalCompression,
    RandomK,
    ScaledRandomK,
    ScaledSign,
    SignSGD,
    TopK,
)

from ..oracles import refuses_payloads


@pytest.mark.parametrize("operator", Composition.examples(), ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, d, key, bitstring):
    """The outer message of the inner result; tiny vectors 2^64 times larger."""
    for x in (*vectors, (vectors[4] * 2.0**-110).astype(np.float32)):
        small = 0 < np.abs(x).max() < 2.0**-62
        y = operator.inner(x * np.float32(2.0**64) if small else x, key=key.fold_in(0))
        outer = operator.outer.encode(y, key=key.fold_in(1))
        message = operator.encode(x, key=key)
        assert bitstring(message) == bitstring(outer) + str(int(small))
        values = operator.outer.decode(outer, d=d, key=key.fold_in(1)).numpy() * np.float32(2.0**-64 if small else 1)
        assert operator.decode(message, d=d, key=key).tolist() == values.tolist()


def test_two_tight_unbiased_operators_multiply_exactly():
    """Both supports enumerated: 1 of 3 after 2 of 3 coordinates."""
    claim = Composition(RandomK(k=1), RandomK(k=2)).claim(3)
    assert claim == Unbiased(3 * 1.5 - 1, tight=True)
    x, energy = np.array([3.0, -1.0, 0.5]), 0.0
    for missing in range(3):
        y = np.where(np.arange(3) == missing, 0, 1.5 * x)
        energy += sum(((np.where(np.arange(3) == kept, 3 * y, 0) - x) ** 2).sum() for kept in range(3)) / 9
    assert energy == pytest.approx(claim.omega * (x @ x))


@pytest.mark.parametrize(
    ("outer", "inner", "claim"),
    [
        (NaturalCompression(), NaturalCompression(), Unbiased(81 / 64 - 1)),
        (NaturalCompression(), TopK(fraction=0.75), Contractive(0.25 + 1.5**2 / 8)),
        (NaturalCompression("nearest"), NaturalCompression("nearest"), StrictlyContractive((4 / 9 + 1 / 3) ** 2)),
        (ScaledRandomK(fraction=0.875), NaturalCompression("nearest"), Contractive((8**-0.5 * 4 / 3 + 1 / 3) ** 2)),
        (NaturalCompression("nearest"), NaturalCompression(), Contractive((math.sqrt(1 / 8) * 2) ** 2)),
    ],
)
def test_constants_compose_as_proved(outer, inner, claim):
    found = Composition(outer, inner).claim(64)
    assert type(found) is type(claim)
    if isinstance(claim, Unbiased):
        assert found.omega == pytest.approx(claim.omega)
    else:
        assert found.alpha == pytest.approx(claim.alpha)


@pytest.mark.parametrize(
    ("outer", "inner"), [(ScaledSign(), ScaledSign()), (QSGD(), SignSGD()), (TopK(k=1), QSGD(levels=1))]
)
def test_nothing_is_claimed_where_the_bound_is_not_below_one(outer, inner):
    assert isinstance(Composition(outer, inner).claim(64), NoClaim)


def test_bound_of_an_unbiased_after_a_contractive_one_is_reached(key):
    """1.5 becomes 2 = (1 + sqrt(1/9)) 1.5, of which 3 of 4 coordinates are sent 4/3 times larger."""
    operator, x = Composition(RandomK(k=3), NaturalCompression("nearest")), np.full(4, 1.5)
    error = ((operator(x, key=key) - x) ** 2).sum() / (x @ x)
    assert error == pytest.approx(operator.claim(4).alpha, rel=1e-6)


def test_randomness_is_shared_only_if_the_outer_message_needs_it():
    assert Composition(QSGD(), RandomK(k=1)).randomness == "private"
    assert Composition(RandomK(k=1), QSGD()).randomness == "shared"
    assert Composition(FloatCast(), TopK(k=1)).randomness == "none"


def test_coordinates_that_the_inner_operator_shrinks_below_the_range_are_not_lost(key):
    x = np.r_[2.0**-126, np.zeros(63)].astype(np.float32)
    y = Composition(QSGD(levels=4, norm="max"), ScaledSign())(x, key=key)
    assert y.tolist() == ScaledSign()(x, key=key).tolist()
    assert y.any()


@pytest.mark.parametrize("text", ["", "0", "0" * 65])
def test_payload_that_nobody_sends_is_refused(text, message_of):
    refuses_payloads(Composition(FloatCast(), TopK(k=1)), 2, message_of(text))
