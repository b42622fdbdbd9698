"""Families of operators at equal bits: what is asked for is what is sent, and nothing nearer was left out."""

import math

import numpy as np
import pytest

from operators import QSGD, Key, Rate, TopK, all_operators, for_bits, parse, specification

X = np.random.default_rng(0).standard_normal(4096).astype(np.float32)
FAMILIES = sorted(name for name, kind in all_operators().items() if kind.rate is not None)
CONTINUOUS = [name for name in FAMILIES if not all_operators()[name].rate.is_whole]


def sent(operator, x=X):
    return operator.encode(x, key=Key(0)).bits / x.size


@pytest.mark.parametrize("name", FAMILIES)
def test_both_ends_of_a_rate_are_operators_and_few_bits_are_fewer(name):
    rate = all_operators()[name].rate
    fields = {rate.at(place): parse(f"{name}:{rate.field}={rate.at(place)!r}") for place in (0, 1)}
    few, many = (sent(operator) for operator in fields.values())
    assert list(fields) == [rate.few, rate.many]
    assert few < many


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("bits", [2.0, 3.7])
def test_a_continuous_family_sends_what_was_asked_for(name, bits):
    assert sent(for_bits(name, bits, like=X)) == pytest.approx(bits, rel=0.01)


@pytest.mark.parametrize("bits", [0.9, 1.7, 3.1])
def test_of_whole_numbers_the_nearest_is_taken(bits):
    nearest = for_bits("qsgd", bits, like=X)
    distance = abs(math.log(sent(nearest) / bits))
    for levels in range(max(1, nearest.levels - 3), nearest.levels + 4):
        assert distance <= abs(math.log(sent(QSGD(levels=levels)) / bits)) + 1e-12


def test_of_equal_bits_the_finest_is_taken():
    assert specification(for_bits("klevel", 4, like=X)) == "klevel:k=16"
    assert sent(parse("klevel:k=9")) == sent(parse("klevel:k=16"))


def test_other_fields_stay_and_the_own_value_does_not_matter():
    assert for_bits("tcdq:states=64", 2, like=X).states == 64
    assert for_bits(TopK(fraction=1.0), 1, like=X) == for_bits("topk", 1, like=X)
    assert for_bits("qsgd:norm=max,code=fixed", 3, like=X).norm == "max"


@pytest.mark.parametrize(
    ("family", "bits", "sentence"),
    [
        ("scaled_sign", 1, "scaled_sign must have a field that controls its bits; got none: leave bits out"),
        ("eden", 0.3, "sends 1.008 at d = 4096: ask for bits within a factor of 2"),
        ("qsgd", 0, "bits must be a number of bits per coordinate > 0; got bits = 0"),
        ("qsgd", math.inf, "got bits = inf"),
        ("nobody", 1, "unknown operator 'nobody'"),
        ("qsgd:colour=3", 1, "no field 'colour'"),
    ],
)
def test_what_cannot_be_had_is_said(family, bits, sentence):
    with pytest.raises(ValueError, match="^[^\n]*" + sentence.replace("(", r"\(")):
        for_bits(family, bits, like=X)


def test_places_of_a_rate_lie_between_its_ends():
    rate = Rate("nu", few=1 - 2.0**-40, many=2.0**-10)
    assert [rate.at(place) for place in (0.0, 1e-16, 1.0)] == [rate.few, rate.few, rate.many]
    assert Rate("k", few=2, many=1 << 16).at(0.5) == 362
