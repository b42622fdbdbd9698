"""Whole averagings that a group has timed, and what a prediction makes of them."""

import itertools
from dataclasses import replace

import pytest
import torch

import ratedist as rd
from gpu_validation import pilot, run_ranks
from gpu_validation.piloting.timings import ROUNDS, timed_exchanges
from gpu_validation.processes.collectives import ProcessTransport
from operators import Key
from ratedist.pilots.pilot import Pilot
from ratedist.pilots.timings import ALL, ExchangeTimings, LinkTimings
from ratedist.plans.run import Rhythm

D = 300
GIVEN = {"moments": 2, "taus": (1, 2), "operators": ["qsgd:4", "scaled_sign"], "most_bytes": 1 << 12}


def work(place, emit):
    torch.set_num_threads(1)
    model = torch.nn.Linear(D, 1, bias=False)
    batches = (torch.ones(D) * (place.rank + k + 1) for k in itertools.count())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    emit(pilot(model, optimizer, lambda model, batch: model(batch).square().sum(), batches, **GIVEN))


@pytest.fixture(scope="module")
def found():
    one, other = run_ranks(work, processes=2, hang_timeout_s=60)
    assert one.exchanges == other.exchanges
    return one


def test_every_exchange_is_timed_once(found):
    names = {(each.operator.partition(":")[0], each.exchange) for each in found.exchanges}
    assert names == {("", "sum"), ("qsgd", "gather"), ("qsgd", "two_shot"), ("scaled_sign", "gather")}
    assert len(found.exchanges) == 4
    assert all(len(each.seconds) == 12 for each in found.exchanges)
    assert Pilot.from_dict(found.to_dict()) == found


def work_of_three(place, emit):
    torch.set_num_threads(1)
    settled, means = [], ProcessTransport.means

    def watched(transport, owns, members):
        trials = list(transport._trials.values())
        settled.append(bool(trials) and trials[0].settled)
        return means(transport, owns, members)

    ProcessTransport.means = watched
    timed_exchanges([], torch.ones(1 << 19), None, pause_s=0.0, key=Key(0))
    emit(settled)


def test_no_way_of_sending_is_still_tried_while_means_are_timed():
    """From three ranks on, long vectors are sent in several ways at first, and then in the fastest."""
    for settled in run_ranks(work_of_three, processes=3, hang_timeout_s=60):
        assert settled == sorted(settled)
        assert settled[-ROUNDS:] == [True] * ROUNDS
        assert not settled[0], "there is something to try"


def timed(found, workers=2, **links):
    """The pilot of a quick group on links of 10 ms, whose averagings took 1 s, 2 s and so on."""
    lengths = [4096 * 4**i for i in range(4)]
    ring = LinkTimings(ALL, 2, tuple(lengths), tuple(0.02 + 1e-8 * n for n in lengths))
    exchanges = tuple(
        ExchangeTimings(each.operator, each.exchange, (0.5 + i, 1.5 + i)) for i, each in enumerate(found.exchanges)
    )
    changed = replace(found, links=(ring,), exchanges=exchanges, step_s=((3.0, 3.0), (3.0, 3.0)))
    return changed, changed.cluster(workers=workers, **links)


def test_on_the_pilots_own_group_seconds_are_those_that_were_timed(found):
    changed, cluster = timed(found)
    for place, each in enumerate(changed.exchanges):
        exchange = "gather" if each.exchange == "sum" else each.exchange
        seconds = changed.predict(cluster, operator=each.operator or None, exchange=exchange, tau=2).seconds_per_step
        assert seconds.value == pytest.approx(3 + (1 + place) / 2)


@pytest.mark.parametrize(
    "other", [{"workers": 4}, {"latency_s": 1e-3, "bandwidth_bit_per_s": 1e9}], ids=["more workers", "other links"]
)
def test_elsewhere_seconds_are_those_of_the_links(found, other):
    changed, cluster = timed(found, **other)
    without = replace(changed, exchanges=())
    assert changed.predict(cluster).seconds_per_step == without.predict(cluster).seconds_per_step


def test_a_part_twice_as_good_saves_its_share_of_what_was_timed(found):
    changed, cluster = timed(found)
    plan = rd.plan(pilot=changed, cluster=cluster)
    run = changed.predictor(cluster).forecast(None, "gather", Rhythm()).run
    assert run.communicate_s + run.coding_s == pytest.approx(1.0)
    assert sum(run.shares().values()) == pytest.approx(1)
    assert plan.best.seconds_per_step is not None
