"""The information rate of a uniform direction: R_S(alpha, d), the von Mises-Fisher sphere rate.

With K(kappa) = 0F1(; d/2; kappa^2/4), the mean of e^(kappa y) over the first coordinate y of a uniform unit vector,
and t = sqrt(1 - alpha), ::

    R_S ln 2 = max_kappa [kappa t - ln K(kappa)],   reached where A = (ln K)' = I_(d/2)/I_(d/2-1) equals t.

float64 kernel.  ln K and A come from the uniform (Debye) expansion in 1/mu, mu = d/2 - 1.  Every term carries the
factor kappa^2 or kappa, and so keeps relative accuracy at both ends.  Orders below DEBYE_FROM are reached
downwards by K_d = K_(d+2) (1 + kappa r/d), r_(v-1) = 1/(2v/kappa + r_v), which contracts errors.  The maximum is
stationary, so a relative error e of kappa costs only e^2; two Newton steps and one parabolic correction do.
The ball twin is in ``sphere_rate_ball``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from ..enclosure import enclose, exact
from ..interval import Interval
from ..symbols import alpha as alpha_symbol
from ..symbols import d as d_symbol
from .function import SpecialFunction

CHUNK = 1 << 13  # points worked on at a time, so that the temporaries stay in the cache
DEBYE_FROM = 24  # from this order the terms below leave a remainder under 1e-14
DEBYE_TERMS = 9
NEWTON_STEPS = 2  # for the rate
CONVERGED_STEPS = 8  # for the concentration itself
SMALL_ALPHA = 1e-4  # below, or in a larger dimension than the next, A' cancels in its formula and is taken
LARGE_D = 1e3  # from the starting approximation, whose relative error is O(alpha) and O(1/d)
TINY_ALPHA = 1e-60  # below, R_S is linear in log alpha with slope -(d - 1)/2 to all digits


def sphere_rate(alpha: Any, d: Any, complement: Any = None) -> Any:
    """Return R_S(alpha, d) in bits.

    Parameters
    ----------
    alpha : number
        Float or array, 0 < alpha < 1.
    d : number
        Float or array, d >= 2, finite.  They broadcast.
    complement : optional
        1 - alpha, where the caller knows it to more digits than alpha itself carries.

    Raises
    ------
    ValueError
        At the first point outside.

    Notes
    -----
    Relative accuracy 1e-13.
    """
    alpha, complement, d = _checked(alpha, complement, d)
    rate = unchecked_sphere_rate(alpha, complement, d)
    return float(rate) if rate.ndim == 0 else rate


def bessel_ratio(kappa: Any, d: Any) -> Any:
    """Return a = I_(d/2)(kappa)/I_(d/2-1)(kappa), the mean cosine of the von Mises-Fisher law; kappa > 0, d >= 2."""
    kappa, d = np.broadcast_arrays(np.asarray(kappa, float), np.asarray(d, float))
    if not (np.all(kappa > 0) and np.all(kappa < np.inf) and np.all(d >= 2) and np.all(d < np.inf)):
        raise ValueError(f"the Bessel ratio needs finite kappa > 0 and d >= 2; got kappa = {kappa}, d = {d}")
    ratio = _log_mean_and_ratio(kappa.ravel(), d.ravel())[1].reshape(kappa.shape)
    return float(ratio) if ratio.ndim == 0 else ratio


def concentration(alpha: Any, d: Any, complement: Any = None) -> Any:
    """Return the kappa at which the mean cosine A(kappa) equals sqrt(1 - alpha); arguments as for ``sphere_rate``."""
    alpha, complement, d = _checked(alpha, complement, d)
    if np.any(alpha < TINY_ALPHA):
        raise ValueError(f"the concentration needs alpha >= {TINY_ALPHA}; got alpha = {alpha.min()}")
    kappa = _newton(alpha.ravel(), np.sqrt(complement.ravel()), d.ravel(), CONVERGED_STEPS)[0].reshape(alpha.shape)
    return float(kappa) if kappa.ndim == 0 else kappa


def _checked(alpha: Any, complement: Any, d: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    alpha, d = np.asarray(alpha, float), np.asarray(d, float)
    complement = 1 - alpha if complement is None else np.asarray(complement, float)
    alpha, complement, d = np.broadcast_arrays(alpha, complement, d)
    for rule, inside, value in (
        ("0 < alpha < 1", (alpha > 0) & (alpha <= 1) & (complement > 0), alpha),
        ("d >= 2, finite", (d >= 2) & (d < np.inf), d),
    ):
        if not np.all(inside):
            raise ValueError(f"the sphere rate needs {rule}; got {value[~inside].flat[0]}")
    return alpha, complement, d


def unchecked_sphere_rate(alpha: np.ndarray, complement: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return R_S in bits for arrays of one shape, inside the ranges of ``sphere_rate``."""
    shape = alpha.shape
    alpha, complement, d = alpha.ravel(), complement.ravel(), d.ravel()
    rate = np.empty(alpha.size)
    for start in range(0, alpha.size, CHUNK):
        part = slice(start, start + CHUNK)
        rate[part] = _chunk(alpha[part], complement[part], d[part])
    return rate.reshape(shape)


