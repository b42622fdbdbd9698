"""The ball-arithmetic twin of the sphere rate: certified integrals and a certified maximum.

ln K and A come from the Bessel functions of ball arithmetic below LARGE_D.  Above, both are ratios of integrals of
e^(kappa y) (1 - y^2)^((d-3)/2) over the first coordinate y of a uniform unit vector.  With n = d - 1, the peak y0 in
the variable artanh y, where kappa (1 - y0^2) = n y0 + r with a tiny r, and y = (y0 + T)/(1 + y0 T), they become ::

    e^(kappa y0) (1 - y0^2)^(n/2) int (1 - T^2)^(n/2-1) exp(n G(y0 T) + r T/(1 + y0 T)) dT,
    G(w) = w/(1 + w) - ln(1 + w) = -w^2 int_0^1 s/(1 + s w)^2 ds,

which is close to a Gaussian of width 1/sqrt(n (1 + y0^2)) whatever kappa is.  The tails are bounded in y, where the
exponent h is concave: int_y2^1 ``e^h <= e^(h(y2))/|h'(y2)|``, and likewise on the left.

The maximum over kappa of f = kappa t - ln K is enclosed without solving for it exactly: f is concave, f' = t - A, and
if A(k) < t < A(k') is certain for some k < k', then 0 <= max f - f(k) <= f'(k) (k' - k).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .sphere_rate import TINY_ALPHA, concentration

LARGE_D = 4096
BRACKET = 2.0**-36  # relative half-width of the interval that must hold the maximiser


def sphere_rate_ball(alpha: Any, complement: Any, d: Any) -> Any:
    """Return R_S in bits as a ball; not a number where it cannot be certified (alpha < 1e-60, d not exact)."""
    from flint import arb, ctx

    near, near_complement = float(alpha.mid()), float(complement.mid())
    if not (near > TINY_ALPHA and near_complement > 0 and d.is_exact()):
        return arb("nan")
    guard = 16 + int(math.log2(float(d)) - math.log2(near))
    with ctx.workprec(ctx.prec + guard):
        kappa = arb(float(concentration(np.float64(near), np.float64(float(d)), np.float64(near_complement))))
        t = complement.sqrt()
        below, above = (kappa * (1 - BRACKET)).mid(), (kappa * (1 + BRACKET)).mid()
        log_mean, ratio = log_mean_and_ratio(below, d)
        if not (ratio < t and t < log_mean_and_ratio(above, d)[1]):
            return arb("nan")
        slack = (t - ratio) * (above - below)
        return (below * t - log_mean + slack.union(arb(0))) / arb(2).log()


def log_mean_and_ratio(kappa: Any, d: Any) -> tuple[Any, Any]:
    """Return balls around ln K(kappa) and A(kappa); kappa > 0 and d are exact balls."""
    if not d < LARGE_D:
        return _by_integrals(kappa, d)
    order = d / 2 - 1
    lower, upper = kappa.bessel_i(order), kappa.bessel_i(order + 1)
    return (d / 2).lgamma() + order * (2 / kappa).log() + lower.log(), upper / lower


def _by_integrals(kappa: Any, d: Any) -> tuple[Any, Any]:
    from flint import acb, arb, ctx

    n = d - 1
    peak = (2 * kappa / (n + (n * n + 4 * kappa * kappa).sqrt())).mid()
    rest = kappa * (1 - peak * peak) - n * peak
    goal = 3 * ctx.prec // 5  # bits; the rest of the working precision covers cancellation
    reach = (math.sqrt(1.4 * goal + 20) / (n * (1 + peak * peak)).sqrt()).mid()

    def weight(t: Any, _: bool) -> Any:
        if not abs(t) < arb(0.95):
            return acb("nan")
        w = peak * t
        return ((n / 2 - 1) * (-t * t).log1p() + n * _second_order(w) + rest * t / (1 + w)).exp()

    def both(t: Any, analytic: bool) -> Any:  # real on the real line, so one integral holds two
        return weight(t, analytic) * (1 + unit * (peak + t) / (1 + peak * t))

    unit = acb(0, 1)
    integral = acb.integral(both, acb(-reach), acb(reach), rel_tol=arb(2) ** -goal)
    mass, first = integral.real, integral.imag
    tails = arb(0)
    for sign in (-1, 1):
        edge = sign * reach
        y = (peak + edge) / (1 + peak * edge)
        steepness = sign * ((n - 2) * y / (1 - y * y) - kappa)
        if not steepness > 0:
            return arb("nan"), arb("nan")
        tails += weight(acb(edge), False).real * (1 + peak * edge) ** 2 / (1 - peak * peak) / steepness
    mass, first = mass + tails.union(arb(0)), first + tails.union(-tails)
    log_beta = arb.pi().log() / 2 + (n / 2).lgamma() - (d / 2).lgamma()
    return kappa * peak + n / 2 * (1 - peak * peak).log() + mass.log() - log_beta, first / mass


def _second_order(w: Any) -> Any:
    """Return G(w) by the form with the smaller error: the closed one loses rad w, the integral's range ``|w|^3``."""
    from flint import acb, arb, ctx

    size = abs(w).upper()
    if w.rad() + size * arb(2) ** -ctx.prec < size**3:
        return w / (1 + w) - w.log1p()
    hull = 1 + w.union(acb(0))
    return -w * w / (2 * hull * hull)
