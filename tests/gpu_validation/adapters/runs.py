"""The runs that every adapter must repeat bit for bit: two ranks, a small network, a plain loop."""

import os

import torch
from torch.nn.functional import cross_entropy

from bounds.runtime import Exponential, RuntimeModel
from gpu_validation import Nesterov, PeriodicAveraging, SimulatedClock
from gpu_validation.averaging.exchange.parts import TwoShot
from gpu_validation.averaging.merge.rules import Corrected
from gpu_validation.averaging.settings import Pacing
from operators import QSGD, ErrorFeedback, Key, TopK

RANKS, STEPS, TAU, BATCH, LR = 2, 10, 4, 8, 0.1

SETTINGS = {
    "whole models": {},
    "compressed": {"operator": QSGD(levels=16), "key": Key(1)},
    "two shots": {
        "exchange": TwoShot(ErrorFeedback(TopK(fraction=0.25))),
        "outer": Nesterov(0.7, 0.5),
    },
    "in flight": {"operator": QSGD(levels=16), "merge": Corrected(delay=2)},
}


def auto(schedule="auto"):
    """An adaptive schedule that can be repeated, by times that no machine decides."""
    clock = SimulatedClock(RuntimeModel(Exponential(0.01), delay_s=0.05), m=RANKS, key=Key(3))
    return Pacing(schedule, clock=clock)


class Network(torch.nn.Module):
    """Returns its loss as the models of transformers do."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 3)
        )

    def forward(self, x, labels):
        return {"loss": cross_entropy(self.layers(x), labels)}


def batches(rank, steps=STEPS):
    draw = torch.Generator().manual_seed(100 + rank)
    return [
        {"x": torch.randn(BATCH, 4, generator=draw), "labels": torch.randint(3, (BATCH,), generator=draw)}
        for _ in range(steps)
    ]


def as_torchrun(place):
    """What torchrun tells a rank; the process group is there already."""
    os.environ.update(
        {
            "RANK": str(place.rank),
            "WORLD_SIZE": str(place.size),
            "LOCAL_RANK": str(place.rank),
            "LOCAL_WORLD_SIZE": str(place.size),
            "GROUP_RANK": "0",
        }
    )


def plain(place, settings, schedule=TAU, clip=None):
    """The same by hand."""
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.5)
    averaging = PeriodicAveraging(model, optimizer, schedule=schedule, **settings)
    for batch in batches(place.rank):

        def closure(batch=batch):
            loss = model(**batch)["loss"]
            loss.backward()
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            return loss

        optimizer.zero_grad()
        loss = closure()
        optimizer.step()
        averaging.step(loss, closure)
    averaging.average()  # within a round
    return outcome(averaging)


def outcome(averaging):
    """Parameters, buffers, bytes and the steps that the averaging has seen."""
    model = averaging.model
    state = {name: value.double() for name, value in model.state_dict().items()}
    vector = torch.cat([value.flatten() for value in state.values()])
    return vector, averaging.transport.payload_bytes, averaging.total_steps, averaging.tau


def different(one, other):
    """Whether two outcomes differ in a bit, a byte or a step."""
    return one[0].tobytes() != other[0].tobytes() or one[1:] != other[1:]


class Late(PeriodicAveraging):
    """Averages one step late."""

    def step(self, loss=None, closure=None):
        if not hasattr(self, "began"):
            self.began = True
            return None
        return super().step(loss, closure)


class Never(PeriodicAveraging):
    """Counts nothing."""

    def step(self, loss=None, closure=None):
        return None
