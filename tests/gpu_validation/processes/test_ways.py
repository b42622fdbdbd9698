"""Ways to move shards: what may be tried, who chooses, and that the bits do not depend on it."""

import math

import numpy as np
import pytest
import torch

from gpu_validation.processes.collectives import ProcessTransport
from gpu_validation.processes.reduction import fold
from gpu_validation.processes.vectors import AT_ONCE, TRIALS, Trial, averaging_messages, ways_for
from operators import Key
from operators.random import normal

from ..ranks import in_ranks

pytestmark = pytest.mark.timeout(90)


@pytest.mark.parametrize(
    ("shard_bytes", "ways"),
    [
        (0, (AT_ONCE, 1)),
        (131_072, (AT_ONCE, 1)),
        (262_144, (AT_ONCE, 1, 2)),
        (543_000, (AT_ONCE, 1, 4)),
        (5_000_000, (AT_ONCE, 4, 8)),
        (10**9, (AT_ONCE, 8)),
    ],
)
def test_longer_shards_are_tried_in_more_pieces(shard_bytes, ways):
    assert ways_for(shard_bytes) == ways


@pytest.mark.parametrize(("vector_bytes", "a_pair"), [(0, 3), (4 * 262_143, 3), (4 * 262_144, 5), (10**9, 17)])
def test_messages_of_an_averaging_count_the_pieces_of_both_swaps(vector_bytes, a_pair):
    assert averaging_messages(4, vector_bytes) == a_pair * 12


def test_all_ranks_choose_the_way_whose_least_seconds_sum_to_least():
    first, second = Trial((AT_ONCE, 1, 4)), Trial((AT_ONCE, 1, 4))
    seconds = {AT_ONCE: (3.0, 9.0), 1: (5.0, 4.0), 4: (6.0, 6.0)}  # at once is best for the first rank, not for both
    compare = []

    for turn in range(3 * TRIALS):
        assert first.way == second.way == (AT_ONCE, 1, 4)[turn % 3]
        late = 100.0 * (turn // 3 != 1)  # all but the second time of each way
        compare.append([trial.record(late + seconds[trial.way][i]) for i, trial in enumerate((first, second))])

    assert compare == [[False, False]] * (3 * TRIALS - 1) + [[True, True]]
    assert (first.best_s, second.best_s) == ([3.0, 5.0, 6.0], [9.0, 4.0, 6.0])
    for trial in (first, second):
        assert not trial.settled
        trial.settle([first.best_s, second.best_s])
        assert trial.settled
        assert trial.way == 1


def test_a_single_way_is_not_tried():
    assert Trial((AT_ONCE,)).settled
    assert Trial((AT_ONCE,)).best_s == [math.inf]


class Settled(Trial):
    """By a way that stays."""

    def __init__(self, way):
        super().__init__((way,))


@pytest.mark.parametrize("n", [1, 3, 4, 11, 1000])
def test_the_mean_and_its_bytes_are_the_same_by_every_way(n):
    """Vectors shorter than ranks, shards of unequal length, and ranks whose vectors do not count."""
    ways = (AT_ONCE, 1, 2, 3, 8)

    def work(place):
        transport = ProcessTransport()
        own = torch.from_numpy(normal(Key(0, rank=place.rank), n)).float()
        outcomes = []
        for way in ways:
            transport._trial = lambda shard_bytes, way=way: Settled(way)
            for members in (range(4), [1, 3]):
                mean = transport._mean_of_shards(own.clone(), members)
                outcomes.append((mean, transport.payload_bytes, transport.received_bytes))
                transport.payload_bytes = transport.received_bytes = 0
        return outcomes

    owns = [torch.from_numpy(normal(Key(0, rank=rank), n)).float() for rank in range(4)]
    everyone, some = fold(owns).numpy(), fold([owns[1], owns[3]]).numpy()
    for outcomes in in_ranks(work, processes=4):
        for i, (mean, *counted) in enumerate(outcomes):
            np.testing.assert_array_equal(mean, some if i % 2 else everyone)
            assert counted == list(outcomes[i % 2][1:])


def test_the_ranks_settle_on_one_way_without_counting_how():
    """Rank 0 finds one way faster, the others another one, by more."""

    def work(place):
        transport = ProcessTransport()
        trial = transport._trial(4 * 250)
        record = trial.record
        trial.record = lambda seconds: record((1.0, 2.0)[trial.way] if place.rank == 0 else (5.0, 3.0)[trial.way])
        for _ in range(2 * TRIALS):
            transport._mean_of_shards(torch.ones(1000), range(4))
        return trial.way, trial.settled, transport.payload_bytes, transport.predicted_bytes

    for way, settled, sent, predicted in in_ranks(work, processes=4):
        assert (way, settled) == (1, True)
        assert predicted == 4 * sent == 4 * 2 * TRIALS * (750 + 750) * 4
