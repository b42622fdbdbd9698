import multiprocessing
import os

import pytest

from gpu_validation.processes.linux import schedule


def in_a_child(function):
    """What a forked process returns: this one keeps its own scheduling."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=lambda: theirs.send(function()), daemon=True)
    process.start()
    assert ours.poll(20)
    process.join(5)
    return ours.recv()


def test_what_is_said_is_what_is_in_force():
    said, policy = in_a_child(lambda: (schedule("realtime"), os.sched_getscheduler(0)))
    assert said == "SCHED_RR, priority 1" if policy == os.SCHED_RR else said.startswith("normal (SCHED_RR refused: ")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop privileges")
def test_without_the_privilege_the_refusal_is_told():
    def unprivileged():
        os.setresuid(65534, 65534, 65534)
        return schedule("realtime"), os.sched_getscheduler(0)

    said, policy = in_a_child(unprivileged)
    assert said == "normal (SCHED_RR refused: Operation not permitted)"
    assert policy == os.SCHED_OTHER


def test_normal_changes_nothing_and_other_words_are_refused():
    before = os.sched_getscheduler(0)
    assert schedule("normal") == "normal"
    assert os.sched_getscheduler(0) == before
    with pytest.raises(ValueError, match="normal or realtime; got 'fast'"):
        schedule("fast")
