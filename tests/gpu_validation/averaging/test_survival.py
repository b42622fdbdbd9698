"""Ranks of a quorum: a synchronisation that fails is made again, a dead rank is left behind, another one comes back."""

import multiprocessing
import os
import random
import signal
import sys
import time
from datetime import timedelta
from functools import cache

import numpy as np
import pytest
import torch
import torch.distributed as dist

from bounds.schedules import AdaComm
from gpu_validation import Nesterov, PeriodicAveraging, Quorum
from gpu_validation.averaging.exchange.parts import TwoShot
from gpu_validation.averaging.membership.parts import All
from gpu_validation.averaging.merge.rules import Blocking, Corrected
from gpu_validation.averaging.mixing import ring
from gpu_validation.processes.linux import end_with_parent
from operators import QSGD, ErrorFeedback, Key, ScaledSign

pytestmark = pytest.mark.timeout(300)
FORK = multiprocessing.get_context("fork")
D, TAU, RANKS = 40, 3, 3
KINDS = {
    "whole models": {},
    "outer": {"outer": Nesterov(0.7, 0.5)},
    "gather": {"operator": QSGD(levels=4)},
    "two shots": {"exchange": TwoShot(QSGD(levels=4)), "outer": Nesterov(0.7, 0.5)},
}
MOMENTS = [random.Random(seed).random() for seed in range(10)]


class Point(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.nn.Parameter(torch.zeros(D))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))


class Ranks:
    """Real processes that meet at a store in one more; every one's ``work(quorum, report)``."""

    def __init__(self, work, *, ranks=RANKS, least=1, timeout_s=20.0):
        self.work, self.ranks, self.least, self.timeout_s = work, ranks, least, timeout_s
        self.inbox = FORK.Queue()
        self.server = self._started(self._serve)
        self.port = self.inbox.get(timeout=60)
        self.processes = [self.start(member) for member in range(ranks)]

    def start(self, member):
        return self._started(self._main, member)

    @staticmethod
    def _started(main, *arguments):
        process = FORK.Process(target=main, args=(*arguments, os.getpid()), daemon=True)
        process.start()
        return process

    def _serve(self, parent):
        """Hold the store; not in the parent, where a fork could copy a lock that the store's thread holds."""
        end_with_parent(parent)
        server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.inbox.put(server.port)
        signal.pause()

    def _main(self, member, parent):
        end_with_parent(parent)
        torch.set_num_threads(1)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        store = dist.TCPStore("127.0.0.1", self.port, is_master=False, timeout=timedelta(seconds=60))
        quorum = Quorum(store, member=member, least=self.least, most=self.ranks, timeout_s=self.timeout_s)
        try:
            self.inbox.put((member, "end", self.work(quorum, lambda item: self.inbox.put((member, "item", item)))))
        except Exception as error:
            self.inbox.put((member, "end", f"{type(error).__name__}: {error}"))
        self.inbox.close()
        self.inbox.join_thread()
        os._exit(0)

    def heard(self, kind):
        """The next (member, item) of this kind."""
        while True:
            member, said, item = self.inbox.get(timeout=200)
            if said == kind:
                return member, item

    def ends(self, number):
        return dict(self.heard("end") for _ in range(number))


@pytest.fixture(autouse=True)
def _nobody_stays():
    yield
    for process in multiprocessing.active_children():
        process.kill()
        process.join()


@pytest.fixture(autouse=True, scope="module")
def _compiled():
    """Compile once, here: forked processes inherit it."""
    import torch._dynamo  # noqa: F401  any optimizer does

    for operator in (QSGD(levels=4), QSGD(levels=16)):
        operator(np.linspace(-1, 1, D, dtype=np.float32), key=Key(0))


def local_step(model, member, step):
    with torch.no_grad():
        model.x += torch.randn(D, generator=torch.Generator().manual_seed(100 * step + member))
        model.seen += 1


def state_of(averaging):
    rounds = averaging.state_dict()
    model = averaging.model
    outer = [t.clone() for t in rounds["outer"].get("state", {}).get(0, {}).values() if isinstance(t, torch.Tensor)]
    tensors = [model.x.detach().clone(), averaging.anchor.clone(), *outer]
    return [t.numpy() for t in tensors], int(model.seen), averaging.total_steps


