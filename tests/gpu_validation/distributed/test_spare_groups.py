"""Averagings that are made and dropped keep no descriptor and no thread; a group that failed is not used again."""

import gc
import os
import resource

import pytest
import torch

from gpu_validation import PeriodicAveraging
from gpu_validation.distributed.collectives import ProcessTransport

from ..ranks import in_ranks

pytestmark = pytest.mark.timeout(300)


def averaging_of(**settings):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return PeriodicAveraging(model, optimizer, **{"schedule": 2, "overlap": "corrected", **settings})


def held():
    gc.collect()
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def made_and_dropped(count, finished=True):
    def work(place):
        gc.freeze()  # not among what the parent has imported
        counts = []
        for number in range(count):
            if number % 3 == place.rank:
                gc.collect()  # ranks collect garbage at different times
            averaging = averaging_of()
            averaging.step()
            averaging.step()
            if finished or number % 2:
                averaging.average()
            del averaging
            if number in (min(10, count // 2), count - 1):
                counts.append(held())
        return counts

    return in_ranks(work, processes=2)


@pytest.mark.parametrize("finished", [True, False])
def test_averagings_that_are_dropped_keep_nothing(finished):
    for before, after in made_and_dropped(12, finished):
        assert all(now <= then + 12 for then, now in zip(before, after, strict=True))  # two groups of garbage at most


@pytest.mark.slow
def test_a_thousand_averagings_that_are_dropped_keep_nothing():
    for before, after in made_and_dropped(1000):
        assert all(now <= then + 12 for then, now in zip(before, after, strict=True))


def soak(rounds):
    def work(place):
        gc.freeze()
        averaging, sizes = averaging_of(schedule=1, overlap="none"), []
        for number in range(rounds):
            averaging.step()
            if number in (rounds // 2, rounds - 1):
                sizes.append((*held(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
        return sizes

    for before, after in in_ranks(work, processes=2):
        assert after[:2] == before[:2]
        assert after[2] <= before[2] + 2048  # KiB


@pytest.mark.thorough
def test_two_thousand_averagings_keep_memory_and_descriptors():
    soak(2000)


@pytest.mark.slow
def test_a_hundred_thousand_averagings_keep_memory_and_descriptors():
    soak(100_000)


def test_groups_are_used_again_only_when_free_everywhere_and_sound():
    def work(place):
        first, second = ProcessTransport.apart(), ProcessTransport.apart()
        names = [first.group.group_name, second.group.group_name]
        if place.rank == 0:
            del first  # on this rank alone
        third = ProcessTransport.apart()
        names.append(third.group.group_name)
        first = None
        fourth = ProcessTransport.apart()
        names.append(fourth.group.group_name)
        if place.rank == 1:
            second.spare.failed = True
        second = None
        names.append(ProcessTransport.apart().group.group_name)
        return names

    names, others = in_ranks(work, processes=2)
    assert names == others
    first, second, third, fourth, fifth = names
    assert len({first, second, third, fifth}) == 4
    assert fourth == first
