"""Where outer steps of SGD begin to diverge, by bisection: ``python docs/measure.py
studies/outer_limits.py``.

One eigen-direction, four workers with the same curvature, no noise, float64.  A run counts as stable if the global
model is no larger in the last 200 of 2000 rounds than in rounds 200 to 400.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

TAU, WORKERS, ROUNDS = 10, 4, 2000
RULES = {"blocking": 0, "corrected": 5, "eager": 0, "delayed": 0}  # and the steps in flight


class Outer:
    """A global model of one number with torch's optimizer on it."""

    def __init__(self, lr: float, momentum: float) -> None:
        self.theta = torch.ones(1, dtype=torch.float64, requires_grad=True)
        self.sgd = torch.optim.SGD([self.theta], lr=lr, momentum=momentum, nesterov=momentum > 0)

    def step(self, delta: float) -> float:
        """Take one step along theta - mean and return theta."""
        self.theta.grad = torch.tensor([delta], dtype=torch.float64)
        self.sgd.step()
        return float(self.theta.detach())


def trajectory(rule: str, x: float, lr: float, momentum: float) -> list[float]:
    """|theta| after every round; workers without noise are alike, so that one stands for all."""
    delay, shrink, outer = RULES[rule], 1 - x, Outer(lr, momentum)
    theta = model = 1.0
    late, seen = 0.0, []
    for _ in range(ROUNDS):
        sent = model * shrink ** (TAU - delay)
        gone_on = sent * shrink**delay
        fresh = theta - sent
        delta = {
            "blocking": fresh,
            "corrected": fresh,
            "delayed": late,
            "eager": fresh / WORKERS + late * (1 - 1 / WORKERS),
        }[rule]
        theta = outer.step(delta)
        late, model = fresh, theta + (gone_on - sent)
        seen.append(abs(theta))
        if not abs(theta) < 1e100:
            break
    return seen


def stable(rule: str, x: float, lr: float, momentum: float) -> bool:
    """Whether the run shrinks."""
    seen = trajectory(rule, x, lr, momentum)
    return len(seen) == ROUNDS and max(seen[-200:]) <= max(seen[200:400])


def limit(rule: str, x: float, momentum: float) -> float:
    """The largest stable rate to .2 %."""
    low, high = 0.0, 1.0
    while stable(rule, x, high, momentum):
        low, high = high, 2 * high
    while high - low > 0.002 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if stable(rule, x, middle, momentum) else (low, middle)
    return (low + high) / 2


def main() -> Iterator[dict[str, Any]]:
    for rule in RULES:
        for momentum in (0.0, 0.5, 0.9):
            for h in (0.1, 0.5, 0.9):
                x = -math.expm1(math.log1p(-h) / TAU)
                yield {"rule": rule, "momentum": momentum, "h": h, "limit": limit(rule, x, momentum)}
