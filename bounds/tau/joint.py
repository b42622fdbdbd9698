"""Learning rate and number of local steps chosen together for a wall-clock budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache

from ..runtime.model import Bits, RuntimeModel
from ..symbols import eta, tau
from ..theorems.local_sgd import pasgd_convex_sharp, pasgd_iterations, pasgd_smooth_sharp
from ..theorems.seconds import pasgd_runtime
from .arguments import float_arguments
from .derivation import Derivation, unique_minimiser
from .in_eta import INSIDE, in_eta
from .least import least_integer


@dataclass(frozen=True)
class JointOptimum:
    """The best (eta, tau) for the bound of Theorem 1 in seconds.

    Parameters
    ----------
    eta : float
        The learning rate, within the theorem's condition.
    tau : int
        The local steps between averagings.
    value : float
        The bound there.
    synchronous_eta : float
        The best learning rate at tau = 1.
    synchronous_value : float
        The bound at tau = 1 with that learning rate.
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
        """Return the proof, by sympy, that every tau has exactly one best eta."""
        return derivation()

    @staticmethod
    def latex() -> str:
        """Return the equation of the best eta in LaTeX."""
        return derivation().latex()


def joint_optimum(
    *,
    runtime: RuntimeModel,
    gap: float,
    L: float,
    sigma2: float,
    time_s: float,
    bits: Bits = None,
    rho: float | None = None,
) -> JointOptimum:
    """Minimise 2 gap c(tau)/(eta T) + eta L sigma2/m + eta^2 L^2 sigma2 (tau - 1) over eta and every integer tau.

    Parameters
    ----------
    runtime : RuntimeModel
        Gives c(tau), the seconds per local step, and m.
    gap : float
        F(x_1) - inf F, > 0.
    L : float
        Smoothness constant of F, > 0.
    sigma2 : float
        Variance of one worker's mini-batch gradient, >= 0.
    time_s : float, seconds
        Wall-clock budget, > 0.
    bits : Bits, bits, optional
        Length of one message; needed where communication has a cost.
    rho : float or None, optional
        Every Hessian is >= -rho, 0 where F is convex: then ``pasgd_smooth_sharp`` takes the place of Theorem 1, and
        eta L <= 1 that of its condition.

    Raises
    ------
    ValueError
        For arguments outside the ranges.

    Notes
    -----
    For each tau the best eta is the positive root of a cubic, clipped where Theorem 1's condition ends.  The best tau
    is found exactly, by branch and bound.
    """
    given = float_arguments("joint_optimum", gap=gap, L=L, sigma2=sigma2, time_s=time_s)
    if given["gap"] == 0:
        raise ValueError("joint_optimum needs gap > 0; at gap = 0 the start is already optimal")
    m, mean_s = runtime.workers(), runtime.step.mean_s
    if not 0 < mean_s < math.inf:
        raise ValueError(f"joint_optimum needs a finite mean step time > 0; got {mean_s}")

    constants = {name: given[name] for name in ("gap", "L", "sigma2")} | {"m": m}
    if rho is not None:
        constants |= float_arguments("joint_optimum", rho=rho)

    def best(period: int, seconds: float) -> tuple[float, float]:
        """Return (bound, learning rate) with the price of this tau and this many seconds a step."""
        steps = given["time_s"] / seconds
        if rho:
            return _best_curved(constants | {"tau": period, "K": steps})
        form = in_eta(pasgd_iterations if rho is None else pasgd_convex_sharp, **_without_rho(constants), tau=period)
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


def _without_rho(constants: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in constants.items() if name != "rho"}


def _best_curved(at: dict[str, float]) -> tuple[float, float]:
    """Return (bound, learning rate): for whole tau the bound is convex in eta, a power series of positive terms."""

    from scipy.optimize import minimize_scalar  # takes half a second to import

    def value(log_rate: float) -> float:
        return float(pasgd_smooth_sharp(**at, eta=math.exp(log_rate)))

    top = math.log(INSIDE / at["L"])
    descent = minimize_scalar(value, bounds=(top - 60, top), method="bounded", options={"xatol": 1e-10})
    best = min((float(descent.x), top), key=value)
    return value(best), math.exp(best)


@lru_cache(maxsize=1)
def derivation() -> Derivation:
    """Derive the one best eta: for every tau > 1 the bound is convex in eta and infinite at both ends."""
    return unique_minimiser(pasgd_runtime.value, eta, closed_form=False, above_one=(tau,))
