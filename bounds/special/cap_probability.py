"""The share of the sphere that one decoding ball can serve: the cap probability P(alpha, d).

A ball of radius sqrt(alpha) about a centre of length r meets the unit sphere of R^d in the cap of all points
with cosine at least (1 + r^2 - alpha)/(2r).  The cap is largest at r = sqrt(1 - alpha), where its half-angle is
arcsin sqrt(alpha); its share of the surface is, with a = (d - 1)/2, ::

    P(alpha, d) = I_alpha(a, 1/2)/2 = alpha^a/(2 a B(a, 1/2)) J,   J = int_0^1 (1 - alpha w^(1/a))^(-1/2) dw.

P itself underflows where it is needed, so everything works with its logarithm, split into the lead
a log2(1/alpha) and the excess -log2(J/(2 a B(a, 1/2))), which stays of the size log2 d.

float64 kernel, by regions of (alpha, a)::

  alpha <= 1/2        J = F(1/2, 1; a+1; -z)/sqrt(1 - alpha), z = alpha/(1 - alpha), by Gauss's continued fraction;
  alpha > 1/2, a >= 8 substitute y^2 = e^-v in the beta integral and expand (2 sinh(v/2)/v)^(-1/2) in powers of v^2
                      (Didonato and Morris 1992, section 9): scaled error functions and a two-term recursion of
                      positive terms;
  alpha > 1/2, a < 8  the same at a + 8, then eight times J_a = sqrt(1 - alpha) + alpha (a + 1/2)/(a + 1) J_(a+1),
                      which is the recursion of the incomplete beta function, all terms positive.

The ball twin integrates J over w = e^-s in ball arithmetic up to a cut and bounds the tail by monotonicity.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy as sp

from ..enclosure import enclose, exact
from ..interval import Interval
from ..symbols import alpha as alpha_symbol
from ..symbols import d as d_symbol
from .function import SpecialFunction

CHUNK = 1 << 14  # points worked on at a time, so that the temporaries stay in the cache
STIRLING_FROM = 14.0  # from here the series of log Gamma(b+1)/Gamma(b+1/2) is accurate to 2e-17
EXPANSION_FROM = 8.0  # from this a twelve terms of the expansion leave a remainder below 1e-16
# Depth of the continued fraction by the largest z it is used for; the remainder is below 1e-17 throughout.
FRACTION_DEPTHS = ((0.02, 9), (0.25, 16), (1.0, 24))
# Taylor coefficients of (2 sinh(v/2)/v)^(-1/2) in v^2; the test derives them again with sympy.
SINH_SERIES = (
    1.0,
    -1 / 48,
    1 / 2560,
    -61 / 7741440,
    1261 / 7431782400,
    -79 / 20761804800,
    8.748377596315407e-11,
    -2.044523359411974e-12,
    4.833351797967704e-14,
    -1.152434101767386e-15,
    2.76605204359937e-17,
    -6.67428195089166e-19,
)


def cap_lead_and_excess(alpha: Any, d: Any, complement: Any = None) -> tuple[Any, Any]:
    """Split -log2 P(alpha, d) into its lead (d-1)/2 log2(1/alpha) and the excess over it, both in bits.

    Parameters
    ----------
    alpha : number
        Float or array, 0 < alpha < 1.
    d : number
        Float or array, d >= 1, finite.  They broadcast.
    complement : optional
        1 - alpha, where the caller knows it to more digits than alpha itself carries.

    Raises
    ------
    ValueError
        At the first point outside.

    Notes
    -----
    The excess is accurate to 1e-14 bits (d <= 10^12), the lead to two units in the last place.
    """
    alpha, complement, d = _checked(alpha, complement, d)
    lead, excess = _lead_and_excess(alpha, complement, d)
    return (float(lead), float(excess)) if lead.ndim == 0 else (lead, excess)


def neg_log2_cap(alpha: Any, d: Any, complement: Any = None) -> Any:
    """Return -log2 P(alpha, d) in bits, relative accuracy 1e-15; arguments as for ``cap_lead_and_excess``."""
    lead, excess = cap_lead_and_excess(alpha, d, complement)
    return lead + excess


def enclose_neg_log2_cap(alpha: Any, d: Any) -> Interval:
    """Return an interval that provably contains -log2 P at exact arguments (int, Fraction, decimal string, float).

    Raises
    ------
    ValueError
        For arguments outside 0 < alpha < 1, d >= 1.
    """
    return _enclose(neg_log2_cap_of(alpha_symbol, d_symbol), alpha, d)


def enclose_cap_excess(alpha: Any, d: Any) -> Interval:
    """Return an interval that provably contains the excess of -log2 P over (d-1)/2 log2(1/alpha)."""
    return _enclose(CapExcess(alpha_symbol, 1 - alpha_symbol, d_symbol), alpha, d)


def _enclose(expression: sp.Expr, alpha: Any, d: Any) -> Interval:
    point = {alpha_symbol: exact(alpha), d_symbol: exact(d)}
    if not (0 < point[alpha_symbol] < 1 and point[d_symbol] >= 1):
        raise ValueError(f"the cap probability needs 0 < alpha < 1 and d >= 1; got alpha = {alpha}, d = {d}")
    return enclose(expression, point)


class CapExcess(SpecialFunction):
    """Excess of -log2 P over (d-1)/2 log2(1/alpha), as a function of (alpha, 1 - alpha, d).

    Both alpha and its complement are arguments, because near 1 neither determines the other in float64.
    """

    latex_template = r"\mathcal{{E}}\left({0}, {2}\right)"

    @staticmethod
    def kernel(alpha: Any, complement: Any, d: Any) -> Any:
        """Return the excess in bits."""
        return _lead_and_excess(*(np.asarray(v, float) for v in (alpha, complement, d)))[1]

    @staticmethod
    def ball(alpha: Any, complement: Any, d: Any) -> Any:
        """Return the excess in bits as a ball."""
        from flint import arb

        if (d - 1).is_zero():
            return arb(1)
        a = (d - 1) / 2
        log_beta = arb.pi().log() / 2 + (a + 1).lgamma() - (a + 0.5).lgamma()  # log(a B(a, 1/2))
        return (log_beta - _ball_integral(alpha, complement, a).log()) / arb(2).log() + 1


class NegLog2Cap(SpecialFunction):
    """-log2 P as a function of (alpha, 1 - alpha, d)."""

    latex_template = r"\left(-\log_2 P\left({0}, {2}\right)\right)"

    @staticmethod
    def kernel(alpha: Any, complement: Any, d: Any) -> Any:
        """Return -log2 P in bits."""
        lead, excess = _lead_and_excess(*(np.asarray(v, float) for v in (alpha, complement, d)))
        return lead + excess

    @staticmethod
    def ball(alpha: Any, complement: Any, d: Any) -> Any:
        """Return -log2 P in bits as a ball."""
        from flint import arb

        return CapExcess.ball(alpha, complement, d) - (d - 1) / 2 * alpha.log() / arb(2).log()


class CapMeanCosine(SpecialFunction):
    """Mean cosine to its centre of a uniform point of the cap, as a function of (alpha, 1 - alpha, d): m = 1/J."""

    latex_template = r"m\left({0}, {2}\right)"

    @staticmethod
    def kernel(alpha: Any, complement: Any, d: Any) -> Any:
        parts = np.broadcast_arrays(*(np.asarray(v, float) for v in (alpha, complement, d)))
        alpha, complement, d = (part.ravel() for part in parts)
        return (1 / _integral(alpha, complement, (d - 1) / 2, _neg_log(alpha, complement))).reshape(parts[0].shape)

    @staticmethod
    def ball(alpha: Any, complement: Any, d: Any) -> Any:
        from flint import arb

        return arb(1) if (d - 1).is_zero() else 1 / _ball_integral(alpha, complement, (d - 1) / 2)


class CapSpread(SpecialFunction):
    """1 - m^2 with all digits for small caps, m the ``CapMeanCosine``; also of (alpha, 1 - alpha, d)."""

    latex_template = r"\left(1 - m\left({0}, {2}\right)^2\right)"

    @staticmethod
    def kernel(alpha: Any, complement: Any, d: Any) -> Any:
        """Return 1 - m^2 in float64; up to alpha = 1/2, m^2 = (1 - alpha)(1 + t)^2 with t the continued fraction's
        rest.
        """
        alpha, complement, d = np.broadcast_arrays(*(np.asarray(v, float) for v in (alpha, complement, d)))
        a, z = (d - 1) / 2, np.minimum(alpha / complement, 1.0)
        e = 1 / (2 * (a + 1) * _gauss_rest(a, z, FRACTION_DEPTHS[-1][1]))  # t = z e, (1 - alpha) z = alpha
        small = alpha * (1 - e * (2 + z * e))
        return np.where(alpha <= 0.5, small, 1 - CapMeanCosine.kernel(alpha, complement, d) ** 2)

    @staticmethod
    def ball(alpha: Any, complement: Any, d: Any) -> Any:
        """Return 1 - m^2 as a ball."""
        return 1 - CapMeanCosine.ball(alpha, complement, d) ** 2


def cap_mean_cosine(alpha: Any, d: Any, complement: Any = None) -> Any:
    """Return mean cosine m of a uniform point of the cap to its centre; arguments as for ``cap_lead_and_excess``.

    A code that sends a point of the cap around ``x/|x|`` and decodes it times ``|x|/m`` is unbiased with omega = m^-2 -
    1.
    """
    alpha, complement, d = _checked(alpha, complement, d)
    result = CapMeanCosine.kernel(alpha, complement, d)
    return float(result) if result.ndim == 0 else result


def neg_log2_cap_of(alpha: sp.Expr, d: sp.Expr) -> sp.Expr:
    """Return the sympy term -log2 P(alpha, d)."""
    return NegLog2Cap(alpha, sp.together(1 - alpha), d)


def _checked(alpha: Any, complement: Any, d: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    alpha, d = np.asarray(alpha, float), np.asarray(d, float)
    complement = 1 - alpha if complement is None else np.asarray(complement, float)
    for rule, inside, value in (
        ("0 < alpha < 1", (alpha > 0) & (alpha <= 1) & (complement > 0), alpha),
        ("d >= 1, finite", (d >= 1) & (d < np.inf), d),
    ):
        if not np.all(inside):
            bad = np.broadcast_to(value, inside.shape)[~inside].flat[0]
            raise ValueError(f"the cap probability needs {rule}; got {bad}")
    return alpha, complement, d


# -- ball arithmetic -------------------------------------------------------------------------------------------
def _ball_integral(alpha: Any, complement: Any, a: Any) -> Any:
    """Return J = int_0^inf e^-s (1 - alpha e^(-s/a))^(-1/2) ds, the tail included."""
    from flint import acb, arb, ctx

    goal = 3 * ctx.prec // 5  # bits; the rest of the working precision covers cancellation
    cut = math.ceil(0.7 * goal)  # e^-cut is below 2^-goal

    def integrand(s: Any, analytic: bool) -> Any:
        root = (complement - alpha * (-s / a).expm1()).rsqrt(analytic=analytic)
        return (-s).exp() * root

    head = acb.integral(integrand, 0, cut, rel_tol=arb(2) ** -goal).real
    tail = (-arb(cut)).exp() * (complement - alpha * (-arb(cut) / a).expm1()).rsqrt()
    return head + tail.union(arb(0))  # the root decreases in s: 0 <= rest <= tail


# -- float64 ---------------------------------------------------------------------------------------------------
def _lead_and_excess(alpha: np.ndarray, complement: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    alpha, complement, d = np.broadcast_arrays(alpha, complement, d)
    shape = alpha.shape
    alpha, complement, d = alpha.ravel(), complement.ravel(), d.ravel()
    lead, excess = np.empty(alpha.size), np.empty(alpha.size)
    for start in range(0, alpha.size, CHUNK):
        part = slice(start, start + CHUNK)
        lead[part], excess[part] = _chunk(alpha[part], complement[part], (d[part] - 1) / 2)
    return lead.reshape(shape), excess.reshape(shape)


def _chunk(alpha: np.ndarray, complement: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    neg_log = _neg_log(alpha, complement)
    integral = _integral(alpha, complement, a, neg_log)
    return a * neg_log / math.log(2), 1 + (_log_a_beta(a) - np.log(integral)) / math.log(2)


def _neg_log(alpha: np.ndarray, complement: np.ndarray) -> np.ndarray:
    """Return -ln alpha, accurate at both ends."""
    near_one = alpha > 0.5
    return np.where(near_one, -np.log1p(-np.where(near_one, complement, 0.0)), -np.log(alpha))


def _integral(alpha: np.ndarray, complement: np.ndarray, a: np.ndarray, neg_log: np.ndarray) -> np.ndarray:
    """Return J, by regions."""
    near_one = alpha > 0.5
    integral = np.full_like(alpha, math.nan)  # of a complement that is not 1 - alpha
    z = alpha / complement
    lower = -1.0
    for upper, depth in FRACTION_DEPTHS:
        where = ~near_one & (z > lower) & (z <= upper)
        lower = upper
        if where.any():
            integral[where] = _gauss_fraction(a[where], z[where], depth) / np.sqrt(complement[where])
    if near_one.any():
        integral[near_one] = _integral_near_one(alpha[near_one], complement[near_one], a[near_one], neg_log[near_one])
    return integral


def _log_a_beta(a: np.ndarray) -> np.ndarray:
    """Return ln(a B(a, 1/2)) = ln(pi)/2 + ln Gamma(a+1)/Gamma(a+1/2), without a difference of log-gammas."""
    low = a < STIRLING_FROM
    b = np.where(low, a + STIRLING_FROM, a)
    w = 1 / (b * b)
    series = 1 / 8 - w * (1 / 192 - w * (1 / 640 - w * (17 / 14336 - w * (31 / 18432 - w * (691 / 180224)))))
    result = 0.5 * np.log(math.pi * b) + series / b
    if low.any():
        start = a[low]
        above, below = np.ones_like(start), np.ones_like(start)
        for shift in range(int(STIRLING_FROM)):
            above *= start + (shift + 0.5)
            below *= start + (shift + 1.0)
        result[low] += np.log(above / below)
    return result


def _gauss_fraction(a: np.ndarray, z: np.ndarray, depth: int) -> np.ndarray:
    """Return F(1/2, 1; a+1; -z) = 1/(1 + e_1 z/(1 + e_2 z/(1 + ...))), e_1 = 1/(2 (a + 1))."""
    return 1 / (1 + z / (2 * (a + 1) * _gauss_rest(a, z, depth)))


def _gauss_rest(a: np.ndarray, z: np.ndarray, depth: int) -> np.ndarray:
    """Return 1 + e_2 z/(1 + e_3 z/(1 + ...)) of Gauss's continued fraction, evaluated backwards."""
    value = np.ones_like(z)
    for n in range(depth, 1, -1):
        m = n // 2
        numerator = m * (a + (m - 0.5)) if n % 2 == 0 else (m + 0.5) * (a + m)
        value = 1 + z * numerator / ((a + (n - 1)) * (a + n) * value)
    return value


