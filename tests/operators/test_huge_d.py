"""A short message and a huge d: lengths are compared before memory is allocated, by everything that decodes."""

import struct
import tracemalloc
import zlib

import numpy as np
import pytest
import torch

from operators import CorruptMessage, Key, Message, all_aggregates, all_feedbacks, all_operators
from operators.pieces import InPieces

D = 48
X = np.random.default_rng(0).standard_normal(D).astype(np.float32)
KEY = Key(0)
HUGE, LARGE = 10**12, 1 << 28
MOST_BYTES = 1 << 24


def refused(decode):
    """Require one sentence before 16 MiB are allocated."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"d = |bits|bytes|layers") as caught:
            decode()
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", all_operators())
def test_an_operator_refuses_a_huge_d(name):
    for operator in all_operators()[name].examples():
        message = operator.encode(X, key=KEY)
        refused(lambda o=operator, m=message: o.decode(m, d=HUGE, key=KEY))


@pytest.mark.parametrize("name", all_operators())
def test_a_length_that_d_alone_decides_is_compared_first(name):
    for operator in all_operators()[name].examples():
        message = operator.encode(X, key=KEY)
        if operator.bits(LARGE).exact not in (None, message.bits):
            refused(lambda o=operator, m=message: o.decode(m, d=LARGE, key=KEY))
            if isinstance(operator, InPieces) and not operator.whole_only:
                refused(lambda o=operator, m=message: next(o.decode_pieces(m, d=LARGE, key=KEY)))


@pytest.mark.parametrize("name", all_feedbacks())
def test_a_feedback_refuses_a_huge_d(name):
    for method in all_feedbacks()[name].examples():
        _, message = method.encode(method.init(D), torch.from_numpy(X), key=KEY)
        refused(lambda f=method, m=message: f.decode(f.init_receiver(D), m, d=HUGE, key=KEY))


@pytest.mark.parametrize("name", all_aggregates())
def test_an_aggregate_refuses_a_huge_d(name):
    for merger in all_aggregates()[name].examples():
        keys = KEY.of_ranks(range(getattr(merger, "workers", 3)), step=0)
        messages = [merger.uplink.encode(X, key=key) for key in keys]
        refused(lambda a=merger, m=messages, k=keys: a.merge(m, d=HUGE, keys=k))


def test_a_frame_that_announces_more_than_it_carries_is_refused():
    body = struct.pack(">3sBQQ", b"RDm", 1, HUGE, 2**63) + b"short"
    frame = body + struct.pack(">I", zlib.crc32(body))
    with pytest.raises(CorruptMessage, match="announces 9223372036854775808 bits but carries 5 bytes"):
        Message.from_bytes(frame)
