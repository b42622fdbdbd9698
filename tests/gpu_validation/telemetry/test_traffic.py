"""Bytes predicted from lengths against a list of every single transfer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.telemetry.account import WHOLE_BYTES, of_messages, of_vectors


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=9), st.data())
def test_messages_go_to_all_others_with_their_headers(bits, data):
    m = len(bits)
    members = sorted(data.draw(st.sets(st.integers(0, m - 1), min_size=1)))
    front = data.draw(st.sampled_from([32, 256]))
    transfers = {
        (i, j): 8 + (bits[i] + (front if i in members else 32) + 7) // 8 for i in range(m) for j in range(m) if i != j
    }
    for rank in range(m):
        sent = sum(n for (i, _), n in transfers.items() if i == rank)
        received = sum(n for (_, j), n in transfers.items() if j == rank)
        assert of_messages(bits, rank=rank, members=members, front=front) == (sent, received)


@given(st.integers(1, 7), st.integers(0, 40), st.booleans(), st.data())
def test_what_all_hand_over_is_what_all_take_in(m, n, large, data):
    n += WHOLE_BYTES if large else 0
    members = sorted(data.draw(st.sets(st.integers(0, m - 1), min_size=1)))
    ways = [of_vectors(n, value_bytes=2, mean_bytes=4, rank=rank, size=m, members=members) for rank in range(m)]
    assert sum(sent for sent, _ in ways) == sum(received for _, received in ways)


def test_shards_by_hand():
    """Ten numbers on four ranks are shards of 3, 3, 3 and 1; two of the ranks take part."""
    found = [of_vectors(10, value_bytes=4, mean_bytes=4, rank=r, size=4, members=[0, 3]) for r in range(4)]
    sent = [4 * (7 + 9), 4 * 9, 4 * 9, 4 * (9 + 3)]
    received = [4 * (3 + 7), 4 * (6 + 7), 4 * (6 + 7), 4 * (1 + 9)]
    assert found == list(zip(sent, received, strict=True))


@pytest.mark.parametrize(("n", "m"), [(0, 4), (5, 1)])
def test_nothing_is_sent_where_there_is_nothing_or_nobody(n, m):
    assert of_vectors(n, value_bytes=4, mean_bytes=4, rank=0, size=m, members=range(m)) == (0, 0)
