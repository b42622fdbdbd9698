"""Signs alone: a scalar oracle, zero is positive, nothing is claimed."""

import pytest

from bounds.claims import NoClaim
from operators import SignSGD

from ..oracles import assert_equals_oracle, refuses_payloads


def oracle(x):
    return "".join("1" if v < 0 else "0" for v in x), [-1.0 if v < 0 else 1.0 for v in x]


def test_payload_and_values_equal_the_oracle(vectors, d, key):
    assert_equals_oracle(SignSGD(), vectors, key, oracle)
    assert SignSGD().bits(d).exact == d


def test_no_constant_is_claimed():
    assert isinstance(SignSGD().claim(5), NoClaim)


@pytest.mark.parametrize("text", ["", "0000", "000000"])
def test_other_lengths_are_refused(text, message_of):
    refuses_payloads(SignSGD(), 5, message_of(text))
