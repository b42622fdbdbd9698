"""Segments cover a vector, share its dither, and decode to the promised error on both sides of every border."""

import numpy as np
import pytest

from operators import TCDQ, CorruptMessage, Key
from operators.tcdq import codec
from operators.tcdq.model import plan_of
from operators.tcdq.trellis import SEGMENT, count, hashes, seeds, seeds_from, segments

from . import oracle


@pytest.mark.parametrize("d", [1, SEGMENT - 1, SEGMENT, 2 * SEGMENT - 1, 2 * SEGMENT, 5 * SEGMENT + 7])
def test_segments_cover_the_vector_and_none_is_short(d):
    parts = segments(d)
    assert [i.start for i in parts] == [0, *(i.stop for i in parts[:-1])]
    assert parts[-1].stop == d
    assert len(parts) == count(d)
    assert all(i.stop - i.start >= min(d, SEGMENT) for i in parts)
    assert all(i.stop - i.start < 2 * SEGMENT for i in parts)


@pytest.mark.parametrize("start", [0, 1, SEGMENT, 3 * SEGMENT])
def test_segment_sees_the_dither_of_the_whole_vector(start):
    key = Key(3, rank=2)
    first, second = seeds_from(start, seeds(key))
    whole = hashes(key, start + 50)
    from_there = [int(v) for v in whole[start:]]
    assert [oracle.hashed(i, int(first), int(second)) for i in range(50)] == from_there


def test_error_is_that_promised_in_every_segment_and_at_their_borders():
    """At a border 4096 errors are looked at: 8 % is 3.6 standard errors of so many Gaussian squares."""
    d, operator, key = 3 * SEGMENT + 77, TCDQ(omega=0.1), Key(4)
    x = np.random.default_rng(5).standard_normal(d).astype(np.float32)
    error = operator(x, key=key).astype(np.float64) - x
    per_coordinate = 0.1 * float(x.astype(np.float64) @ x) / d
    for part in segments(d):
        assert (error[part] ** 2).mean() == pytest.approx(per_coordinate, rel=0.01)
        ends = np.r_[error[part][:2048], error[part][-2048:]]
        assert (ends**2).mean() == pytest.approx(per_coordinate, rel=0.08)


def test_damaged_number_of_words_is_refused():
    d, words = 2 * SEGMENT, seeds(Key(6))
    plan = plan_of(d, 0.5, 8)
    payload = codec.encode(np.ones(d, np.float32), plan, words)
    at = codec.read_model(payload.tobytes(), plan)[1]
    for announced in (0, 5, 2**32 - 1):
        damaged = payload.copy()
        damaged[at : at + 4] = np.array([announced], ">u4").view(np.uint8)
        with pytest.raises(CorruptMessage):
            codec.decode(damaged, 8 * damaged.size, plan, words)