def same(a, b):
    return a[1:] == b[1:] and len(a[0]) == len(b[0]) and all(map(np.array_equal, a[0], b[0]))


# -- settings that differ -----------------------------------------------------------------------------------
def rates(lr):
    return lambda parameters: torch.optim.SGD(parameters, lr=lr)


DIFFERING = {  # of rank 0 or of another one
    "schedule": ({"schedule": 2}, {"schedule": 3}),
    "outer": ({"outer": rates(0.5)}, {"outer": rates(0.25)}),
    "operator": ({"operator": QSGD(levels=4)}, {"operator": QSGD(levels=8)}),
    "key": ({"operator": QSGD(levels=4), "key": Key(0)}, {"operator": QSGD(levels=4), "key": Key(1)}),
}


@pytest.mark.parametrize("name", DIFFERING)
def test_members_with_other_settings_are_refused_on_all_ranks(name):
    ranks = 3
    other = sorted(DIFFERING).index(name) % ranks

    def work(quorum, report):
        settings = DIFFERING[name][quorum.member == other]
        PeriodicAveraging(Point(), **{"schedule": TAU, **settings}, membership=quorum)

    words = set(Ranks(work, ranks=ranks).ends(ranks).values())
    assert len(words) == 1
    assert f"all ranks need equal settings; ranks 0 and {other or 1} differ in {name}" in words.pop()


