"""The number of local steps when step times are random: averaging also waits less often for the slowest worker."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache

import sympy as sp

from ..runtime.law import Law, normal_max_moment
from ..runtime.laws import Constant
from ..runtime.model import Bits, RuntimeModel
from ..symbols import order_mean, step_s, step_sd_s, tau
from ..theorems.seconds import pasgd_runtime
from .arguments import exact_arguments
from .derivation import Derivation, unique_minimiser
from .integer import tau_cap
from .least import ROUNDING, least_integer
from .price import LocalStepPrice, local_step_price

FARTHEST = 2**20  # times the best tau: no larger one is looked at


@dataclass(frozen=True)
class TauStraggler:
    """The integer minimiser of Theorem 1 with the expected seconds per step c(tau) of a runtime model.

    Parameters
    ----------
    cap : int or None
        The largest tau that the learning rate allows; None if eta L > 1.
    capped : int or None
        The best among 1..cap; None if there is no cap.
    predictor : float or None
        The real root of the central-limit approximation, None if the steps have no standard deviation.
    search : callable or None
        Finds the best over all integers; None without gradient noise.
    bound : callable
        The error bound in seconds at an integer tau, the variance of the mean included.
    """

    cap: int | None
    capped: int | None
    predictor: float | None
    search: Callable[[], int] | None = field(repr=False, compare=False)
    bound: Callable[[int], float] = field(repr=False, compare=False)

    def near(self, steps: int, factor: float) -> tuple[int, int]:
        """Return a smaller and a larger tau with at most factor times the bound of some steps, up to the cap if any.

        Where the bound falls up to these steps and rises beyond them, the two are the outermost.

        Parameters
        ----------
        steps : int
            tau, from 1; the best one.
        factor : float
            Above 1.
        """
        limit = factor * self.bound(steps)

        def last(inside: int, outside: int) -> int:
            while abs(outside - inside) > 1:
                middle = (inside + outside) // 2
                inside, outside = (middle, outside) if self.bound(middle) <= limit else (inside, middle)
            return inside

        most = FARTHEST * steps if self.cap is None else max(steps, self.cap)
        beyond = 2 * steps
        while beyond <= most and self.bound(beyond) <= limit:
            beyond *= 2
        return last(steps, 0), last(beyond // 2, min(beyond, most + 1))

    @cached_property
    def integer(self) -> int | None:
        """The best over all integers; None without gradient noise (more is always better).

        Found when it is asked for: far beyond the cap, at a tiny learning rate, that takes long.
        """
        return None if self.search is None else self.search()

    @staticmethod
    def derivation() -> Derivation:
        """Return the proof, by sympy, that the predictor's equation has exactly one positive root."""
        return derivation()

    @staticmethod
    def latex() -> str:
        """Return the predictor's equation in LaTeX."""
        return derivation().latex()


