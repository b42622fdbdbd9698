"""Averagings that are made and dropped keep no descriptor and no thread; a group that failed is not used again."""

import gc
import os
import resource
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import dataclass
from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from gpu_validation import PeriodicAveraging, pilot
from gpu_validation.averaging.exchange.parts import TwoShot
from gpu_validation.averaging.membership.parts import Nodes, Uneven
from gpu_validation.averaging.merge.rules import Blocking, Corrected, Delayed, Eager, Overwrite
from gpu_validation.averaging.outer import Nesterov
from gpu_validation.processes.collectives import ProcessTransport
from operators import QSGD, ErrorFeedback, Key, TopK
from operators.ddp import register
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(300)

QUIET_S = 20.0
SETTINGS = [
    {},
    {"merge": Overwrite(delay=1)},
    {"merge": Delayed(), "operator": ErrorFeedback(TopK(fraction=0.5))},
    {"merge": Eager()},
    {"merge": Corrected(fragments=2)},
    {"merge": Corrected(fragments=3), "operator": QSGD(levels=4), "key": Key(1)},
    {"exchange": TwoShot(QSGD(levels=4)), "key": Key(1)},
    {"outer": Nesterov(0.7, 0.9)},
    {"membership": Uneven()},
    {"telemetry": True},
    {"telemetry": "folder"},
]


def averaging_of(**settings):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return PeriodicAveraging(model, optimizer, **{"schedule": 2, "merge": Corrected(), **settings})


def held():
    """Return how many descriptors and threads this process has."""
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def settled(counts):
    """Wait until descriptors and threads are as few as they were; return them."""
    until = time.monotonic() + QUIET_S
    while (now := held()) != counts and time.monotonic() < until:
        time.sleep(0.01)
    return now


def made_and_dropped(count, *, collects, finished=True, cases=({},)):
    """Assert that dropped averagings are free at once, and that each uses the group of the one before it."""

    def work(place):
        gc.freeze()  # not among what the parent has imported
        gc.disable()
        groups, first = set(), None
        for number in range(count):
            if collects and number % 3 == place.rank:
                gc.collect()  # ranks collect garbage at different times
            averaging = averaging_of(**cases[number % len(cases)])
            groups.add(averaging.transport.group.group_name)
            averaging.step()
            averaging.step()
            if finished or number % 2:
                averaging.average()
            transport, averaging = weakref.ref(averaging.transport), None
            until = time.monotonic() + QUIET_S
            while transport() is not None and time.monotonic() < until:
                time.sleep(0.001)  # a message in flight
            assert transport() is None, cases[number % len(cases)]
            if number == min(len(cases), count // 2):
                time.sleep(0.1)
                first = held()
        return len(groups), first, settled(first)

    for groups, before, after in in_ranks(work, processes=2, hang_timeout_s=280):
        assert groups == 1
        assert after == before


@pytest.mark.parametrize(("collects", "finished"), [(True, False), (False, True), (False, False)])
def test_averagings_that_are_dropped_keep_one_group(finished, collects):
    made_and_dropped(25, collects=collects, finished=finished)


def test_a_group_serves_averagings_of_all_settings(tmp_path):
    folder = {"telemetry": str(tmp_path)}
    cases = [settings if settings != {"telemetry": "folder"} else folder for settings in SETTINGS]
    made_and_dropped(2 * len(cases), collects=False, cases=cases)


def test_what_a_pilot_leaves_is_no_group():
    def work(place):
        gc.freeze()
        gc.disable()
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        batches = [torch.ones(2, 4) * (place.rank + i) / 100 for i in range(100)]
        counts, groups = [], set()
        for _ in range(3):
            pilot(model, optimizer, lambda m, x: m(x).square().mean(), batches, moments=2, taus=(1, 2), operators=())
            averaging = averaging_of()
            groups.add(averaging.transport.group.group_name)
            averaging.average()
            del averaging
            time.sleep(0.1)
            counts.append(held())
        return len(groups), counts[0], settled(counts[0])

    for groups, before, after in in_ranks(work, processes=2):
        assert groups == 1
        assert after == before


def hook(place, **settings):
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 2)))
    register(model, QSGD(levels=4), **settings)
    model(torch.ones(3, 4)).square().mean().backward()


def averaging_in_nodes(place, **settings):
    averaging = averaging_of(membership=Nodes(2), operator=QSGD(levels=4), key=Key(2), **settings)
    averaging.step()
    averaging.average()


def pauses(place):
    averaging = averaging_of(merge=Blocking())
    for timeout_s in (30.0, 40.0):
        with averaging.pause(timeout_s):
            time.sleep(0.01 * place.rank)


