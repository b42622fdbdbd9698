"""Who is there: members settle rosters by a store, with a clock that the test moves and groups that are not made."""

import threading
from datetime import timedelta
from types import SimpleNamespace

import pytest
import torch.distributed as dist

from gpu_validation.processes import quorum as quorum_module
from gpu_validation.processes.quorum import NEW, Quorum, QuorumLost

pytestmark = pytest.mark.timeout(60)
TIMEOUT_S = 10.0


class Groups:
    """Members in threads; time passes only when the test says so."""

    def __init__(self, monkeypatch, most, least=1):
        self.store, self.seconds, self.wake = dist.HashStore(), 0.0, threading.Event()
        self.store.set_timeout(timedelta(seconds=30))
        clock = SimpleNamespace(monotonic=lambda: self.seconds, sleep=lambda _: self.wake.wait(0.001))
        monkeypatch.setattr(quorum_module, "time", clock)
        self.broken = 0  # groups that cannot be made
        groups = {"is_initialized": lambda: False, "init_process_group": self._made}
        for name, act in groups.items():
            monkeypatch.setattr(quorum_module.dist, name, act)
        self.members = [self.member(number, most, least) for number in range(most)]

    def member(self, number, most, least=1):
        return Quorum(self.store, member=number, least=least, most=most, timeout_s=TIMEOUT_S)

    def _made(self, *_, rank, world_size, **__):
        if self.broken:
            self.broken -= 1
            raise RuntimeError("gloo: connection refused")

    def form_group(self, members, rounds, *, seconds=0.0):
        """What every member returns or raises; time passes when all of them are waiting."""
        found = {}

        def form_group(member):
            try:
                found[member] = member.form_group(rounds[members.index(member)])
            except QuorumLost as lost:
                found[member] = lost

        desks = [(dist.PrefixStore(f"attempt {m._attempt + 1}", self.store), str(m.member)) for m in members]
        threads = [threading.Thread(target=form_group, args=(member,), daemon=True) for member in members]
        for thread in threads:
            thread.start()
        if seconds:
            self.await_that(lambda: all(desk.check([name]) for desk, name in desks))
            self.seconds += seconds
        for thread in threads:
            thread.join(30)
        return [found[member] for member in members]

    @staticmethod
    def await_that(event):
        while not event():
            threading.Event().wait(0.001)


@pytest.fixture
def groups(monkeypatch):
    return Groups(monkeypatch, most=3)


def test_all_are_waited_for_at_the_start_and_the_furthest_has_rank_0(groups):
    assert groups.form_group(groups.members, [NEW] * 3) == [NEW] * 3
    assert {member.roster for member in groups.members} == {(0, 1, 2)}

    assert groups.form_group(groups.members, [4, 4, 5]) == [4, 4, 5]
    assert {member.roster for member in groups.members} == {(2, 0, 1)}


def test_who_does_not_come_is_left_out_when_the_time_is_over(groups):
    groups.form_group(groups.members, [NEW] * 3)

    survivors = groups.members[::2]
    assert groups.form_group(survivors, [7, 7], seconds=TIMEOUT_S + 1) == [7, 7]
    assert {member.roster for member in survivors} == {(0, 2)}


def test_who_comes_too_late_asks_to_be_let_in_and_its_state_does_not_count(groups):
    first, late, last = groups.members
    groups.form_group(groups.members, [NEW] * 3)
    groups.form_group([first, last], [7, 7], seconds=TIMEOUT_S + 1)

    asking = threading.Thread(target=lambda: rounds.append(late.form_group(9)), daemon=True)
    rounds = []
    asking.start()
    groups.await_that(first.asked)
    assert groups.form_group([first, last], [8, 8]) == [8, 8]
    asking.join(30)
    assert rounds == [NEW]
    assert first.roster == last.roster == late.roster == (0, 2, 1)


def test_a_group_that_cannot_be_made_is_tried_again(groups):
    groups.form_group(groups.members, [NEW] * 3)
    groups.broken = 3  # of every member once
    assert groups.form_group(groups.members, [2] * 3) == [2] * 3
    assert {member._attempt for member in groups.members} == {3}


def test_fewer_than_the_quorum_end_with_a_sentence(monkeypatch):
    groups = Groups(monkeypatch, most=3, least=2)
    groups.form_group(groups.members, [NEW] * 3)

    (lost,) = groups.form_group(groups.members[:1], [3], seconds=TIMEOUT_S + 1)
    assert "only 1 of the 2 members that a quorum needs are present after 10 s: [0]" in str(lost)
    assert "\n" not in str(lost)


def test_who_is_never_let_in_ends_with_a_sentence(groups):
    groups.form_group(groups.members, [NEW] * 3)

    newcomer, said = groups.member(1, 3), []
    asking = threading.Thread(target=lambda: said.extend(groups.form_group([newcomer], [NEW])), daemon=True)
    asking.start()
    groups.await_that(newcomer.asked)
    groups.seconds += 3 * TIMEOUT_S + 1
    asking.join(30)
    assert "member 1 was not admitted for 30 s" in str(said[0])


@pytest.mark.parametrize("wrong", [{"least": 0}, {"least": 4}, {"member": 3}, {"member": -1}, {"timeout_s": 0}])
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match="a quorum needs 1 <= least <= most"):
        Quorum(dist.HashStore(), **{"member": 0, "least": 1, "most": 3} | wrong)
