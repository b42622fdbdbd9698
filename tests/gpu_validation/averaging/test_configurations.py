"""Eleven configurations of an averaging keep every bit of their models and every length of their messages."""

import hashlib
from functools import cache

import pytest
import torch

from gpu_validation.averaging.exchange.parts import TwoShot
from gpu_validation.averaging.membership.parts import Nodes
from gpu_validation.averaging.merge.rules import Corrected, Delayed, Eager, Overwrite
from gpu_validation.averaging.mixing import ring
from gpu_validation.averaging.outer import BlockMomentum, Nesterov
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.simulated import SimulatedWorkers
from operators import QSGD, ErrorFeedback, Key, TopK
from tests.gpu_validation.ranks import in_ranks

M, STEPS, D = 4, 24, 147
Q = QSGD(levels=16)
OUTER = Nesterov(0.5, 0.5)

CONFIGURATIONS = {
    "models": {"schedule": 4},
    "gathered": {"schedule": 4, "operator": Q, "key": Key(1)},
    "two shots": {"schedule": 4, "exchange": TwoShot(Q, QSGD(levels=64))},
    "feedback, outer": {"schedule": 4, "operator": ErrorFeedback(TopK(fraction=0.1)), "outer": OUTER},
    "block momentum": {"schedule": 4, "outer": BlockMomentum(0.5)},
    "corrected": {"schedule": 4, "operator": Q, "merge": Corrected(delay=2)},
    "overwrite": {"schedule": 8, "merge": Overwrite(delay=3, fragments=2)},
    "delayed": {"schedule": 4, "merge": Delayed()},
    "eager": {"schedule": 4, "merge": Eager(), "outer": OUTER},
    "nodes": {"schedule": 4, "operator": Q, "membership": Nodes(2)},
    "gossip": {"schedule": 2, "mixing": ring(M)},
}
DIGESTS = {  # of every rank's model and of all message lengths
    "models": ["8c01c86384ee"] * M,
    "gathered": ["ef02cb2a617f"] * M,
    "two shots": ["bcf968d36668"] * M,
    "feedback, outer": ["77629285e847"] * M,
    "block momentum": ["cf3f68cb15c0"] * M,
    "corrected": ["cc04e6fefd1c"] * M,
    "overwrite": ["ae4be930a97b"] * M,
    "delayed": ["80956ba71f20"] * M,
    "eager": ["764dc85faf16"] * M,
    "nodes": ["d77e82ed48c9"] * M,
    "gossip": ["a1b159a25274", "aff5808d9814", "ad0915ba44cc", "de99845e84a9"],
}


class Vector(torch.nn.Module):
    """Parameters whose gradients and steps are the same on every machine."""

    def __init__(self):
        super().__init__()
        self.x = torch.nn.Parameter(torch.arange(D, dtype=torch.float32) / 64 - 1)


def made():
    model = Vector()
    return model, torch.optim.SGD(model.parameters(), lr=1 / 16)


def local_step(model, optimizer, rank, step):
    drawn = torch.randint(-64, 64, (D,), generator=torch.Generator().manual_seed(M * step + rank))
    model.x.grad = model.x.detach() - drawn / 32
    optimizer.step()


def digest(model, rounds):
    messages = repr([(round_.tau, round_.bits, round_.mean_bits) for round_ in rounds]).encode()
    return hashlib.sha256(model.x.detach().numpy().tobytes() + messages).hexdigest()[:12]


def in_one_process(settings):
    pairs = [made() for _ in range(M)]
    workers, rounds = SimulatedWorkers(*map(list, zip(*pairs, strict=True)), **settings), []
    for step in range(STEPS):
        for rank, pair in enumerate(pairs):
            local_step(*pair, rank, step)
        rounds.append(workers.step())
    rounds.append(workers.average())
    ended = [accounts for accounts in rounds if accounts is not None]
    return [digest(model, [accounts[rank] for accounts in ended]) for rank, (model, _) in enumerate(pairs)]


@cache
def in_processes():
    def work(place):
        digests = {}
        for name, settings in CONFIGURATIONS.items():
            model, optimizer = made()
            averaging, rounds = PeriodicAveraging(model, optimizer, **settings), []
            for step in range(STEPS):
                local_step(model, optimizer, place.rank, step)
                rounds.append(averaging.step())
            rounds.append(averaging.average())
            digests[name] = digest(model, [account for account in rounds if account is not None])
        return digests

    return in_ranks(work, processes=M)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_simulated_workers_have_the_recorded_bits(name):
    assert in_one_process(CONFIGURATIONS[name]) == DIGESTS[name]


@pytest.mark.timeout(120)
def test_real_ranks_have_the_recorded_bits():
    assert {name: [ranks[name] for ranks in in_processes()] for name in CONFIGURATIONS} == DIGESTS
