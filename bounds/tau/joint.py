"""Learning rate and number of local steps chosen together for a wall-clock budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..runtime.model import RuntimeModel
from ..symbols import eta, tau
from ..theorems.pasgd_runtime import pasgd_runtime
from .arguments import float_arguments
from .derivation import Derivation, unique_minimiser

NEWTON_STEPS = 60  # from the right of a convex increasing cubic: monotone, quadratic in the end
FIRST_BLOCK = 64


@dataclass(frozen=True)
class JointOptimum:
    """The best (eta, tau) for the bound of Theorem 1 in seconds.

    eta, tau : the pair; tau an integer, eta within the theorem's condition.  value : the bound there.
    synchronous_eta, synchronous_value : the same at tau = 1 with its own best eta.
    """

    eta: float
    tau: int
    value: float
    synchronous_eta: float
    synchronous_value: float

    @property
    def gain(self) -> float:
        """How many times smaller the bound is than that of tuned synchronous SGD, >= 1."""
        return self.synchronous_value / self.value

    @staticmethod
    def derivation() -> Derivation:
        """The proof, by sympy, that every tau has exactly one best eta."""
        return derivation()

    @staticmethod
    def latex() -> str:
        """The equation of the best eta in LaTeX."""
        return derivation().latex()


def joint_optimum(
    *, runtime: RuntimeModel, gap: float, L: float, sigma2: float, time_s: float, bits: float | None = None
) -> JointOptimum:
    """Minimise 2 gap c(tau)/(eta T) + eta L sigma2/m + eta^2 L^2 sigma2 (tau - 1) over eta and every integer tau.

    runtime : gives c(tau), the seconds per local step, and m.  gap, L, sigma2, time_s : as in ``tau_star``, gap > 0.
    For each tau the best eta is the positive root of a cubic, clipped where Theorem 1's condition ends.  The scan
    stops at the tau from which even free averaging loses.  Raises ValueError outside the ranges.
    """
    at = float_arguments("joint_optimum", gap=gap, L=L, sigma2=sigma2, time_s=time_s)
    if at["gap"] == 0:
        raise ValueError("joint_optimum needs gap > 0; at gap = 0 the start is already optimal")
    m = runtime.workers()
    mean_s = runtime.step.mean_s
    seconds = _seconds(runtime, bits)

    def value(taus: np.ndarray, seconds_each: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        etas = best_eta(taus, seconds_each, m=m, **at)
        bound = pasgd_runtime(eta=etas, tau=taus, m=m, step_s=seconds_each, delay_s=0, **at)
        return etas, np.asarray(bound)

    found: list[tuple[float, int, float]] = []
    first, block = 1, 1
    while True:
        taus = np.arange(first, first + block, dtype=float)
        etas, values = value(taus, np.array([seconds(int(n)) for n in taus]))
        i = int(np.argmin(values))
        found.append((float(values[i]), int(taus[i]), float(etas[i])))
        first, block = first + block, min(2 * block, FIRST_BLOCK * 64)
        _, floor = value(np.array([float(first)]), np.array([mean_s]))
        if floor[0] >= min(found)[0]:
            break
    best, synchronous = min(found), found[0]
    return JointOptimum(best[2], best[1], best[0], synchronous[2], synchronous[0])


def best_eta(
    taus: np.ndarray, seconds: np.ndarray, *, gap: float, L: float, sigma2: float, time_s: float, m: int
) -> np.ndarray:
    """The best learning rate for each tau: the root of 2 L^2 s (tau-1) x^3 + (L s/m) x^2 = 2 gap c/T, clipped.

    taus, seconds (c, per local step) : float arrays, shape (n,).  With s = sigma2 = 0 the condition decides alone.
    """
    cubic, square, constant = 2 * L**2 * sigma2 * (taus - 1), L * sigma2 / m, 2 * gap * seconds / time_s
    limit = eta_max(taus, L=L)
    if square == 0:
        return limit
    x = np.sqrt(constant / square)  # at or right of the root
    for _ in range(NEWTON_STEPS):
        x = x - (cubic * x**3 + square * x**2 - constant) / (3 * cubic * x**2 + 2 * square * x)
    return np.minimum(x, limit)


def eta_max(taus: np.ndarray, *, L: float) -> np.ndarray:
    """The largest eta with eta L + eta^2 L^2 tau (tau - 1) <= 1: 2/(L (1 + sqrt(1 + 4 tau (tau - 1))))."""
    return 2 / (L * (1 + np.sqrt(1 + 4 * taus * (taus - 1))))


@lru_cache(maxsize=1)
def derivation() -> Derivation:
    """For every tau > 1 the bound is convex in eta, falls from infinity and rises to infinity: one best eta."""
    return unique_minimiser(pasgd_runtime.value, eta, closed_form=False, above_one=(tau,))


def _seconds(runtime: RuntimeModel, bits: float | None) -> Callable[[int], float]:
    def seconds(n: int) -> float:
        return runtime.seconds_per_iteration(tau=n, bits=bits)

    if not math.isfinite(seconds(1)):
        raise ValueError("joint_optimum needs a finite mean step time; every tau takes infinitely long")
    return seconds