def _chunk(alpha: np.ndarray, complement: np.ndarray, d: np.ndarray) -> np.ndarray:
    t = np.sqrt(complement)
    tail = 0.5 * (d - 1) * np.log(TINY_ALPHA / np.minimum(alpha, TINY_ALPHA))
    alpha = np.maximum(alpha, TINY_ALPHA)
    kappa, residual, slope, log_mean, log_gap = _newton(alpha, t, d, NEWTON_STEPS)
    direct = kappa * t - log_mean  # good where t is small
    split = log_gap - kappa * (alpha / (1 + t))  # kappa - ln K less kappa (1 - t): good where alpha is small
    return (np.where(alpha > 0.5, direct, split) + residual * residual / (2 * slope) + tail) / np.log(2)


def _newton(alpha: np.ndarray, t: np.ndarray, d: np.ndarray, steps: int) -> tuple[np.ndarray, ...]:
    """Return kappa with t - A, A', ln K and kappa - ln K there."""
    kappa = t * (d - t * t) / alpha
    rough_slope = alpha * alpha / ((d - 3 * t * t) * alpha + 2 * t * t * (d - t * t))  # of that approximation
    for step in range(steps + 1):
        log_mean, ratio, log_gap, ratio_gap = _log_mean_and_ratio(kappa, d)
        residual = np.where(alpha > 0.5, t - ratio, ratio_gap - alpha / (1 + t))
        slope = ratio_gap * (1 + ratio) - (d - 1) * ratio / kappa
        slope = np.where((alpha > SMALL_ALPHA) & (d < LARGE_D), slope, rough_slope)
        if step == steps:
            break
        kappa = np.maximum(kappa + residual / slope, 0.5 * kappa)
    return kappa, residual, slope, log_mean, log_gap


