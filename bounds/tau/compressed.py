"""The number of local steps and the strength of compression chosen together at a fixed learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy as sp

from ..bound import ROUNDING_SLACK
from ..symbols import amplification, delay_s, latency_s, message_s, omega, tau
from ..theorems.seconds import pasgd_compressed_runtime
from .arguments import float_arguments
from .derivation import PosynomialDerivation, unique_posynomial_minimiser

OBJECTIVE = pasgd_compressed_runtime.value.subs(
    {omega: amplification - 1, delay_s: latency_s + message_s / amplification}
)
BISECTIONS = 200


@dataclass(frozen=True)
class CompressedOptimum:
    """The best (tau, u) of the joint bound, u = 1 + omega, for messages of 1/u the length.

    Parameters
    ----------
    tau : float
        Local steps between averagings, >= 1.
    u : float
        How many times shorter a message is, >= 1.
    value : float
        The bound there.
    covered : bool
        Whether the bound's own condition holds there; if not, lower eta.
    integer_tau : int
        The best whole tau: a neighbour of tau, because the bound at the best u is convex in log tau.
    integer_u : float
        The best u for it.

    Attributes
    ----------
    omega : float
        u - 1.
    """

    tau: float
    u: float
    value: float
    covered: bool
    integer_tau: int
    integer_u: float

    @property
    def omega(self) -> float:
        """u - 1, the variance constant of the compressor to use."""
        return self.u - 1

    @staticmethod
    def derivation(*, latency: bool = False) -> PosynomialDerivation:
        """Return the proof that the optimum is unique: in closed form without latency, by convexity with it.

        Parameters
        ----------
        latency : bool, optional
            Whether averaging has a part that does not depend on the message.
        """
        return derivation(latency=latency)

    @staticmethod
    def latex() -> str:
        """Return the optimum without latency in LaTeX."""
        return derivation(latency=False).latex()


def compressed_optimum(
    *,
    gap: Any,
    eta: Any,
    L: Any,
    sigma2: Any,
    m: Any,
    time_s: Any,
    step_s: Any,
    message_s: Any,
    latency_s: Any = 0,
) -> CompressedOptimum:
    """Minimise the joint bound over tau, u >= 1 when one averaging takes latency_s + message_s/u seconds.

    Parameters
    ----------
    gap : number
        F(x_1) - inf F; 0 <= gap.
    eta : number
        Learning rate; 0 < eta.
    L : number
        Smoothness constant of F; 0 < L.
    sigma2 : number
        Variance of one worker's mini-batch gradient; 0 <= sigma2.
    m : number
        Number of workers; 1 <= m, an integer.
    time_s : number, seconds
        Wall-clock budget, seconds; 0 < time_s.
    step_s : number, seconds
        Time of one local step, seconds; 0 <= step_s.
    message_s : number, seconds
        Time to send one uncompressed message, > 0.  A message of 1/u the length with omega = u - 1 is random-k, u =
        d/k; other compressors trade better and are compared by ``bounds.plan``.  Without latency u*/tau* = eta L m/2:
        above 1, compress more than you skip.  Arguments otherwise as in ``tau_star``; sigma2 > 0.
    latency_s : number, seconds, optional
        Part of one averaging that does not depend on the message, in seconds.

    Raises
    ------
    ValueError
        For arguments outside the ranges.
    """
    given = float_arguments(
        "compressed_optimum",
        gap=gap,
        eta=eta,
        L=L,
        sigma2=sigma2,
        m=m,
        time_s=time_s,
        step_s=step_s,
        message_s=message_s,
        latency_s=latency_s,
    )
    if given["sigma2"] == 0:
        raise ValueError("compressed_optimum needs sigma2 > 0; without noise only the learning rate limits tau")
    price = _Price(given)
    best = price.best_tau()
    value, load = _numeric()

    def bound(x: float) -> float:
        return value(given | {"tau": x, "amplification": price.best_u(x)})

    whole = min(max(math.floor(best), 1), math.ceil(best), key=bound)
    covered = load(given | {"tau": best, "amplification": price.best_u(best)}) <= 1 + ROUNDING_SLACK
    return CompressedOptimum(best, price.best_u(best), bound(best), covered, whole, price.best_u(whole))


class _Price:
    """The stationary equations of c1 (latency + t/u)/tau + c2 u + c3 tau on tau, u >= 1.

    The objective is strictly convex in (log tau, log u), hence so is its minimum over log u in log tau: the slope at
    u(tau) = max(1, sqrt(c1 t/(c2 tau))) changes its sign once.
    """

    def __init__(self, at: dict[str, float]) -> None:
        self.c1 = 2 * at["gap"] / (at["eta"] * at["time_s"])
        self.c2 = 2 * at["eta"] * at["L"] * at["sigma2"] / at["m"]
        self.c3 = (at["eta"] * at["L"]) ** 2 * at["sigma2"]
        self.message_s, self.latency_s = at["message_s"], at["latency_s"]

    def best_u(self, x: float) -> float:
        return max(1.0, math.sqrt(self.c1 * self.message_s / (self.c2 * x)))

    def slope(self, x: float) -> float:
        return self.c3 * x**2 - self.c1 * (self.latency_s + self.message_s / self.best_u(x))

    def best_tau(self) -> float:
        low, high = 1.0, 2.0
        if self.slope(low) >= 0:
            return low
        while self.slope(high) < 0:
            high *= 2
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.slope(middle) >= 0 else (middle, high)
        return (low + high) / 2


@lru_cache(maxsize=1)
def _numeric() -> tuple[Callable[[dict[str, float]], float], Callable[[dict[str, float]], float]]:
    """Return the joint bound and the left side of its condition as functions of values by name."""

    def compiled(expression: sp.Expr) -> Callable[[dict[str, float]], float]:
        names = sorted(symbol.name for symbol in expression.free_symbols)
        function = sp.lambdify(names, expression)
        return lambda at: float(function(*(at[name] for name in names)))

    (condition,) = pasgd_compressed_runtime.assuming
    return compiled(OBJECTIVE), compiled(condition.lhs.subs(omega, amplification - 1))


@lru_cache(maxsize=2)
def derivation(*, latency: bool = False) -> PosynomialDerivation:
    """Return the unique positive minimiser of the joint bound in (tau, u).

    Without latency the three terms are equal there; with latency it is the root that ``compressed_optimum`` finds.
    """
    objective = OBJECTIVE if latency else OBJECTIVE.subs(latency_s, 0)
    return unique_posynomial_minimiser(objective, (tau, amplification), closed_form=not latency)
