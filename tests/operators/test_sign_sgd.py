"""Signs alone: a scalar oracle, zero is positive, nothing is claimed."""

import pytest

from bounds.claims import NoClaim
from operators import CorruptMessage, SignSGD


def test_payload_and_values_equal_the_oracle(vectors, d, key, bitstring):
    for x in vectors:
        message = SignSGD().encode(x, key=key)
        assert bitstring(message) == "".join("1" if v < 0 else "0" for v in x)
        assert SignSGD().decode(message, d=d).tolist() == [-1.0 if v < 0 else 1.0 for v in x]
        assert message.bits == SignSGD().bits(d).exact == d


def test_no_constant_is_claimed():
    assert isinstance(SignSGD().claim(5), NoClaim)


@pytest.mark.parametrize("text", ["", "0000", "000000"])
def test_other_lengths_are_refused(text, message_of):
    with pytest.raises(CorruptMessage):
        SignSGD().decode(message_of(text), d=5)
