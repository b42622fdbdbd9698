"""Record the pilots that ratedist carries: ``python -m gpu_validation.piloting.recorded resnet20 transformer``.

A plan can start from them: ``ratedist plan --pilot resnet20 --workers 64 --step-s 0.05``.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from operators import Key
from ratedist.pilots.pilot import RECORDED_IN, Pilot

from ..records.storage import write_atomically
from ..workloads.data import MarkovText
from ..workloads.images import ResNet20
from ..workloads.network import Characters, Network
from .own_training import Training
from .pilot import TAUS, pilot

OPERATORS = (
    "cast:bf16,rounding=stochastic",
    "qsgd:16,bucket=512",
    "tcdq:omega=0.1",
    "tcdq:omega=1",
    "topk:0.01",
    "scaled_sign",
)
BATCHES, WORKERS = Key(0).fold_in(0x7069), 4


@dataclass(frozen=True)
class Recipe:
    """A training whose pilot is recorded.

    Parameters
    ----------
    about : str
        What is trained, in words.
    workload : Network
        Model, data and loss.
    optimizer : callable
        From the parameters to the optimizer.
    steps : int
        Steps of the whole training.
    before : int, optional
        Steps of one worker before the pilot.
    """

    about: str
    workload: Network
    optimizer: Callable[..., torch.optim.Optimizer]
    steps: int
    before: int = 200

    def record(self, *, moments: int = 16, rounds: int = 4, taus: Sequence[int] = TAUS) -> Pilot:
        """Train, measure, and return the pilot.

        Parameters
        ----------
        moments : int, optional
            Points of the path at which gradients are measured.
        rounds : int, optional
            Trials of rounds of four workers.
        taus : sequence of int, optional
            Local steps that are looked at.
        """
        model = self.workload.model()
        optimizer = self.optimizer(model.parameters())
        training = Training(model, optimizer, self.loss, batches(WORKERS))
        for _ in range(self.before):
            training.step(training.batch())
        measured = pilot(
            model,
            optimizer,
            self.loss,
            batches(0),
            operators=OPERATORS,
            moments=moments,
            rounds=rounds,
            taus=taus,
            steps=self.steps,
            worker_batches=[batches(rank) for rank in range(WORKERS)],
        )
        return replace(measured, recorded=self.about)

    def loss(self, model: torch.nn.Module, key: Key) -> torch.Tensor:
        """Return the loss of the batch of a key."""
        return self.workload.loss(model, key=key)


def batches(rank: int) -> Iterator[Key]:
    """Yield the keys by which a workload draws the batches of a rank."""
    return (replace(BATCHES, rank=rank, step=step) for step in itertools.count())


RECIPES = {
    "resnet20": Recipe(
        "ResNet-20, batch 32 of synthetic images, SGD with momentum 0.9 at 0.1",
        ResNet20(),
        partial(torch.optim.SGD, lr=0.1, momentum=0.9),
        64_000,
    ),
    "transformer": Recipe(
        "a transformer of one block, 16 windows of 64 letters, AdamW at 0.002",
        Characters(source=MarkovText(letters=16, window=64, samples=4096), batch=16, width=192),
        partial(torch.optim.AdamW, lr=0.002),
        30_000,
    ),
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[1:]:
        write_atomically(RECORDED_IN / f"{name}.json", json.dumps(RECIPES[name].record().to_dict()) + "\n")
