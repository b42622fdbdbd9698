"""Synchronous training in which some workers lie: one merge a step, every message encoded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import torch

from operators import Aggregate, Key

from ...distributed.tensors import flat, load
from ...workloads import Bundled, LogisticRegression
from .attacks import Attack
from .votes import ATTACK, NOISE, SEND

FIRST_RATE, RATIO = 0.1, math.sqrt(10)  # tuning walks from the first rate, by this factor, while the loss falls
LONGEST_WALK = 12  # steps of that walk
HORIZON = 10.0  # a loss above it is recorded as it


def tuned(rule: Aggregate, attack: Attack | None, workers: int, faulty: int, steps: int, seeds: Sequence[int]) -> float:
    """Return the learning rate with the least final loss, averaged over the tuning seeds, among neighbours by RATIO."""

    @cache
    def loss(exponent: int) -> float:
        rate = FIRST_RATE * RATIO**exponent
        return sum(train(rule, attack, workers, faulty, steps, seed, rate)[0] for seed in seeds)

    best = 0
    for _ in range(LONGEST_WALK):
        best = min((best, best - 1, best + 1), key=loss)
    return FIRST_RATE * RATIO**best


def train(
    rule: Aggregate, attack: Attack | None, workers: int, faulty: int, steps: int, seed: int, rate: float
) -> tuple[float, float, list[float]]:
    """Return (final loss, held-out accuracy, losses every tenth step) of synchronous training with one merge a step."""
    workload = LogisticRegression(source=Bundled("digits", held_out=0.2))
    model = workload.model()
    parameters = list(model.parameters())
    curve: list[float] = []
    for step in range(steps):
        keys = [Key(seed, step=step, rank=i) for i in range(workers)]
        gradients = []
        for key in keys:
            loss = workload.loss(model, key=key.fold(NOISE))
            gradients.append(flat(torch.autograd.grad(loss, parameters), torch.float32).numpy())
        if attack is not None:
            truth = np.stack(gradients[faulty:]).mean(axis=0)
            for i in range(faulty):
                gradients[i] = attack.corrupt(gradients[i], truth=truth, key=keys[i].fold(ATTACK))
        if not all(np.isfinite(x).all() for x in gradients):  # diverged
            return HORIZON, workload.accuracy(model) or 0.0, curve + [HORIZON] * (steps // 10 - len(curve))
        merged = rule.round([torch.from_numpy(x) for x in gradients], keys=[k.fold(SEND) for k in keys])
        load(flat(parameters) - rate * merged, parameters)
        if step % 10 == 9:
            curve.append(_capped(float(workload.objective(model).detach())))
    return curve[-1], workload.accuracy(model) or 0.0, curve


def _capped(loss: float) -> float:
    return min(loss, HORIZON) if math.isfinite(loss) else HORIZON
