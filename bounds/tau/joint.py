"""Learning rate and number of local steps chosen together for a wall-clock budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache

from ..runtime.model import Bits, RuntimeModel
from ..symbols import eta, tau
from ..theorems.pasgd_iterations import pasgd_iterations
from ..theorems.pasgd_runtime import pasgd_runtime
from .arguments import float_arguments
from .derivation import Derivation, unique_minimiser
from .in_eta import in_eta
from .least import least_integer


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
    *, runtime: RuntimeModel, gap: float, L: float, sigma2: float, time_s: float, bits: Bits = None
) -> JointOptimum:
    """Minimise 2 gap c(tau)/(eta T) + eta L sigma2/m + eta^2 L^2 sigma2 (tau - 1) over eta and every integer tau.

    runtime : gives c(tau), the seconds per local step, and m.  gap, L, sigma2, time_s : as in ``tau_star``, gap > 0.
    For each tau the best eta is the positive root of a cubic, clipped where Theorem 1's condition ends.  The best tau
    is found exactly, by branch and bound.  Raises ValueError outside the ranges.
    """
    given = float_arguments("joint_optimum", gap=gap, L=L, sigma2=sigma2, time_s=time_s)
    if given["gap"] == 0:
        raise ValueError("joint_optimum needs gap > 0; at gap = 0 the start is already optimal")
    m, mean_s = runtime.workers(), runtime.step.mean_s
    if not 0 < mean_s < math.inf:
        raise ValueError(f"joint_optimum needs a finite mean step time > 0; got {mean_s}")

    def best(period: int, seconds: float) -> tuple[float, float]:
        """(bound, learning rate) with the price of this tau and this many seconds a step."""
        form = in_eta(pasgd_iterations, gap=given["gap"], L=given["L"], sigma2=given["sigma2"], m=m, tau=period)
        steps = given["time_s"] / seconds
        rate = float(form.best_for_steps(steps))
        return float(form.value(rate, steps)), rate

    @cache
    def seconds(n: int) -> float:
        return runtime.seconds_per_iteration(tau=n, bits=bits)

    period = least_integer(
        lambda n: best(n, seconds(n))[0],
        bound=lambda a, b: best(a, seconds(b))[0],
        floor=lambda n: best(n, mean_s)[0],
    )
    (value, rate), (synchronous, synchronous_rate) = best(period, seconds(period)), best(1, seconds(1))
    return JointOptimum(rate, period, value, synchronous_rate, synchronous)


@lru_cache(maxsize=1)
def derivation() -> Derivation:
    """For every tau > 1 the bound is convex in eta, falls from infinity and rises to infinity: one best eta."""
    return unique_minimiser(pasgd_runtime.value, eta, closed_form=False, above_one=(tau,))