def _integral_near_one(alpha: np.ndarray, complement: np.ndarray, a: np.ndarray, v0: np.ndarray) -> np.ndarray:
    """Return J by the expansion; below EXPANSION_FROM at a + EXPANSION_FROM, then down by the recursion."""
    low = a < EXPANSION_FROM
    integral = _sinh_expansion(np.where(low, a + EXPANSION_FROM, a), v0)
    if low.any():
        start, share, root, value = a[low], alpha[low], np.sqrt(complement[low]), integral[low]
        for shift in reversed(range(int(EXPANSION_FROM))):
            value = root + share * value * (start + (shift + 0.5)) / (start + (shift + 1.0))
        integral[low] = value
    return integral


def _sinh_expansion(a: np.ndarray, v0: np.ndarray) -> np.ndarray:
    """Return J = a alpha^-a int_v0^inf e^(-T v) v^(-1/2) sum_n p_n v^(2n) dv with T = a - 1/4, v0 = -ln alpha."""
    from scipy.special import erfcx

    rate = a - 0.25
    moment = np.sqrt(math.pi / rate) * erfcx(np.sqrt(rate * v0))  # every moment carries the factor e^(-T v0)
    total = moment.copy()
    boundary = 1 / (rate * np.sqrt(v0))
    for n, coefficient in enumerate(SINH_SERIES[1:], 1):
        # integrate by parts twice: from v^(2n - 5/2) to v^(2n - 1/2)
        half = boundary * v0 + (2 * n - 1.5) / rate * moment
        boundary = boundary * v0 * v0
        moment = boundary + (2 * n - 0.5) / rate * half
        total += coefficient * moment
    return a * np.exp(0.25 * v0) * total
