"""Seconds of coding, counted message by message."""

import pytest

from bounds.runtime import Coding


def messages_in_two_shots(m):
    """Count movements that one worker encodes and decodes, shard by shard."""
    shard = 1 / m
    encoded = sum(shard for _ in range(m)) + shard  # to every owner, and the mean of its own
    decoded = sum(shard for _ in range(m)) + sum(shard for _ in range(m))  # those it owns, and the means
    return encoded, decoded


@pytest.mark.parametrize("m", [1, 2, 7])
def test_every_message_is_counted_once(m):
    coding = Coding(encode_s=3.0, decode_s=0.1)
    encoded, decoded = messages_in_two_shots(m)
    assert coding.seconds(m=m) == pytest.approx(3.0 + m * 0.1)
    assert coding.seconds(m=m, two_shot=True) == pytest.approx(3.0 * encoded + 0.1 * decoded)


def test_what_is_no_time_is_refused():
    with pytest.raises(ValueError, match="encode_s must be finite and >= 0; got encode_s = -1"):
        Coding(-1.0, 0.0)
    with pytest.raises(ValueError, match="m must be an integer >= 1; got m = 0"):
        Coding(1.0, 1.0).seconds(m=0)