def _log_mean_and_ratio(kappa: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return ln K, A, kappa - ln K and 1 - A."""
    mu = d / 2 - 1
    low = mu < DEBYE_FROM
    log_mean, ratio, log_gap, ratio_gap = _debye(kappa, np.where(low, mu + DEBYE_FROM, mu))
    if low.any():
        k, v = kappa[low], mu[low] + DEBYE_FROM
        r, gap, total = ratio[low], ratio_gap[low], np.zeros_like(k)
        for _ in range(DEBYE_FROM):
            total += np.log1p(k * r / (2 * v))
            step = 2 * v / k
            r, gap = 1 / (step + r), (step - gap) / (step + 1 - gap)
            v = v - 1
        log_mean[low] += total
        log_gap[low] -= total
        ratio[low], ratio_gap[low] = r, gap
    return log_mean, ratio, log_gap, ratio_gap


def _debye(kappa: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the four quantities of ``_log_mean_and_ratio`` for large order mu."""
    zeta = kappa / mu
    s = np.sqrt(1 + zeta * zeta)
    p = 1 / s
    excess = zeta * (zeta / (1 + s))  # s - 1
    series, slope = np.zeros_like(p), np.zeros_like(p)
    for polynomial, derivative in reversed(debye_log_polynomials(DEBYE_TERMS)):
        series = (series + _horner(polynomial, p)) / mu
        slope = (slope + _horner(derivative, p)) / mu
    series *= -excess * p  # (p - 1) times the quotient polynomials
    half_log_s = 0.5 * np.log1p(excess)
    log_half = np.log1p(excess / 2)
    log_mean = mu * (excess - log_half) - half_log_s + series
    complement = (1 + 1 / (s + zeta)) / (1 + s)  # 1 - zeta/(1 + s)
    log_gap = mu * (zeta * complement + log_half) + half_log_s - series
    correction = zeta * p * p * (0.5 + p * slope) / mu
    return log_mean, zeta / (1 + s) - correction, log_gap, complement + correction


def _horner(coefficients: tuple[float, ...], p: np.ndarray) -> np.ndarray:
    value = np.full_like(p, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * p + coefficient
    return value


@lru_cache(maxsize=4)
def debye_log_polynomials(terms: int) -> tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]:
    """Return (quotient, derivative) of the logarithm of Debye's series, j = 1..terms, ascending powers of p.

    With ln sum_k u_k(p) mu^-k = sum_j D_j(p) mu^-j, the pairs are (D_j(p) - D_j(1))/(p - 1) and D_j'(p).
    u_(k+1) = p^2 (1 - p^2) u_k'/2 + (1/8) int_0^p (1 - 5 q^2) u_k dq (DLMF 10.41.9), in exact rationals.
    """
    u = [[Fraction(1)]]
    for _ in range(terms):
        u.append(_next_debye(u[-1]))
    logs: list[list[Fraction]] = []  # j D_j = j u_j - sum_(i<j) i D_i u_(j-i)
    for j in range(1, terms + 1):
        total = [j * c for c in u[j]]
        for i in range(1, j):
            for power, c in enumerate(_product(logs[i - 1], u[j - i])):
                total[power] -= i * c
        logs.append([c / j for c in total])
    pairs = []
    for polynomial in logs:
        quotient, carry = [], Fraction(0)
        for c in reversed(polynomial[1:]):  # synthetic division by p - 1; the remainder is D_j(1)
            carry += c
            quotient.append(carry)
        derivative = [power * c for power, c in enumerate(polynomial)][1:]
        pairs.append((tuple(map(float, reversed(quotient))), tuple(map(float, derivative))))
    return tuple(pairs)


def _next_debye(u: list[Fraction]) -> list[Fraction]:
    result = [Fraction(0)] * (len(u) + 3)
    for power, c in enumerate(u):
        result[power + 1] += Fraction(power) * c / 2 + c / (8 * (power + 1))
        result[power + 3] -= Fraction(power) * c / 2 + 5 * c / (8 * (power + 3))
    return result


def _product(left: list[Fraction], right: list[Fraction]) -> list[Fraction]:
    result = [Fraction(0)] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            result[i + j] += a * b
    return result


INTEGRALS_FROM = 4096
BRACKET = 2.0**-36  # relative half-width of the interval that must hold the maximiser


def sphere_rate_ball(alpha: Any, complement: Any, d: Any) -> Any:
    """Return R_S in bits as a ball; not a number where it cannot be certified (alpha < 1e-60, d not exact).

    Notes
    -----
    ln K and A come from the Bessel functions of ball arithmetic below INTEGRALS_FROM.  Above, both are ratios of
    integrals of e^(kappa y) (1 - y^2)^((d-3)/2) over the first coordinate y of a uniform unit vector.  With n = d - 1,
    the peak y0 in the variable artanh y, where kappa (1 - y0^2) = n y0 + r with a tiny r, and y = (y0 + T)/(1 + y0 T),
    they become ::

        e^(kappa y0) (1 - y0^2)^(n/2) int (1 - T^2)^(n/2-1) exp(n G(y0 T) + r T/(1 + y0 T)) dT,
        G(w) = w/(1 + w) - ln(1 + w) = -w^2 int_0^1 s/(1 + s w)^2 ds,

    which is close to a Gaussian of width 1/sqrt(n (1 + y0^2)) whatever kappa is.  The tails are bounded in y, where the
    exponent h is concave: int_y2^1 ``e^h <= e^(h(y2))/|h'(y2)|``, and in the same way on the left.

    The maximum over kappa of f = kappa t - ln K is enclosed without solving for it exactly: f is concave, f' = t - A,
    and if A(k) < t < A(k') is certain for some k < k', then 0 <= max f - f(k) <= f'(k) (k' - k).
    """
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
    if not d < INTEGRALS_FROM:
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


def enclose_sphere_rate(alpha: Any, d: Any) -> Interval:
    """Return an interval that provably contains R_S at exact arguments (int, Fraction, decimal string, float).

    Raises
    ------
    ValueError
        For arguments outside 0 < alpha < 1, d >= 2.
    """
    point = {alpha_symbol: exact(alpha), d_symbol: exact(d)}
    if not (0 < point[alpha_symbol] < 1 and point[d_symbol] >= 2):
        raise ValueError(f"the sphere rate needs 0 < alpha < 1 and d >= 2; got alpha = {alpha}, d = {d}")
    return enclose(SphereRate(alpha_symbol, 1 - alpha_symbol, d_symbol), point)


class SphereRate(SpecialFunction):
    """R_S in bits as a function of (alpha, 1 - alpha, d).

    Both alpha and its complement are arguments, because near 1 neither determines the other in float64.
    """

    latex_template = r"R_S\left({0}, {2}\right)"

    @staticmethod
    def kernel(alpha: Any, complement: Any, d: Any) -> Any:
        """Return R_S in bits."""
        return unchecked_sphere_rate(*np.broadcast_arrays(*(np.asarray(v, float) for v in (alpha, complement, d))))

    @staticmethod
    def ball(alpha: Any, complement: Any, d: Any) -> Any:
        """Return R_S in bits as a ball."""
        return sphere_rate_ball(alpha, complement, d)


def sphere_rate_of(alpha: sp.Expr, d: sp.Expr) -> sp.Expr:
    """Return the sympy term R_S(alpha, d)."""
    return SphereRate(alpha, sp.together(1 - alpha), d)