DROPPED = {
    "hook": hook,
    "hook, two shots": partial(hook, exchange="two_shot"),
    "hook, nodes": partial(hook, ranks_per_node=2),
    "averaging, nodes": partial(averaging_in_nodes, merge=Blocking()),
    "averaging, nodes, overlap": averaging_in_nodes,
    "pauses": pauses,
}


@pytest.mark.parametrize("make", DROPPED.values(), ids=DROPPED)
def test_what_is_dropped_keeps_no_group(make):
    def work(place):
        gc.freeze()
        threads, groups = threading.active_count(), []
        for number in range(16):
            make(place)
            if place.rank == number % 4:
                gc.collect()  # ranks collect garbage at different times
            groups.append(len(dist.distributed_c10d._world.pg_map) - 1)
        until = time.monotonic() + QUIET_S
        while threading.active_count() > threads and time.monotonic() < until:
            gc.collect()  # a thread may just have held some of it
            time.sleep(0.02)
        return groups, threading.active_count() - threads

    for groups, threads in in_ranks(work, processes=4):
        assert groups[-1] <= 6 * groups[0], groups  # each rank collects every fourth time
        assert not threads


@pytest.mark.parametrize("settings", [{}, {"ranks_per_node": 2}], ids=["all", "nodes"])
def test_the_groups_of_a_hook_are_spare_between_passes_only(settings):
    def work(place):
        model, marks = DistributedDataParallel(torch.nn.Linear(4, 2)), []

        @dataclass(frozen=True)
        class Looks(QSGD):
            def _encode_tensor(self, x, key):
                marks.extend(spare.failed for spare in model.hook._spares)
                return super()._encode_tensor(x, key)

        object.__setattr__(model, "hook", register(model, Looks(levels=4), **settings))
        model(torch.ones(3, 4)).square().mean().backward()
        seen = [all(marks), bool(marks), [spare.failed for spare in model.hook._spares]]
        with pytest.raises(ValueError, match="not finite"):  # a refused pass ends on all ranks alike
            model(torch.full((3, 4), torch.nan if place.rank == 1 else 1.0)).square().mean().backward()
        return [*seen, [spare.failed for spare in model.hook._spares]]

    groups = 2 if settings else 1
    assert in_ranks(work, processes=4) == [[True, True, [False] * groups, [False] * groups]] * 4


ENDS_IN_FLIGHT = """
import threading
import torch
from gpu_validation.processes.transport import InThread

def message():
    threading.Event().wait({seconds})
    print("arrived", flush=True)

InThread(message, None, torch.device("cpu"))
print("end of script", flush=True)
"""


@pytest.mark.thorough
@pytest.mark.parametrize(("seconds", "lines"), [(0.3, ["end of script", "arrived"]), (3600, ["end of script"])])
def test_a_process_waits_a_while_at_its_end_for_what_is_in_flight(seconds, lines):
    done = subprocess.run(
        [sys.executable, "-c", ENDS_IN_FLIGHT.format(seconds=seconds)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == lines


@pytest.mark.slow
def test_a_thousand_averagings_that_are_dropped_keep_one_group():
    made_and_dropped(1000, collects=False, finished=False)


def soak(rounds):
    def work(place):
        gc.freeze()
        averaging, sizes = averaging_of(schedule=1, merge=Blocking()), []
        for number in range(rounds):
            averaging.step()
            if number in (rounds // 2, rounds - 1):
                sizes.append((*held(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
        return sizes

    for before, after in in_ranks(work, processes=2, hang_timeout_s=3600):
        assert after[:2] == before[:2]
        assert after[2] <= before[2] + 2048  # KiB


@pytest.mark.thorough
def test_two_thousand_averagings_keep_memory_and_descriptors():
    soak(2000)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_averagings_keep_memory_and_descriptors():
    soak(100_000)


def test_groups_are_used_again_only_when_free_everywhere_and_sound():
    def work(place):
        first, second = ProcessTransport.with_own_group(), ProcessTransport.with_own_group()
        names = [first.group.group_name, second.group.group_name]
        if place.rank == 0:
            del first  # on this rank alone
        third = ProcessTransport.with_own_group()
        names.append(third.group.group_name)
        first = None
        fourth = ProcessTransport.with_own_group()
        names.append(fourth.group.group_name)
        if place.rank == 1:
            second.spare.failed = True
        second = None
        names.append(ProcessTransport.with_own_group().group.group_name)
        return names

    names, others = in_ranks(work, processes=2)
    assert names == others
    first, second, third, fourth, fifth = names
    assert len({first, second, third, fifth}) == 4
    assert fourth == first
