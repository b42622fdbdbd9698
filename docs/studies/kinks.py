"""How bad local steps can be: convex problems with a kink, simulated: ``python docs/measure.py studies/kinks.py``.

F' = max(x, -kink), L = 1, all workers alike, two-valued noise of variance 1 whose large value has probability ``rare``.
For every (eta, m, tau) the worst of a grid of kinks and noises is chosen on one seed and measured on another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

PLACES = [(0.05, 16, tau) for tau in (2, 4, 8)] + [(0.2, 16, tau) for tau in (2, 4, 8)]
RELATIVE_KINKS = (0.2, 0.3, 0.4, 0.5, 0.65)  # of eta sqrt(tau), the size of a worker's walk
RARE = (0.5, 0.2, 0.1, 0.05)


def stationary(seed: int, *, eta: float, m: int, tau: int, kink: float, rare: float, copies: int) -> np.ndarray:
    """Return the mean of F'(xbar)^2 over the second half of every copy's rounds, shape (copies,)."""
    rng = np.random.default_rng(seed)
    large, small = math.sqrt((1 - rare) / rare), -math.sqrt(rare / (1 - rare))
    rounds = 2 * math.ceil(30 / (eta * tau)) + 40
    models, total = np.zeros((copies, m)), np.zeros(copies)
    for index in range(rounds):
        for _ in range(tau):
            if 2 * index >= rounds:
                total += np.maximum(models.mean(1), -kink) ** 2
            noise = np.where(rng.random(models.shape) < rare, large, small)
            models -= eta * (np.maximum(models, -kink) + noise)
        models[:] = models.mean(1, keepdims=True)
    return np.asarray(total / (tau * (rounds - -(-rounds // 2))))


def worst(eta: float, m: int, tau: int, rare: tuple[float, ...], copies: int) -> dict[str, float]:
    """Return the worst case of the grid with these noises, measured anew, with its standard error."""
    grid = [(relative * eta * math.sqrt(tau), chance) for relative in RELATIVE_KINKS for chance in rare]
    place = {"eta": eta, "m": m, "tau": tau}
    kink, chance = max(grid, key=lambda c: stationary(1, **place, kink=c[0], rare=c[1], copies=copies // 10).mean())
    runs = stationary(2, **place, kink=kink, rare=chance, copies=copies)
    error = runs.std(ddof=1) / math.sqrt(len(runs))
    return place | {"kink": kink, "rare": chance, "mean": float(runs.mean()), "error": float(error)}


def main(places: int = len(PLACES), copies: int = 1000) -> Iterator[dict[str, Any]]:
    for eta, m, tau in PLACES[:places]:
        for noise, rare in (("symmetric", RARE[:1]), ("skewed", RARE[1:])):
            yield {"noise": noise, **worst(eta, m, tau, rare, copies)}
