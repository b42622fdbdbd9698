"""Arguments that are refused on one rank only: every rank raises, and none waits for the others."""

import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.parallel import DistributedDataParallel

from bounds.schedules import AdaComm
from gpu_validation import Nesterov, PeriodicAveraging
from gpu_validation.averaging.exchange.parts import Gather
from gpu_validation.averaging.membership.parts import Nodes, Uneven
from gpu_validation.averaging.merge.rules import Blocking, Corrected
from gpu_validation.averaging.mixing import Sampled
from gpu_validation.averaging.outer import BlockMomentum
from operators import QSGD, ErrorFeedback, Key, TopK
from operators.ddp import register
from operators.summed.power_sgd import SummedPowerSGD
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(100)
WITHIN_S = 10.0  # the time-out of the group is 30 minutes


def raising(parameters):
    raise OSError("the rates file is missing")


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))


class Meta(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 4, device="meta")


GOOD = {"schedule": 4, "operator": QSGD(levels=4), "key": Key(1)}
AVERAGING = {  # what the refused rank has in place of GOOD
    "schedule 0": {"schedule": 0},
    "schedule of bool": {"schedule": True},
    "schedule of words": {"schedule": "often"},
    "operator of words": {"operator": "no such operator"},
    "operator class": {"operator": QSGD},
    "outer raises": {"outer": raising},
    "outer is a number": {"outer": 0.7},
    "momentum in flight": {"outer": BlockMomentum(0.5), "merge": Corrected()},
    "merge": {"merge": "later"},
    "delay": {"merge": Corrected(delay=9)},
    "exchange": {"operator": None, "exchange": "ring"},
    "operator and exchange": {"exchange": Gather()},
    "membership": {"membership": 2},
    "mixing": {"mixing": "half"},
    "sampled": {"mixing": Sampled(5, Key(1))},
    "nodes": {"membership": Nodes(3)},
    "fragments": {"merge": Corrected(fragments=2), "schedule": AdaComm(tau_0=4, interval_s=1.0)},
    "optimizer states": {"merge": Blocking(optimizer_state="average"), "membership": Uneven()},
    "no optimizer": {"optimizer": None, "schedule": AdaComm(tau_0=4, interval_s=1.0)},
    "foreign optimizer": {"optimizer": torch.optim.SGD([torch.nn.Parameter(torch.zeros(2))], lr=0.1)},
    "wrapped model": {"model": torch.nn.DataParallel(network())},
    "meta model": {"model": Meta(), "optimizer": None},
    "telemetry": {"telemetry": "/dev/null/folder"},
}
HOOK = {
    "scope": {"scope": "matrix"},
    "exchange": {"exchange": "ring"},
    "operator of words": {"operator": "no such operator"},
    "operator class": {"operator": QSGD},
    "second": {"second": TopK(fraction=0.5)},
    "twice": {"operator": ErrorFeedback(TopK(fraction=0.5)), "feedback": ErrorFeedback},
    "feedback raises": {"feedback": raising},
    "nodes": {"ranks_per_node": 3},
    "summed": {"operator": SummedPowerSGD(rank=1), "exchange": "two_shot"},
    "summed scope": {"operator": SummedPowerSGD(rank=1), "scope": "bucket"},
}


def averaging_of(chosen):
    model = chosen.pop("model", None) or network()
    optimizer = chosen.pop("optimizer", torch.optim.SGD(network().parameters(), lr=0.1))
    if optimizer is not None and optimizer.param_groups[0]["params"][0].numel() != 2:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    PeriodicAveraging(model, optimizer, **chosen)


def hook_of(chosen):
    register(DistributedDataParallel(network()), chosen.pop("operator"), **chosen)


def outcome(call, chosen):
    start = time.monotonic()
    try:
        call(dict(chosen))
    except Exception as error:
        return type(error).__name__, str(error), time.monotonic() - start
    return "nothing", "", time.monotonic() - start


def refused(place, cases, others):
    """Of every case: which rank was refused, and what this one raised; then a good averaging, and a good hook."""
    calls = {"averaging": (averaging_of, AVERAGING, GOOD), "hook": (hook_of, HOOK, {"operator": QSGD(levels=4)})}
    results = []
    for (kind, name), (rank, varied) in zip(cases, others, strict=True):
        call, wrong, good = calls[kind]
        good = good | varied if kind == "averaging" else good
        results.append((kind, name, rank, *outcome(call, good | wrong[name] if place.rank == rank else good)))
    return results, outcome(averaging_of, GOOD)[0], outcome(hook_of, {"operator": QSGD(levels=4)})[0]


CASES = [("averaging", name) for name in AVERAGING] + [("hook", name) for name in HOOK]
VARIED = [{}, {"merge": Corrected()}, {"telemetry": True}, {"outer": Nesterov(0.7, 0.5)}, {"membership": Uneven()}]


def require_told(m, cases, others):
    reports = in_ranks(lambda place: refused(place, cases, others), processes=m)
    for results in zip(*(report[0] for report in reports), strict=True):
        kind, name, rank = results[0][:3]
        own = results[rank][4]
        for number, (*_, error, sentence, seconds) in enumerate(results):
            case = f"{kind}, {name}, refused on rank {rank}, seen by rank {number}: {sentence}"
            assert error != "nothing", case
            assert seconds < WITHIN_S, case
            assert own in sentence, case
            assert number == rank or sentence == own or sentence == f"the arguments of rank {rank} are refused: {own}"
    assert all(report[1:] == ("nothing", "nothing") for report in reports)


@pytest.mark.thorough
def test_every_rank_raises_what_one_refuses():
    require_told(2, CASES, [(1, {})] * len(CASES))


@pytest.mark.thorough
@settings(deadline=None, max_examples=2)
@given(st.data())
def test_any_rank_may_refuse_whatever_the_others_have(data):
    cases = data.draw(st.lists(st.sampled_from(CASES), min_size=12, max_size=12))
    others = [(data.draw(st.integers(0, 2)), data.draw(st.sampled_from(VARIED))) for _ in cases]
    require_told(3, cases, others)


def test_a_group_of_some_ranks_and_several_refusals():
    def work(place):
        group = dist.new_group([0, 2], timeout=timedelta(seconds=30))
        if place.rank == 1:
            return None
        wrong = {"schedule": -place.rank}
        return outcome(averaging_of, GOOD | wrong | {"process_group": group})[:2]

    first, _, third = in_ranks(work, processes=3)
    assert first == ("ValueError", third[1].replace("-2", "0"))
    assert "-2" in third[1]
