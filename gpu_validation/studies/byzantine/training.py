"""Synchronous training in which some workers lie: one merge a step, every message encoded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import islice

import numpy as np
import torch

from operators import Aggregate, Key

from ...measurement.shared_model import shared_steps
from ...workloads import LogisticRegression
from ...workloads.digits import DIGITS
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
    workload = LogisticRegression(source=DIGITS)
    model, done = workload.model(), 0
    curve: list[float] = []

    def merge(gradients: list[torch.Tensor], keys: Sequence[Key]) -> torch.Tensor | None:
        sent = [gradient.float().numpy() for gradient in gradients]
        if attack is not None:
            truth = np.stack(sent[faulty:]).mean(axis=0)
            for i in range(faulty):
                sent[i] = attack.corrupt(sent[i], truth=truth, key=keys[i].fold_in(ATTACK))
        if not all(np.isfinite(x).all() for x in sent):  # diverged
            return None
        return rate * rule.round([torch.from_numpy(x) for x in sent], keys=[k.fold_in(SEND) for k in keys])

    for done in islice(shared_steps(workload, model, merge, workers=workers, seed=seed, stream=NOISE), steps):
        if done % 10 == 0:
            curve.append(_capped(float(workload.objective(model).detach())))
    curve += [HORIZON] * (steps // 10 - len(curve))
    return curve[-1] if done == steps else HORIZON, workload.accuracy(model) or 0.0, curve


def _capped(loss: float) -> float:
    return min(loss, HORIZON) if math.isfinite(loss) else HORIZON