def tau_straggler(
    *,
    runtime: RuntimeModel,
    gap: float,
    eta: float,
    L: float,
    sigma2: float,
    time_s: float,
    bits: Bits = None,
    rho: float | None = None,
) -> TauStraggler:
    """Return the best integer tau for A c(tau) + B tau, A = 2 gap/(eta T), B = eta^2 L^2 sigma2.

    Parameters
    ----------
    runtime : RuntimeModel
        With its number of workers; bits only if it has a communication cost.  Other arguments as in ``tau_star``.
        Searched by branch and bound over all integers, for E max of means never grows with tau.  Up to 4096 the tau is
        the best one; a larger one has at most 1 + 1e-8 times the least value.
    gap : float
        F(x_1) - inf F; 0 <= gap.
    eta : float
        Learning rate; 0 < eta.
    L : float
        Smoothness constant of F; 0 < L.
    sigma2 : float
        Variance of one worker's mini-batch gradient; 0 <= sigma2.
    time_s : float, seconds
        Wall-clock budget, seconds; 0 < time_s.
    bits : Bits, bits, optional
        Length of one message; needed where communication has a cost.
    rho : float or None, optional
        Every Hessian is >= -rho, 0 where F is convex: then the last term of ``pasgd_smooth_sharp`` takes the place of B
        tau, eta L <= 1 is all that is needed, and there is no cap.  None assumes nothing but Theorem 1.

    Raises
    ------
    ValueError
        For arguments outside the ranges or if the mean step time is infinite.
    """
    given = exact_arguments("tau_straggler", gap=gap, eta=eta, L=L, sigma2=sigma2, time_s=time_s)
    if runtime.step.mean_s == math.inf:
        raise ValueError("tau_straggler needs a finite mean step time; every tau takes infinitely long")
    decrease = float(2 * given["gap"] / (given["eta"] * given["time_s"]))
    cap = tau_cap(eta_L=given["eta"] * given["L"])
    price = LocalStepPrice(2 * float(given["eta"] ** 2 * given["L"] ** 2 * given["sigma2"]), 0.0)
    if rho is not None:
        constants = {name: given[name] for name in ("eta", "L", "sigma2")} | exact_arguments("tau_straggler", rho=rho)
        price, cap = local_step_price("tau_straggler", m=runtime.workers(), **constants), None
    averaging_s = runtime.seconds_per_averaging(bits=bits)

    @cache
    def seconds(n: int) -> float:
        return runtime.seconds_per_iteration(tau=n, bits=bits)

    def value(n: int) -> float:
        return decrease * seconds(n) + float(price(n))

    variance = float(given["eta"] * given["L"] * given["sigma2"]) / runtime.workers()

    def error(n: int) -> float:
        return value(n) + variance

    if price.scale == 0:
        return TauStraggler(cap, cap, None, None, error)

    cheapest = price.best_real(decrease * averaging_s)  # of the averaging's share and the price of local steps

    def bound(a: int, b: int) -> float:
        n = min(max(cheapest, a), b)
        waiting_s = seconds(b) - averaging_s / b  # the slowest worker's mean never grows with tau
        return (decrease * (waiting_s + averaging_s / n) + float(price(n))) * (1 - ROUNDING)

    def floor(n: int) -> float:
        return decrease * runtime.step.mean_s + float(price(n))

    start = cheapest if isinstance(runtime.step, Constant) else 1.0  # where nobody waits, that is the minimiser
    return TauStraggler(
        cap=cap,
        capped=None if cap is None else least_integer(value, bound=bound, floor=floor, cap=cap, start=start),
        predictor=_predictor(runtime, averaging_s, decrease, price),
        search=lambda: least_integer(value, bound=bound, floor=floor, start=start),
        bound=error,
    )


@lru_cache(maxsize=1)
def derivation() -> Derivation:
    """Return the predictor's equation A(D/tau^2 + e_m sd/(2 tau^(3/2))) = B has exactly one positive root.

    Theorem 1 with Y replaced by the central-limit value of the slowest worker's mean, Y + e_m sd/sqrt(tau).
    """
    slowest_s = step_s + order_mean * step_sd_s / sp.sqrt(tau)
    return unique_minimiser(pasgd_runtime.value.subs(step_s, slowest_s), tau, closed_form=False)


def _predictor(runtime: RuntimeModel, averaging_s: float, decrease: float, price: LocalStepPrice) -> float | None:
    """Return the root of the predictor's equation by bisection."""
    if not isinstance(runtime.step, Law) or not math.isfinite(runtime.step.sd_s):
        return None
    wait_s = normal_max_moment(runtime.workers()) * runtime.step.sd_s / 2

    def slope(x: float) -> float:
        return price.slope(x) - decrease * (averaging_s / x**2 + wait_s / x**1.5)

    if decrease * (averaging_s + wait_s) == 0:
        return 0.0
    low = high = 1.0
    while slope(low) > 0:
        low /= 2
    while slope(high) < 0:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return (low + high) / 2
