"""The slowest of several workers with exponential steps, in ball arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flint import acb

PRECISION = 96


@lru_cache(maxsize=4096)
def slowest_exponential(workers: int, tau: int) -> tuple[Fraction, Fraction]:
    """Return E max over m workers of the mean of tau standard exponential steps, in ball arithmetic.

    It is (1/tau) int_0^inf 1 - (1 - Q(t))^m dt with Q(t) = e^-t sum_{k < tau} t^k/k!, an entire integrand.  Beyond T
    the integrand is at most m Q, and int_T^inf Q = tau Q_{tau+1}(T) - T Q_tau(T).
    """
    from flint import acb, arb, ctx

    from bounds.enclosure import ball_interval

    with ctx.workprec(PRECISION):
        if tau == 1:
            ball = arb(workers + 1).digamma() + arb.const_euler()
        else:
            end = arb(math.ceil(tau + 12 * math.sqrt(tau * math.log(2 + workers)) + 12 * math.log(2 + workers) + 90))
            body = acb.integral(lambda z, _: _missing_mass(z, workers, tau), acb(0), acb(end)).real
            q = _gamma_tail(acb(end), tau).real
            tail = workers * (tau * (q + (-end).exp() * end**tau / arb(tau).gamma() / tau) - end * q)
            ball = (body + tail.union(arb(0))) / tau
        interval = ball_interval(ball)
    return Fraction(interval.lo), Fraction(interval.hi)


def _missing_mass(z: acb, workers: int, tau: int) -> acb:
    return 1 - (1 - _gamma_tail(z, tau)) ** workers


def _gamma_tail(z: acb, tau: int) -> acb:
    """Return e^-z sum_{k < tau} z^k/k! by Horner's rule."""
    total = z * 0 + 1
    for k in range(tau - 1, 0, -1):
        total = total * z / k + 1
    return (-z).exp() * total
