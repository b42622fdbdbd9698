"""A pause of a run: one rank may take longer than any collective waits, and the schedule's clock stands still."""

import datetime
import os
import signal
import time

import pytest
import torch
import torch.distributed as dist

from gpu_validation.averaging.pacing.clock import WallClock
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.processes.launch import RunFailed, run_ranks
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)
TIMEOUT_S, LONGER_S = 3, 6


def short_group(place):
    return dist.new_group(list(range(place.size)), timeout=datetime.timedelta(seconds=TIMEOUT_S))


def evaluate_on_rank_0(place):
    if place.rank == 0:
        time.sleep(LONGER_S)


def test_an_evaluation_may_take_longer_than_the_time_out():
    def work(place):
        began, left_out = time.monotonic(), []
        averaging = PeriodicAveraging(torch.nn.Linear(1, 1), schedule=1, process_group=short_group(place))
        leave_out = averaging.clock.leave_out
        averaging.clock.leave_out = lambda seconds: (left_out.append(seconds), leave_out(seconds))
        averaging.step()
        with averaging.pause(60):
            evaluate_on_rank_0(place)
        averaging.step()
        with averaging.pause(60):  # the same waiting room
            pass
        counted_s = averaging.clock.seconds()
        whole = place.rank != 0 or left_out[0] >= LONGER_S
        return averaging.total_steps, whole, counted_s <= time.monotonic() - began - sum(left_out)

    assert in_ranks(work, processes=2) == [(2, True, True)] * 2


@pytest.mark.thorough
def test_without_a_pause_the_same_evaluation_ends_the_run():
    def work(place):
        averaging = PeriodicAveraging(torch.nn.Linear(1, 1), schedule=1, process_group=short_group(place))
        averaging.step()
        evaluate_on_rank_0(place)
        try:
            averaging.step()
        except RuntimeError as error:
            return str(error)
        return None

    assert any(words and "because another rank" in words for words in in_ranks(work, processes=2))


@pytest.mark.thorough
def test_a_rank_that_is_later_than_the_pause_allows_is_told_to_the_others():
    def work(place):
        averaging = PeriodicAveraging(torch.nn.Linear(1, 1), schedule=1)
        try:
            with averaging.pause(TIMEOUT_S):
                evaluate_on_rank_0(place)
        except RuntimeError as error:
            return str(error)
        return None

    words = in_ranks(work, processes=2)[1]
    assert words.startswith("the pause after 0 local steps did not end, because another rank has ended or is more than")
    assert "timeout_s = 3 s late" in words


def test_a_rank_that_dies_in_a_pause_is_noticed_long_before_it_ends():
    def work(place, emit):
        averaging = PeriodicAveraging(torch.nn.Linear(1, 1), schedule=1)
        with averaging.pause(1000):
            if place.rank == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    began = time.monotonic()
    with pytest.raises(RunFailed):
        list(run_ranks(work, processes=2, hang_timeout_s=100))
    assert time.monotonic() - began < 60


def test_an_error_within_is_not_held_back():
    def work(place):
        averaging = PeriodicAveraging(torch.nn.Linear(1, 1), schedule=1)
        with pytest.raises(ZeroDivisionError), averaging.pause():
            raise ZeroDivisionError
        with pytest.raises(ValueError, match="timeout_s must be > 0; got timeout_s = 0"), averaging.pause(0):
            pass

    in_ranks(work, processes=2)


def test_the_wall_clock_leaves_a_pause_out():
    clock = WallClock()
    clock.end_sync()
    clock.leave_out(100.0)
    clock.start_sync(1)
    assert clock.seconds() < -50
    assert clock.computed([0])[0] < -50
