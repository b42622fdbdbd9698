"""What local steps cost in the error bounds that are made for a curvature: linear in tau, or growing with saddles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..special.growth import MeanGrowth
from .integer import SLACK


@dataclass(frozen=True)
class LocalStepPrice:
    """The last term of ``pasgd_smooth_sharp``, (1 - 1/m) eta^2 ((L + rho)/2)^2 sigma2 MeanGrowth(y, tau).

    Parameters
    ----------
    scale : float
        What stands before MeanGrowth.
    growth : float
        y = eta rho (2 + eta rho); 0 where F is convex.
    """

    scale: float
    growth: float

    def __call__(self, tau: Any) -> Any:
        """Return the price of tau local steps, real or an array."""
        return self.scale * MeanGrowth.kernel(self.growth, tau)

    def slope(self, tau: float) -> float:
        """Return the derivative of the price by tau > 0."""
        if self.growth == 0:
            return self.scale / 2
        return self.scale * _integral(tau * math.log1p(self.growth)) / (self.growth * tau) ** 2

    def best_real(self, averaging: float) -> float:
        """Return the minimiser of averaging/tau + price(tau) over tau > 0; averaging >= 0.

        tau^2 times the derivative of the price is scale (1 + e^u (u - 1))/y^2 with u = tau log(1 + y): it grows from 0
        to infinity, so that the sum has one minimiser and falls before and rises after it.
        """
        if averaging == 0:
            return 0.0
        if self.scale == 0:
            return math.inf
        if self.growth == 0:
            return math.sqrt(2 * averaging / self.scale)
        target = averaging / self.scale * self.growth**2
        low, high = 0.0, math.sqrt(2 * target)  # 1 + e^u (u - 1) >= u^2/2
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if _integral(middle) < target else (low, middle)
        return (low + high) / 2 / math.log1p(self.growth)

    def best_integer(self, averaging: float) -> int | None:
        """Return the best integer, a neighbour of the real minimiser and the smaller at a tie; None if infinite."""
        real = self.best_real(averaging)
        if math.isinf(real):
            return None
        near = {max(1, math.floor(real)), max(1, math.ceil(real))}
        return min(sorted(near), key=lambda n: averaging / n + float(self(n)))


def local_step_price(
    rule: str, *, eta: Fraction, L: Fraction, sigma2: Fraction, m: int, rho: Fraction
) -> LocalStepPrice:
    """Return the price for Hessians >= -rho.

    Raises
    ------
    ValueError
        If eta L > 1 or rho > L.
    """
    if eta * L > SLACK:
        raise ValueError(f"{rule} needs eta L <= 1; got eta L = {float(eta * L)}: lower eta")
    if rho > L:
        raise ValueError(
            f"{rule} needs rho <= L; got rho = {float(rho)} above L = {float(L)}: rho = L assumes nothing more"
        )
    scale = (1 - Fraction(1, m)) * (eta * (L + rho) / 2) ** 2 * sigma2
    return LocalStepPrice(float(scale), float(eta * rho * (2 + eta * rho)))


def _integral(u: float) -> float:
    """Return 1 + e^u (u - 1), the integral of t e^t from 0 to u."""
    if u > 700:
        return math.inf
    if u < 1e-2:
        return sum(u ** (k + 2) / ((k + 2) * math.factorial(k)) for k in range(8))
    return u * math.exp(u) - math.expm1(u)
