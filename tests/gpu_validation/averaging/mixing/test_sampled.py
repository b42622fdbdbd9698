import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from gpu_validation.averaging.mixing import Sampled
from gpu_validation.averaging.simulated import InProcessTransport, SimulatedWorkers
from operators import Key


def test_all_ranks_draw_the_same_members_whatever_their_rank():
    draws = {tuple(Sampled(3, Key(7, rank=rank)).members(11, 10)) for rank in (0, 4, None)}

    assert len(draws) == 1


def test_every_subset_is_drawn_equally_often():
    m, clients, n = 5, 2, 20_000
    counts = Counter(tuple(Sampled(clients, Key(0)).members(round_index, m)) for round_index in range(n))

    subsets = list(itertools.combinations(range(m), clients))
    assert set(counts) <= set(subsets)
    statistic = sum((counts[s] - n / len(subsets)) ** 2 / (n / len(subsets)) for s in subsets)
    assert statistic < chi2.isf(1e-6, len(subsets) - 1)


def test_average_over_all_subsets_is_the_mean_with_the_stated_error():
    m, clients = 5, 2
    x = np.array([1.0, -2.0, 4.0, 8.0, 3.0])

    means = np.array([np.mean(s) for s in itertools.combinations(x, clients)])

    assert means.mean() == pytest.approx(x.mean(), rel=1e-15)
    assert np.mean((means - x.mean()) ** 2) == pytest.approx((1 / clients - 1 / m) * x.var(ddof=1), rel=1e-14)


def test_everyone_gets_the_members_average_and_others_count_for_nothing():
    mode, m = Sampled(2, Key(3)), 4
    owns = [torch.tensor([2.0**i]) for i in range(m)]
    for round_index in range(8):
        members = mode.members(round_index, m)
        expected = sum(2.0**i for i in members) / 2

        assert [b.item() for b in mode.mix(InProcessTransport(m), owns, round_index)] == [expected] * m
        np.testing.assert_array_equal(mode.matrix(m, round_index) @ [2.0**i for i in range(m)], [expected] * m)
        assert mode.matrix(m, round_index).sum() == m


def test_workers_know_who_takes_part_in_the_coming_round_and_only_they_send():
    models = [torch.nn.Linear(2, 1) for _ in range(5)]
    workers = SimulatedWorkers(models, mixing=Sampled(2, Key(1)), schedule=3)
    seen = set()
    for round_index in range(4):
        members = tuple(workers.participants)
        assert members == tuple(Sampled(2, Key(1)).members(round_index, 5))
        (_, _, accounts) = [workers.step() for _ in range(3)]
        assert accounts[0].bits == tuple(3 * 32 if rank in members else 0 for rank in range(5))
        seen.add(members)
    assert len(seen) > 1


def test_there_must_be_enough_clients():
    with pytest.raises(ValueError, match="clients must be >= 1; got 0"):
        Sampled(0, Key(0))
    with pytest.raises(ValueError, match="1 <= clients <= m = 3; got 4"):
        Sampled(4, Key(0)).check(3)
