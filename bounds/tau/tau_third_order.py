"""The best number of local steps where the Hessian is Lipschitz, proved: the price of local steps is of fourth order.

Averaging after tau steps costs 2 gap D/(eta T tau) and the local steps (1/tau) sum_{k<tau} p_k.  p_k is the smaller of
two proved prices of k steps without an average, ((L+rho)/2)^2 E V_k of ``pasgd_smooth_sharp`` and (Q^2/4) E V_k^2 of
``pasgd_third_order``, by the bounds on E V_k and E V_k^2 that stand there.

Derivation of the integer.  Write S(tau) = sum_{k<tau} p_k and A = 2 gap D/(eta T).  (A + S(tau))/tau <= (A + S(tau+1))/
(tau+1) if and only if tau p_tau - S(tau) >= A.  Both prices grow with k, so p_k does, and tau p_tau - S(tau) grows with
tau: by (tau+1)(p_{tau+1} - p_tau).  The least tau >= 1 with tau p_tau - S(tau) >= A is the best integer, the smallest
at a tie.  The quotient of the two prices grows with k too: there is one k from which the first is the smaller one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from ..special.growth import MeanGrowth, PairGrowth
from ..symbols import delay_s, eta, gap, hessian_lipschitz, m, sigma2, tau, time_s
from .arguments import exact_arguments
from .integer import SLACK
from .radical import Radical, RadicalMinimiser

RANGE = Fraction(1, 10**290), 10**290  # of the factors of the price that are computed in float64

MINIMISER = RadicalMinimiser(
    2 * gap * delay_s / (eta * time_s * tau) + hessian_lipschitz**2 * eta**4 * sigma2**2 * (1 - 1 / m**2) * tau**2 / 12,
    3,
    r"\tau^*",
    above_one=(m,),
)


@dataclass(frozen=True)
class ThirdOrderPrice:
    """The price of local steps by both proved branches, exact in fractions where F is convex.

    Parameters
    ----------
    second : Fraction
        The first price at k = 1.
    pairs : Fraction
        (Q^2/4) eta^4 sigma2^2 (1 - 1/m^2), what multiplies 2 G s_k s_{k-1}/(1+G).
    once : Fraction
        (Q^2/4) eta^4 sigma2^2 a, what multiplies 1 + G^2 + ... + G^(2k-2).
    growth : Fraction
        G - 1 = eta rho (2 + eta rho).
    """

    second: Fraction
    pairs: Fraction
    once: Fraction
    growth: Fraction

    def of_step(self, k: int) -> Fraction | float:
        """Return p_k."""
        return min(self._second(k), self._third(k))

    def total(self, n: int) -> Fraction | float:
        """Return p_0 + ... + p_{n-1}."""
        turn = min(n, self.turn)
        return self._sum_of_third(turn) + self._sum_of_second(n) - self._sum_of_second(turn)

    def __call__(self, n: int) -> float:
        """Return the price of n local steps a round."""
        return float(self.total(n) / n)

    def _second(self, k: int) -> Fraction | float:
        return self.second * (k if self.growth == 0 else _partial(float(self.growth), k))

    def _third(self, k: int) -> Fraction | float:
        if self.growth == 0:
            return self.pairs * k * (k - 1) + self.once * k
        y = float(self.growth)
        paired = 2 * (1 + y) * _partial(y, k) * _partial(y, k - 1) / (2 + y) if k else 0.0
        return float(self.pairs) * paired + float(self.once) * _partial(y * (2 + y), k)

    def _sum_of_second(self, n: int) -> Fraction | float:
        if self.growth == 0:
            return self.second * n * (n - 1) / 2
        return float(self.second) * n * float(MeanGrowth.kernel(float(self.growth), max(n, 1)))

    def _sum_of_third(self, n: int) -> Fraction | float:
        if self.growth == 0:
            return self.pairs * n * (n - 1) * (n - 2) / 3 + self.once * n * (n - 1) / 2
        y, steps = float(self.growth), max(n, 1)
        paired, once = PairGrowth.kernel(y, steps), MeanGrowth.kernel(y * (2 + y), steps)
        return n * (float(self.pairs) * float(paired) + float(self.once) * float(once))

    @cached_property
    def turn(self) -> int:
        """The least k >= 1 at which the first price is not above the other one."""
        if self.growth == 0:
            return max(1, 1 + math.ceil((self.second - self.once) / self.pairs))
        return _least(lambda k: math.isinf(self._second(k)) or self._third(k) >= self._second(k))


@dataclass(frozen=True)
class TauThirdOrder(Radical):
    """The minimiser of the proved price of local steps in seconds where the Hessian is Lipschitz.

    Parameters
    ----------
    real : float
        The minimiser of the leading order in tau for convex F; 0 if averaging is free, infinite without noise or with
        one worker.
    integer : int or None
        The best integer of the exact price; None if the real one is infinite.
    """

    MINIMISER: ClassVar[RadicalMinimiser] = MINIMISER

    real: float
    integer: int | None


def tau_third_order(
    *,
    gap: Any,
    delay_s: Any,
    eta: Any,
    L: Any,
    sigma2: Any,
    time_s: Any,
    m: Any,
    hessian_lipschitz: Any,
    kurtosis: Any = 3,
    rho: Any = 0,
) -> TauThirdOrder:
    """Return the best tau for 2 gap (Y + D/tau)/(eta T) + price(tau), F with a Lipschitz Hessian and eta L <= 1.

    Parameters
    ----------
    gap : number
        F(x_1) - inf F; 0 <= gap.
    delay_s : number, seconds
        Time of one averaging, seconds; 0 <= delay_s.
    eta : number
        Learning rate; 0 < eta.
    L : number
        Smoothness constant of F; 0 < L.
    sigma2 : number
        Variance of one worker's mini-batch gradient; 0 <= sigma2.
    time_s : number, seconds
        Wall-clock budget, seconds; 0 < time_s.
    m : number
        Number of workers; 1 <= m, an integer.
    hessian_lipschitz : number
        Q with ``|H(x) - H(y)| <= Q |x - y|`` for the Hessian of F; 0 < hessian_lipschitz.
    kurtosis : number, optional
        E|n|^4 <= kurtosis sigma2^2 for the noise n of one worker; 1 <= kurtosis, at most 3 for Gaussian noise.
    rho : number, optional
        Every Hessian is >= -rho; 0 <= rho <= L, 0 where F is convex.

    Raises
    ------
    ValueError
        For arguments outside the ranges, if eta L > 1 or rho > L; for rho > 0, if float64 has no room for the prices.
    """
    given = exact_arguments(
        "tau_third_order",
        gap=gap,
        delay_s=delay_s,
        eta=eta,
        L=L,
        sigma2=sigma2,
        time_s=time_s,
        m=m,
        hessian_lipschitz=hessian_lipschitz,
        kurtosis=kurtosis,
        rho=rho,
    )
    price = third_order_price(**{n: given[n] for n in given if n not in ("gap", "delay_s", "time_s")})
    averaging = 2 * given["gap"] * given["delay_s"] / (given["eta"] * given["time_s"])
    if averaging == 0:
        return TauThirdOrder(0.0, 1)
    if given["sigma2"] == 0 or given["m"] == 1:
        return TauThirdOrder(math.inf, None)
    names = ("gap", "delay_s", "eta", "sigma2", "time_s", "m", "hessian_lipschitz")
    real = MINIMISER.root(MINIMISER.radicand(**{name: given[name] for name in names}))

    def enough(n: int) -> bool:
        step, total = price.of_step(n), price.total(n)
        return not math.isfinite(step) or not math.isfinite(total) or n * step - total >= averaging

    return TauThirdOrder(real, _least(enough))


def third_order_price(
    *,
    eta: Fraction,
    L: Fraction,
    sigma2: Fraction,
    m: Fraction,
    hessian_lipschitz: Fraction,
    kurtosis: Fraction,
    rho: Fraction,
) -> ThirdOrderPrice:
    """Return the price for a Lipschitz Hessian >= -rho.

    Raises
    ------
    ValueError
        If eta L > 1 or rho > L; for rho > 0, if a price of the steps is below 1e-290 or above 1e290.
    """
    if eta * L > SLACK:
        raise ValueError(f"tau_third_order needs eta L <= 1; got eta L = {float(eta * L)}: lower eta")
    if rho > L:
        raise ValueError(f"tau_third_order needs rho <= L; got rho = {float(rho)} above L = {float(L)}: give rho = L")
    u = 1 / m
    scale = (hessian_lipschitz * eta**2 * sigma2 / 2) ** 2
    once = (1 - u) ** 2 * (1 + (kurtosis - 1) * u) + 2 * (1 - u) * u**2
    second = (1 - u) * (eta * (L + rho) / 2) ** 2 * sigma2
    price = ThirdOrderPrice(second, scale * (1 - u**2), scale * once, eta * rho * (2 + eta * rho))
    factors = (price.second, price.pairs, price.once, price.growth)
    if rho and any(each and not RANGE[0] <= each <= RANGE[1] for each in factors):
        raise ValueError(
            "tau_third_order with rho > 0 needs prices of a step in [1e-290, 1e290], the range of float64; got "
            f"{', '.join(_power(each) for each in factors if each)}: measure the loss in another unit, or give rho = 0"
        )
    return price


def _least(holds: Callable[[int], bool]) -> int:
    """Return the least n >= 1 from which on a condition holds."""
    low, high = 0, 1
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _power(x: Fraction) -> str:
    """Return a positive number of any size by its power of ten."""
    return f"about 1e{round((x.numerator.bit_length() - x.denominator.bit_length()) * math.log10(2))}"


def _partial(y: float, k: int) -> float:
    """Return 1 + (1+y) + ... + (1+y)^(k-1)."""
    exponent = k * math.log1p(y)
    return math.inf if exponent > 700 else math.expm1(exponent) / y
