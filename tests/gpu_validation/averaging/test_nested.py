"""Nested averagings are torch's hierarchical model averager, step by step."""

from collections import OrderedDict

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager

from gpu_validation import Nesterov, PeriodicAveraging
from operators import QSGD, Key

from ..ranks import in_ranks

pytestmark = pytest.mark.timeout(120)
RANKS, PAIR, STEPS = 4, 2, 24


def network():
    torch.manual_seed(0)
    model = torch.nn.Linear(6, 3)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_((64 * p).round())
    return model


def local_step(model, rank, step):
    """Move by whole numbers, so that the means of two and of four models are exact."""
    draw = torch.Generator().manual_seed(100 * step + rank)
    with torch.no_grad():
        for p in model.parameters():
            p += torch.randint(-8, 9, p.shape, generator=draw)


def nested(place, periods, **settings):
    model, pairs = network(), dist.new_subgroups(PAIR)[0]
    within = PeriodicAveraging(model, schedule=periods[0], process_group=pairs)
    among = PeriodicAveraging(model, schedule=periods[1], key=Key(3), **settings)
    path = []
    for step in range(STEPS):
        local_step(model, place.rank, step)
        within.step()
        among.step()
        path.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    return torch.stack(path)


def hierarchical(place, periods):
    """Torch counts the averaging of step 0 as the first: here it finds equal models, before any step."""
    model = network()
    for p in model.parameters():
        p.grad = torch.zeros_like(p)  # torch averages parameters with a gradient only
    averager = HierarchicalModelAverager(OrderedDict([(periods[0], PAIR), (periods[1], RANKS)]))
    averager.average_parameters(model.parameters())
    path = []
    for step in range(STEPS):
        local_step(model, place.rank, step)
        averager.average_parameters(model.parameters())
        path.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    return torch.stack(path)


def test_nested_averagings_are_torchs_hierarchical_averager_bit_for_bit():
    """Also where the periods of pairs and of all ranks end at different steps."""
    periods = [(2, 4), (2, 6), (2, 5), (3, 4)]

    def work(place):
        return [(nested(place, pair), hierarchical(place, pair)) for pair in periods]

    reports = in_ranks(work, processes=RANKS)
    for i, pair in enumerate(periods):
        for ours, theirs in (report[i] for report in reports):
            np.testing.assert_array_equal(ours, theirs)
        ends = [report[i][0] for report in reports]
        for step in range(STEPS):
            equal = [np.array_equal(ends[0][step], end[step]) for end in ends]
            among, within = (not (step + 1) % period for period in reversed(pair))
            assert equal == ([True] * 4 if among else [True, within, False, False]), (pair, step)


def test_the_slow_level_may_compress_and_take_outer_steps():
    """All ranks hold the same model after an averaging of all, also one with an operator and an outer optimizer."""

    def work(place):
        return nested(place, (2, 4), operator=QSGD(4), outer=Nesterov(0.7, 0.5))

    ends = in_ranks(work, processes=RANKS)
    for step in range(3, STEPS, 4):
        assert all(np.array_equal(ends[0][step], end[step]) for end in ends)
    assert not np.array_equal(ends[0][0], ends[1][0])
