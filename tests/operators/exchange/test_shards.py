"""Shards cover a vector, in order, as evenly as they can."""

import pytest

from operators.exchange.choice import lengths, shards


@pytest.mark.parametrize(("d", "m"), [(1, 1), (1, 4), (3, 4), (10, 3), (64, 4), (400_001, 64)])
def test_shards_lie_end_to_end_and_differ_by_one_entry_at_most(d, m):
    cut = shards(d, m)

    assert [cut[0].start, *(shard.stop for shard in cut)] == [*(shard.start for shard in cut), d]
    assert sum(lengths(d, m)) == d
    assert max(lengths(d, m)) - min(lengths(d, m)) <= 1
