"""What a rank is doing is read by the process that started it, also after the rank has been killed."""

import os
import signal

from gpu_validation.processes.position import SLOT, Positions, at, unfinished_positions


def in_child(act):
    child = os.fork()
    if not child:
        act()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def test_the_latest_position_of_each_rank_survives_its_process():
    positions = Positions(3)

    def act():
        positions.take(1)
        at(unit="u", step="one", tensor="weight")
        at(exchange="all-gather")
        at(step="two")

    in_child(act)
    assert [positions.of(rank) for rank in range(3)] == ["", "u, two", ""]
    assert unfinished_positions() == positions.describe(range(3)) == "rank 1: u, two"
    positions.forget()
    assert unfinished_positions() == ""


def test_equal_positions_are_named_together_and_long_ones_are_cut():
    positions = Positions(3)
    for rank in range(3):
        in_child(lambda rank=rank: (positions.take(rank), at(unit="x" * 3 * SLOT if rank == 1 else "u")))
    assert positions.describe([0, 2]) == "ranks 0, 2: u"
    assert positions.of(1) == "x" * (SLOT - 1)
    positions.forget()


def test_outside_of_ranks_a_position_has_no_effect():
    at(unit="u")
    assert unfinished_positions() == ""