def test_a_member_that_joins_with_other_settings_is_refused_with_a_sentence():
    def work(quorum, report):
        if quorum.member == 2:
            report("waits")
            while not quorum._latest():
                time.sleep(0.01)
        averaging = PeriodicAveraging(Point(), schedule=TAU, key=Key(quorum.member // 2), membership=quorum)
        for step in range(400 * TAU):
            local_step(averaging.model, quorum.member, step)
            averaging.step()

    ends = Ranks(work, timeout_s=2.0).ends(RANKS)
    assert len(set(ends.values())) == 1
    assert "differ in key: give all ranks the same key" in ends[0]


# -- a synchronisation that fails, and nobody has died ------------------------------------------------------
class Hiccup:
    """Lets one of a rank's exchanges of a synchronisation fail, as if a connection had broken, before or after it."""

    def __init__(self, transport, after):
        self.calls, self.fatal, self.after = 0, None, after
        for name in ("means", "gather", "scatter", "all_gather_floats"):
            setattr(transport, name, self.counted(getattr(transport, name)))

    def counted(self, act):
        def counting(*arguments, **settings):
            fails = self.calls == self.fatal
            self.calls += 1
            if fails and not self.after:
                raise RuntimeError("gloo: broken on purpose")
            arrived = act(*arguments, **settings)
            if fails:
                raise RuntimeError("gloo: broken on purpose")
            return arrived

        return counting


def with_hiccups(kind, fatal, after):
    def work(quorum, report):
        model = Point()
        averaging = PeriodicAveraging(model, schedule=TAU, key=Key(1), membership=quorum, **KINDS[kind])
        hiccup = Hiccup(averaging.transport, after)
        for step in range(3 * TAU + 1):
            local_step(model, quorum.member, step)
            if quorum.member == 1 and fatal is not None and step == 2 * TAU - 1:
                hiccup.calls, hiccup.fatal = 0, fatal
            averaging.step()
        averaging.average()
        assert dist.get_rank() == quorum.roster.index(quorum.member)
        return state_of(averaging), quorum.roster, quorum._attempt

    return work


@cache
def without_hiccups(kind):
    return Ranks(with_hiccups(kind, None, after=False)).ends(RANKS)


def check_hiccup(kind, fatal, after):
    """All as without it; where others were further, ranks get other numbers, other random streams and another order."""
    straight = without_hiccups(kind)
    broken = Ranks(with_hiccups(kind, fatal, after)).ends(RANKS)
    for state, roster, attempt in broken.values():
        assert attempt == 2
        assert same(state, broken[0][0])
        assert sorted(roster) == [*range(RANKS)]
        if roster == (0, 1, 2):
            assert same(state, straight[0][0])
        elif not {"operator", "exchange"} & set(KINDS[kind]):
            assert np.allclose(state[0][0], straight[0][0][0][0], rtol=0, atol=1e-5)


@pytest.mark.parametrize(("kind", "fatal", "after"), [("outer", 1, False), ("gather", 0, False)])
def test_a_synchronisation_that_fails_is_made_again(kind, fatal, after):
    check_hiccup(kind, fatal, after)


def accidents():
    """Each exchange of each kind fails before or after it in turn; nightly also the other way."""
    for row, kind in enumerate(KINDS):
        for fatal in range(4 if kind == "two shots" else 3):  # of movements, of buffers, and the vote
            for after in (False, True):
                tier = pytest.mark.thorough if (row + fatal) % 2 == after else pytest.mark.slow
                yield pytest.param(kind, fatal, after, marks=tier)


@pytest.mark.parametrize(("kind", "fatal", "after"), list(accidents()))
def test_a_synchronisation_that_fails_anywhere_is_made_again(kind, fatal, after):
    check_hiccup(kind, fatal, after)


def test_a_quorum_without_accidents_averages_as_a_group_does():
    """Bit for bit, and with a vote of 16 bytes to each other rank beside."""

    def work(quorum, report):
        found = []
        for given in (quorum, All()):
            model = Point()
            averaging = PeriodicAveraging(model, schedule=TAU, membership=given, outer=Nesterov(0.7, 0.5))
            for step in range(2 * TAU):
                local_step(model, quorum.member, step)
                averaging.step()
            found.append((state_of(averaging), averaging.transport.payload_bytes))
        return found

    for (state, sent), (plain, fewer) in Ranks(work).ends(RANKS).values():
        assert same(state, plain)
        assert sent == fewer + 2 * 16 * (RANKS - 1)


# -- a rank that dies ---------------------------------------------------------------------------------------
class Killer:
    """Ends its process by SIGKILL at a fraction of the calls that Python makes in the synchronisation before."""

    def __init__(self, moment):
        self.moment, self.calls, self.fatal_call = moment, 0, None

    def step(self, averaging, *, counts, ends):
        if ends:
            self.fatal_call = int(self.moment * self.calls)
        self.calls = 0 if counts or ends else self.calls
        sys.setprofile(self._count if counts or ends else None)
        averaging.step()
        sys.setprofile(None)

    def _count(self, *_):
        if self.calls == self.fatal_call:
            os.kill(os.getpid(), signal.SIGKILL)
        self.calls += 1


def killed(kind, moment):
    def work(quorum, report):
        model = Point()
        averaging = PeriodicAveraging(model, schedule=TAU, key=Key(1), membership=quorum, **KINDS[kind])
        killer = Killer(moment)
        for step in range(4 * TAU):
            local_step(model, quorum.member, step)
            victim = quorum.member == 1
            killer.step(averaging, counts=victim and step == 2 * TAU - 1, ends=victim and step == 3 * TAU - 1)
        return state_of(averaging), quorum.roster, averaging.transport.size

    return work


def by_hand(rounds_of_victim):
    """Whole models by hand, in float64; the victim's movements count in so many rounds."""
    theta = np.zeros(D)
    for index in range(4):
        members = [0, 1, 2] if index < rounds_of_victim else [0, 2]
        ends = []
        for member in members:
            point = Point()
            for step in range(index * TAU, (index + 1) * TAU):
                local_step(point, member, step)
            ends.append(theta + point.x.detach().double().numpy())
        theta = np.mean(ends, axis=0)
    return theta


def check_death(kind, ranks):
    ends = ranks.ends(2)
    assert sorted(ends) == [0, 2], ends
    ranks.processes[1].join(60)
    assert ranks.processes[1].exitcode == -signal.SIGKILL
    for state, roster, size in ends.values():
        assert same(state, ends[0][0])
        assert sorted(roster) == [0, 2]
        assert size == 2
    if kind == "whole models":
        x = ends[0][0][0][0]
        assert any(np.allclose(x, by_hand(rounds), rtol=0, atol=1e-5) for rounds in (2, 3))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_survivors_go_on_whenever_a_rank_dies(kind):
    """Ten runs at once, for most of their time is waiting."""
    runs = [Ranks(killed(kind, moment), least=2, timeout_s=20.0) for moment in MOMENTS]
    for ranks in runs:
        check_death(kind, ranks)


@pytest.mark.thorough
def test_fewer_than_the_quorum_end_with_a_sentence():
    ranks = Ranks(killed("outer", 0.3), least=3, timeout_s=2.0)
    for words in ranks.ends(2).values():
        assert words.startswith("QuorumLost: only 2 of the 3 members that a quorum needs"), words


# -- a rank that comes back ---------------------------------------------------------------------------------
def returning(kind, more=4):
    """Go on until all ranks have been there again for some rounds; the first time, member 1 dies."""

    def work(quorum, report):
        model = Point()
        averaging = PeriodicAveraging(model, schedule=TAU, key=Key(1), membership=quorum, **KINDS[kind])
        start, seen, last = averaging.total_steps, {}, None
        comes_back, lonely = start > 0, False
        if comes_back:
            seen[start], last = state_of(averaging), start + more * TAU
        while last is None or averaging.total_steps < last:
            step = averaging.total_steps
            if quorum.member == 1 and not comes_back and step == 2 * TAU + 1:
                os.kill(os.getpid(), signal.SIGKILL)
            local_step(model, quorum.member, step)
            if averaging.step() is None:
                continue
            seen[averaging.total_steps] = state_of(averaging)
            if not comes_back:
                size = averaging.transport.size
                if size == 2 and not lonely:
                    lonely = True
                    report("lonely")
                if size == 3 and lonely and last is None:
                    last = averaging.total_steps + more * TAU
        return start, seen, averaging.transport.size

    return work


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_that_comes_back_goes_on_as_the_others_do(kind):
    ranks = Ranks(returning(kind), least=2, timeout_s=8.0)
    for _ in range(2):
        ranks.heard("item")
    ranks.processes[1].join(60)
    ranks.start(1)
    ends = ranks.ends(3)
    start, seen, _ = ends[1]
    assert start > 3 * TAU
    assert len(seen) == 5
    for member in (0, 2):
        _, others, size = ends[member]
        assert size == 3
        assert all(same(state, others[step]) for step, state in seen.items())
    assert np.abs(seen[start][0][0]).max() > 0


@pytest.mark.thorough
def test_a_rank_that_was_stopped_too_long_goes_on_from_the_others():
    def work(quorum, report):
        model = Point()
        averaging = PeriodicAveraging(model, schedule=TAU, membership=quorum, outer=Nesterov(0.7, 0.5))
        last, lonely = None, quorum.member == 1
        while last is None or averaging.total_steps < last:
            step = averaging.total_steps
            if quorum.member == 1 and step == TAU:
                os.kill(os.getpid(), signal.SIGSTOP)
            local_step(model, quorum.member, step)
            averaging.step()
            if averaging.transport.size == 2 and not lonely:
                lonely = True
                report("lonely")
            if lonely and last is None and averaging.transport.size == 3 and averaging.total_steps > 2 * TAU:
                last = averaging.total_steps - averaging.total_steps % TAU + 4 * TAU
        return state_of(averaging)

    ranks = Ranks(work, least=2, timeout_s=4.0)
    for _ in range(2):
        ranks.heard("item")
    os.kill(ranks.processes[1].pid, signal.SIGCONT)
    ends = ranks.ends(3)
    assert same(ends[0], ends[2])
    assert same(ends[1], ends[0]), ends


# -- what is refused ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "given",
    [
        {"mixing": ring(3)},
        {"schedule": AdaComm(tau_0=3, interval_s=4.0)},
        {"merge": Corrected()},
        {"operator": ErrorFeedback(ScaledSign())},
        {"merge": Blocking(optimizer_state="average")},
    ],
)
def test_what_does_not_go_together_is_refused_in_one_sentence(given):
    quorum = Quorum(dist.HashStore(), member=0, least=1, most=3)
    model = Point()
    with pytest.raises(ValueError, match="a quorum does not work with") as refusal:
        PeriodicAveraging(model, torch.optim.SGD(model.parameters(), 0.1), **{"schedule": 2} | given, membership=quorum)
    assert "\n" not in str(refusal.value)


def test_telemetry_is_refused():
    quorum = Quorum(dist.HashStore(), member=0, least=1, most=3)
    with pytest.raises(ValueError, match="telemetry does not follow ranks that change"):
        PeriodicAveraging(Point(), schedule=2, telemetry=True, membership=quorum)
