"""Synchronous training in which some workers lie: one merge a step, every message encoded."""

from __future__ import annotations

import math

import numpy as np
import torch

from operators import Aggregate, Key

from ..tensors import flat, load
from ..workloads import Bundled, LogisticRegression
from .attack import Attack
from .votes import ATTACK, NOISE, SEND

LENGTH = {"majority_vote": 2e-3, "mean": 0.5, "coordinate_median": 0.5, "trimmed_mean": 0.5}  # learning rates
HORIZON = 10.0  # a loss above it is recorded as it


def train(
    rule: Aggregate, attack: Attack | None, workers: int, faulty: int, steps: int, seed: int
) -> tuple[float, float, list[float]]:
    """(final loss, held-out accuracy, losses every tenth step) of synchronous training with one merge a step."""
    workload = LogisticRegression(source=Bundled("digits", held_out=0.2))
    model = workload.model()
    parameters, curve = list(model.parameters()), []
    for step in range(steps):
        keys = [Key(seed, step=step, rank=i) for i in range(workers)]
        own = []
        for key in keys:
            loss = workload.loss(model, key=key.fold(NOISE))
            own.append(flat(torch.autograd.grad(loss, parameters), torch.float32).numpy())
        if attack is not None:
            truth = np.stack(own[faulty:]).mean(axis=0)
            for i in range(faulty):
                own[i] = attack.corrupt(own[i], truth=truth, key=keys[i].fold(ATTACK))
        merged = rule.round([torch.from_numpy(x) for x in own], keys=[k.fold(SEND) for k in keys])
        load(flat(parameters) - LENGTH[rule.name] * merged, parameters)
        if step % 10 == 9:
            curve.append(_capped(float(workload.objective(model).detach())))
    return curve[-1], workload.accuracy(model) or 0.0, curve


def _capped(loss: float) -> float:
    return min(loss, HORIZON) if math.isfinite(loss) else HORIZON
