"""Local SGD on one function: the price of local steps, in iterations.

The chapter starts from Theorem 1 of Wang and Joshi 2018.  Convexity, a lower limit on the Hessian and the function
value sharpen it.  The later theorems vary the noise, the data, the schedule, the arrival of averages, the mixing matrix
and the momentum between rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import NOISE, SAME_DATA, Setting
from ..special.growth import MeanGrowth
from ..symbols import (
    R0,
    K,
    L,
    eta,
    gap,
    heterogeneity,
    in_flight,
    m,
    noise_growth,
    rho,
    sigma2,
    staleness,
    sum_eta,
    sum_eta2,
    sum_eta3,
    tau,
    worst_load,
    zeta,
)
from ..symbols import block_momentum_factor as beta

pasgd_iterations = Bound(
    name="pasgd_iterations",
    quantity="average over K local steps of E|grad F(xbar)|^2",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * sigma2 / m + eta**2 * L**2 * sigma2 * (tau - 1),
    assuming=(sp.Le(eta * L + eta**2 * L**2 * tau * (tau - 1), 1),),
    reference=Reference("wang2018", "Theorem 1", arxiv="1810.08313"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.LOCAL_SGD}, Conclusion.GRADIENT),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 4, "m": 4, "K": 100},
            "0.25500",
            "by hand: .2 + .025 + .03",
        ),
        Example(
            {"gap": "1.24091", "eta": "0.05", "L": 1, "sigma2": 4, "tau": 16, "m": 16, "K": 4000},
            "0.17491",
            "three terms .01241 + .0125 + .15 on the reference quadratic",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""Theorem 1 of local-update SGD, in iterations: the price of tau local steps on a non-convex problem.

Setting.  m workers sample the same L-smooth F, bounded below; gradients are unbiased with variance at most sigma2 for
one worker, independent over workers and steps; the workers start together and average every tau steps. ``gap`` is
F(x_1) - inf F.  The bounded quantity is ``(1/K) sum_k E|grad F(xbar_k)|^2`` over all K local steps, xbar_k being the
mean of the local iterates (at an averaging, the averaged iterate itself); K need not be a multiple of tau.

Derivation.  Write ``G_k = (1/m) sum_i |grad F(x_k^i)|^2`` and ``V_k = (1/m) sum_i |x_k^i - xbar_k|^2``.

(a) Averaging leaves xbar unchanged, so every step is xbar - eta gbar with ``E|gbar|^2 <= sigma2/m + G``.  The descent
    lemma and ``-2<a, b> = |a - b|^2 - |a|^2 - |b|^2``, used worker by worker, give after summation ::

        avg E|grad F(xbar)|^2 <= 2 gap/(eta K) + eta L sigma2/m + L^2 avg EV - (1 - eta L) avg EG.

(b) r steps after an averaging, x^i - xbar is -eta times the centred sum of r gradients.  Split it into noise (a
    martingale, orthogonal over steps and workers) and gradients (Cauchy-Schwarz) ::

        EV_r <= 2 eta^2 r ((1 - 1/m) sigma2 + sum_{s<r} EG_s).

    Sum over r < tau (or over the shorter last round): avg EV <= eta^2 (tau-1) sigma2 + eta^2 tau (tau-1) avg EG.

(c) Insert (b) in (a): G cancels when eta L + eta^2 L^2 tau (tau-1) <= 1.  Where this is less than 1, what it lacks
    times avg EG may stay on the left: the same value bounds that sum, and equals it on quadratics whose eigenvalues
    are all L, at tau = 1 and after many steps.

Step (b) shows that the last term may carry the factor 1 - 1/m (see ``pasgd_multiplicative`` at beta = 0).
"""

pasgd_convex = Bound(
    name="pasgd_convex",
    quantity="average over K local steps of E|grad F(xbar)|^2, F convex",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * sigma2 / m + (1 - 1 / m) * eta**2 * L**2 * sigma2 * (tau - 1) / 2,
    assuming=(sp.Le(eta * L, 1),),
    reference=Reference("ratedist", "convex form of wang2018, Theorem 1"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.CONVEX, Property.LOCAL_SGD}, Conclusion.GRADIENT),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100},
            "0.24000",
            "by hand: .2 + .025 + .75 * .01 * 4 / 2",
        ),
        Example(
            {"gap": "1.24091", "eta": "0.05", "L": 1, "sigma2": 4, "tau": 16, "m": 16, "K": 4000},
            "0.09522",
            "published check value on the reference quadratic",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""Theorem 1 for convex problems: half the price of local steps, and no condition that couples eta and tau.

Setting.  As in ``pasgd_iterations``, with F convex and only eta L <= 1.

Derivation.  Step (a) of ``pasgd_iterations`` with eta L <= 1 leaves ::

    avg E|grad F(xbar)|^2 <= 2 gap/(eta K) + eta L sigma2/m + L^2 avg EV.

The step x -> x - eta grad F(x) of a convex L-smooth F is non-expansive for eta L <= 2, so ``E|x^i - x^j|^2`` grows by
at most 2 eta^2 sigma2 a step, and ``EV_r = 1/(2 m^2) sum_ij E|x^i - x^j|^2 <= (1 - 1/m) eta^2 sigma2 r``.  Averaged
over r < tau the last term is (1/2)(1 - 1/m) eta^2 L^2 sigma2 (tau - 1).
"""

pasgd_convex_sharp = Bound(
    name="pasgd_convex_sharp",
    quantity="average over K local steps of E|grad F(xbar)|^2, F convex",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * sigma2 / m + (1 - 1 / m) * eta**2 * L**2 * sigma2 * (tau - 1) / 8,
    assuming=(sp.Le(eta * L, 1),),
    reference=Reference("ratedist", "convex form of wang2018, Theorem 1, by cocoercivity of the mean"),
    status=Status.PROVED,
    setting=pasgd_convex.setting,
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100},
            "0.22875",
            "by hand: .2 + .025 + .75 * .01 * 4 / 8",
        ),
        Example(
            {"gap": 0, "eta": "0.2", "L": 1, "sigma2": 1, "tau": 8, "m": 16, "K": 8},
            "0.0453125",
            "by hand, the kink's floor: .0125 + (15/16) * .04 * 7 / 8",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""Theorem 1 for convex problems with an eighth of its price of local steps.

Setting.  As in ``pasgd_convex``.

Derivation.  Write g_i = grad F(x^i), b = grad F(xbar), d_i = x^i - xbar, gbar = mean g_i and u_i = g_i - gbar, at one
step.  Gradients of a convex L-smooth F are cocoercive, ``|b - g_i|^2 <= L <b - g_i, xbar - x^i>``.  Average over the
workers: the d_i have mean zero, so b drops out on the right, and the left side splits, ::

    |b - gbar|^2 + mean |u_i|^2 <= L mean <u_i, d_i> <= mean |u_i|^2 + (L^2/4) V.

Hence ``|b - gbar|^2 <= (L^2/4) V``: the mean of the gradients misses the gradient at the mean by half of what
smoothness alone allows.  The descent lemma for xbar -> xbar - eta (gbar + noise), with ``-2 <b, gbar> = |b - gbar|^2 -
|b|^2 - |gbar|^2`` for the mean over workers (not worker by worker as in ``pasgd_iterations``) and eta L <= 1, gives ::

    avg E|grad F(xbar)|^2 <= 2 gap/(eta K) + eta L sigma2/m + (L^2/4) avg EV,

and avg EV <= (1 - 1/m) eta^2 sigma2 (tau - 1)/2 by ``pasgd_convex``.
"""

pasgd_smooth = Bound(
    name="pasgd_smooth",
    quantity="average over K local steps of E|grad F(xbar)|^2, Hessians >= -rho",
    side=Side.UPPER,
    value=2 * gap / (eta * K)
    + eta * L * sigma2 / m
    + (1 - 1 / m) * eta**2 * L**2 * sigma2 * MeanGrowth(eta * rho * (2 + eta * rho), tau),
    assuming=(sp.Le(eta * L, 1), sp.Le(rho, L)),
    reference=Reference("ratedist", "smooth form of wang2018, Theorem 1"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.HESSIAN_ABOVE, Property.LOCAL_SGD}, Conclusion.GRADIENT),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 3, "m": 4, "K": 100, "rho": 1},
            "0.233025",
            "by hand: .2 + .025 + .75 * .01 * (0 + 1 + 2.21) / 3",
        ),
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100, "rho": 0},
            "0.24000",
            "by hand, the convex form",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""Theorem 1 for any smooth problem, without the condition that couples eta and tau.

Setting.  As in ``pasgd_iterations``, only eta L <= 1, every Hessian >= -rho; rho = L assumes nothing but smoothness.

Derivation.  As in ``pasgd_convex``, but the step x -> x - eta grad F(x) is (1 + eta rho)-Lipschitz.  With q = (1 + eta
rho)^2 = 1 + y, ``E|x^i - x^j|^2`` after r steps is at most 2 eta^2 sigma2 (1 + q + ... + q^(r-1)), so ::

    avg EV <= (1 - 1/m) eta^2 sigma2 (1/tau) sum_{r<tau} (q^r - 1)/(q - 1),

which is the special function MeanGrowth(y, tau), equal to (tau - 1)/2 at rho = 0.
It is below Theorem 1 while 2 MeanGrowth < tau - 1 and remains valid where Theorem 1 does not apply.
"""

pasgd_smooth_sharp = Bound(
    name="pasgd_smooth_sharp",
    quantity="average over K local steps of E|grad F(xbar)|^2, Hessians >= -rho",
    side=Side.UPPER,
    value=2 * gap / (eta * K)
    + eta * L * sigma2 / m
    + (1 - 1 / m) * eta**2 * (L + rho) ** 2 * sigma2 * MeanGrowth(eta * rho * (2 + eta * rho), tau) / 4,
    assuming=pasgd_smooth.assuming,
    reference=Reference("ratedist", "smooth form of wang2018, Theorem 1, by cocoercivity of the mean"),
    status=Status.PROVED,
    setting=pasgd_smooth.setting,
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 3, "m": 4, "K": 100, "rho": 1},
            "0.233025",
            "by hand: .2 + .025 + .75 * .01 * (0 + 1 + 2.21) / 3",
        ),
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 3, "m": 4, "K": 100, "rho": "0.5"},
            "0.229362890625",
            "by hand: .2 + .025 + .75 * .01 * (9/16) * (0 + 1 + 2.1025) / 3",
        ),
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100, "rho": 0},
            "0.22875",
            "by hand, the convex form",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""Theorem 1 between convex and merely smooth: one formula for every Hessian >= -rho.

Setting.  As in ``pasgd_smooth``; rho = 0 is convex, rho = L assumes nothing but smoothness.

Derivation.  ``F + rho |x|^2/2`` is convex and (L + rho)-smooth.  The first inequality of ``pasgd_convex_sharp`` for it
speaks of b + rho xbar and gbar + rho xbar, whose difference is that of b and gbar: ``|b - gbar|^2 <= ((L + rho)/2)^2
V``.  The rest is as there, with avg EV of ``pasgd_smooth``; its last term gets the factor ((1 + rho/L)/2)^2, a quarter
at rho = 0 and one at rho = L.
"""

pasgd_gap = Bound(
    name="pasgd_gap",
    quantity="average over K local steps of E F(xbar) - inf F, F convex",
    side=Side.UPPER,
    value=R0**2 / (2 * eta * K) + eta * sigma2 / (2 * m) + (1 - 1 / m) * eta**2 * L * sigma2 * (tau - 1) / 4,
    assuming=(sp.Le(eta * L, 1),),
    reference=Reference("ratedist", "function-value form of wang2018, Theorem 1"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.CONVEX, Property.MINIMISER, Property.LOCAL_SGD}, Conclusion.GAP),
    examples=(
        Example(
            {"R0": 2, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100},
            "0.22000",
            "by hand: .2 + .0125 + .75 * .01",
        ),
    ),
    latex_name=r"\frac1K\sum_k E F(\bar x_k)-F^*",
)
"""Local-update SGD on a convex problem, measured by the function value instead of the gradient.

Setting.  As in ``pasgd_convex``; ``R0 = |x_1 - x*|`` for a minimiser x*.

Derivation.  Let g_i = grad F(x^i).  Convexity with smoothness, F* >= F(x^i) + ``<g_i, x* - x^i> + |g_i|^2/(2L)``, and
smoothness, F(xbar) <= F(x^i) + ``<g_i, xbar - x^i> + L/2 |xbar - x^i|^2``, add up to ::

    -2 <g_i, xbar - x*> <= -2 (F(xbar) - F*) + L |x^i - xbar|^2 - |g_i|^2/L.

``In E|xbar+ - x*|^2 = |xbar - x*|^2 - 2 eta mean <g_i, xbar - x*> + eta^2 |mean g_i|^2 + eta^2 sigma2/m the last`` of
these absorbs ``eta^2 |mean g_i|^2`` when eta L <= 1.  Sum, and insert avg EV of ``pasgd_convex``.
"""

pasgd_gap_sharp = Bound(
    name="pasgd_gap_sharp",
    quantity="average over K local steps of E F(xbar) - inf F, F convex",
    side=Side.UPPER,
    value=R0**2 / (2 * eta * K) + eta * sigma2 / (2 * m) + (1 - 1 / m) * eta**2 * L * sigma2 * (tau - 1) / 8,
    assuming=(sp.Le(eta * L, 1),),
    reference=Reference("ratedist", "function-value form of wang2018, Theorem 1, by interpolation at the mean"),
    status=Status.PROVED,
    setting=pasgd_gap.setting,
    examples=(
        Example(
            {"R0": 2, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100},
            "0.21625",
            "by hand: .2 + .0125 + .75 * .01 * 4 / 8",
        ),
    ),
    latex_name=r"\frac1K\sum_k E F(\bar x_k)-F^*",
)
"""Local-update SGD on a convex problem, measured by the function value, with half the price of ``pasgd_gap``.

Setting.  As in ``pasgd_gap``.

Derivation.  In the notation of ``pasgd_convex_sharp``.  A convex L-smooth F obeys, at the minimiser and at the mean, ::

    F* >= F(x^i) + <g_i, x* - x^i> + |g_i|^2/(2L),
    F(xbar) <= F(x^i) + <b, xbar - x^i> - |b - g_i|^2/(2L).

Subtract and average: ``mean <b, d_i>`` is zero, ``mean <g_i, x^i - x*> = <gbar, xbar - x*> + mean <u_i, d_i>``, and the
squares split into those of the means and ``mean |u_i|^2``, so that ::

    <gbar, xbar - x*> >= F(xbar) - F* + (|gbar|^2 + |b - gbar|^2)/(2L) + mean (|u_i|^2/L - <u_i, d_i>)
                      >= F(xbar) - F* + |gbar|^2/(2L) - (L/4) V.

In ``E|xbar+ - x*|^2 = |xbar - x*|^2 - 2 eta <gbar, xbar - x*> + eta^2 |gbar|^2 + eta^2 sigma2/m`` the square of gbar is
absorbed when eta L <= 1; sum over the steps, divide by 2 eta K and insert avg EV of ``pasgd_convex``.
"""

_growing_load = eta * L * (1 + noise_growth / m) + eta**2 * L**2 * (tau - 1) * (tau + 2 * noise_growth * (1 - 1 / m))

pasgd_multiplicative = Bound(
    name="pasgd_multiplicative",
    quantity="average over K local steps of E|grad F(xbar)|^2, noise growing with the gradient",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * sigma2 / m + (1 - 1 / m) * eta**2 * L**2 * sigma2 * (tau - 1),
    assuming=(sp.Le(_growing_load, 1),),
    reference=Reference("ratedist", "wang2018, Theorem 1, under multiplicative noise"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.SMOOTH,
                Property.BOUNDED_BELOW,
                Property.SAME_F,
                Property.UNBIASED_GRADIENTS,
                Property.GROWING_VARIANCE,
                Property.INDEPENDENT_NOISE,
                Property.LOCAL_SGD,
            }
        ),
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100, "noise_growth": 4},
            "0.25500",
            "by hand: .2 + .025 + .75 * .01 * 4, at condition .2 + .04 * 11 <= 1",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""Theorem 1 when the noise grows with the gradient: variance at most ``sigma2 + beta |grad F(x)|^2``.

Setting.  As in ``pasgd_iterations`` but for the variance; beta is ``noise_growth``.  At beta = 0 this is Theorem 1
with the factor 1 - 1/m in its last term.

Derivation.  Carry beta G through the proof of ``pasgd_iterations``.  (a) ``E|gbar|^2 <= sigma2/m + (1 + beta/m) G``, so
the coefficient of G becomes -(1 - eta L (1 + beta/m)).  (b) The noise part of V_r gains beta sum_{s<r} G_s::

    EV_r <= 2 eta^2 [(1 - 1/m)(r sigma2 + beta sum_{s<r} EG_s) + r sum_{s<r} EG_s];

averaged over r < tau the coefficient of avg EG is at most eta^2 (tau - 1)[tau + 2 beta (1 - 1/m)].  (c) G cancels
under the stated condition.
"""

_data_and_noise = (1 - 1 / m) * sigma2 + sp.Rational(2, 3) * (2 * tau - 1) * heterogeneity**2

pasgd_heterogeneous = Bound(
    name="pasgd_heterogeneous",
    quantity="average over K local steps of E|grad F(xbar)|^2, different data at every worker",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * sigma2 / m + 2 * eta**2 * L**2 * (tau - 1) * _data_and_noise,
    assuming=(sp.Le(eta * L, 1), sp.Le(4 * eta**2 * L**2 * tau * (tau - 1), 1)),
    reference=Reference("ratedist", "wang2018, Theorem 1, for different data; order of koloskova2020"),
    status=Status.PROVED,
    setting=Setting(
        NOISE | {Property.EVERY_SMOOTH, Property.BOUNDED_BELOW, Property.BOUNDED_HETEROGENEITY, Property.LOCAL_SGD},
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100, "heterogeneity": "0.5"},
            "0.405000",
            "by hand: .2 + .025 + .08 * (.75 + 6 * .25)",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""Theorem 1 when the workers' data differ: a term in the squared period that no number of workers removes.

Setting.  Worker i samples its own L-smooth F_i, F is their mean; ``(1/m) sum_i |grad F_i - grad F|^2`` <= zeta^2 at the
mean iterates (``heterogeneity``); noise as in ``pasgd_iterations``.

Derivation.  Let gbar be the mean of grad F_i(x^i).  As there, with ``|grad F(xbar) - gbar|^2 <= L^2 V`` and eta L <= 1,
::

    avg E|grad F(xbar)|^2 <= 2 gap/(eta K) + eta L sigma2/m + L^2 avg EV.

The spread of the gradients around their mean is at most their spread around grad F(xbar), hence <= 2 L^2 V + 2 zeta^2::

    EV_r <= 2 eta^2 r [(1 - 1/m) sigma2 + sum_{s<r} (2 L^2 EV_s + 2 zeta^2)].

Summed over a round, 4 eta^2 L^2 tau (tau - 1) <= 1 lets half of sum V absorb the V on the right::

    avg EV <= 2 eta^2 (tau - 1) [(1 - 1/m) sigma2 + (2/3)(2 tau - 1) zeta^2].
"""

pasgd_variable = Bound(
    name="pasgd_variable",
    quantity="average with weights eta over all local steps of E|grad F(xbar)|^2, schedule eta_r, tau_r",
    side=Side.UPPER,
    value=(2 * gap + L * sigma2 / m * sum_eta2 + L**2 * sigma2 * sum_eta3) / sum_eta,
    assuming=(sp.Le(worst_load, 1),),
    reference=Reference("wang2018", "Theorem 3", arxiv="1810.08313"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.SCHEDULED_LOCAL_SGD}, Conclusion.WEIGHTED_GRADIENT),
    examples=(
        Example(
            {
                "gap": 1,
                "L": 1,
                "sigma2": 1,
                "m": 4,
                "sum_eta": "0.7",
                "sum_eta2": "0.08",
                "sum_eta3": "0.0165",
                "worst_load": "0.3",
            },
            "2.90929",
            "by hand: rounds (eta, tau) = (.1, 4), (.1, 1), (.05, 4): (2 + .02 + .0165)/.7",
        ),
    ),
    latex_name=r"\frac{\sum_k\eta_k E\|\nabla F(\bar x_k)\|^2}{\sum_k\eta_k}",
)
"""Theorem 3 of local-update SGD: the learning rate and the communication period may change at every round.

Setting.  As in ``pasgd_iterations``; round r makes tau_r local steps with learning rate eta_r.  A schedule enters
through three sums and the largest load of a round, which ``schedule_sums`` computes.

Derivation.  Steps (a)-(c) of ``pasgd_iterations`` hold inside one round: with its load
eta L + eta^2 L^2 tau (tau - 1) <= 1, multiply its inequality by eta_r tau_r instead of dividing by K and sum::

    sum_r eta_r sum_{k in r} E|grad F(xbar_k)|^2
        <= 2 gap + (L sigma2/m) sum eta_r^2 tau_r + L^2 sigma2 sum eta_r^3 tau_r (tau_r - 1).

The bounded quantity is the average with weights eta_r, so divide by sum eta_r tau_r.  It tends to 0 when that sum
diverges while the other two converge.
"""


def schedule_sums(eta: Sequence[float], tau: Sequence[int], *, L: float) -> dict[str, float]:
    """Return what a schedule contributes to Theorem 3, ready as ``pasgd_variable(gap=, sigma2=, m=, L=L, **sums)``.

    Parameters
    ----------
    eta : sequence of float
        Learning rate of each round, > 0.
    tau : sequence of int
        Local steps of each round, >= 1; as many as learning rates, at least one.

    Raises
    ------
    ValueError
        For other arguments.

    Notes
    -----
    The condition on each round is checked by the bound through ``worst_load``.
    """
    rates, steps = np.asarray(eta, float), np.asarray(tau, float)
    if rates.ndim != 1 or rates.shape != steps.shape or rates.size == 0:
        raise ValueError(f"a schedule needs one eta and one tau per round; got {rates.shape} and {steps.shape}")
    if rates.min() <= 0 or steps.min() < 1:
        raise ValueError(f"a schedule needs eta > 0 and tau >= 1; got min {rates.min()} and {steps.min()}")
    return {
        "sum_eta": float(rates @ steps),
        "sum_eta2": float(rates**2 @ steps),
        "sum_eta3": float(rates**3 @ (steps * (steps - 1))),
        "worst_load": float(np.max(rates * L + (rates * L) ** 2 * steps * (steps - 1))),
    }


def power_schedule_converges(a: float, b: float) -> bool:
    """Return whether Theorem 3 drives the gradient to 0 for eta_r = c r^-a, tau_r = r^b, given a small enough c.

    The integral test on the three sums: a - b <= 1 lets the first diverge, 2a - b > 1 and 3a - 2b > 1 let the
    others converge; b <= a keeps eta tau, and so the load of every round, bounded.
    """
    return a - b <= 1 and 2 * a - b > 1 and 3 * a - 2 * b > 1 and b <= a


_windows = tau * (in_flight + (tau - 1) / 2) + sp.Max(0, in_flight - 1) * (tau + in_flight / 2)


pasgd_overlap = Bound(
    name="pasgd_overlap",
    quantity="average over K local steps of E|grad F(xbar)|^2, averages in flight",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * sigma2 / m + (1 - 1 / m) * eta**2 * L**2 * sigma2 * (tau - 1 + 2 * in_flight),
    assuming=(sp.Le(in_flight, tau), sp.Le(eta * L + 2 * eta**2 * L**2 * _windows, 1)),
    reference=Reference("ratedist", "wang2018, Theorem 1, with averages that arrive while the workers go on"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.OVERLAPPED_LOCAL_SGD}, Conclusion.GRADIENT),
    examples=(
        Example(
            {"gap": 1, "eta": "0.05", "L": 1, "sigma2": 1, "tau": 4, "in_flight": 3, "m": 4, "K": 100},
            "0.429375",
            "by hand: .4 + .0125 + .75 * .0025 * 9, at condition .05 + .005 * (4 * 4.5 + 2 * 5.5) <= 1",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""Theorem 1 when nobody waits: the average arrives ``in_flight`` local steps after it was asked for.

Setting.  As in ``pasgd_iterations``, but every tau steps the workers send their models y_i and go on; after delta =
``in_flight`` <= tau more steps the mean of the y_i has arrived and worker i continues from mean y + (x_i - y_i), with
the steps that it made meanwhile.  The bounded quantity is the same.  Only plain averages are covered: no outer rate but
1, no momentum.

Derivation.  The mean of the workers' models is not moved by the merge, so that (a) of ``pasgd_iterations`` stands. (b)
r steps after the last send whose mean has arrived, x^i - xbar is -eta times the centred sum of the last r gradients,
with r from delta to tau + delta - 1 (before the first arrival, from 0 to tau - 1)::

    EV_r <= 2 eta^2 r ((1 - 1/m) sigma2 + sum of the last r EG_s).

The mean of r is delta + (tau - 1)/2, which gives the noise its factor tau - 1 + 2 delta.  A gradient made j steps after
a send counts in the windows of its own round that are longer than j, whose lengths add up to at most tau (delta + (tau
- 1)/2), and, if j < delta - 1, in the windows of the round before that are longer than tau + j, whose lengths add up to
at most (delta - 1)(tau + delta/2); both are largest at j = 0.  (c) So G cancels where

    eta L + 2 eta^2 L^2 [tau (delta + (tau - 1)/2) + max(0, delta - 1)(tau + delta/2)] <= 1.

At delta = 0 this is ``pasgd_iterations`` with the factor 1 - 1/m in its last term.
"""

_mixing_load = tau / (1 - zeta) * ((1 + 2 * zeta) * (tau - 1) + 2 * zeta**2 * tau / (1 - zeta))

cooperative = Bound(
    name="cooperative",
    quantity="average over K local steps of E|grad F(xbar)|^2, mixing every tau steps",
    side=Side.UPPER,
    value=2 * gap / (eta * K)
    + eta * L * sigma2 / m
    + eta**2 * L**2 * sigma2 * ((1 + zeta**2) / ((1 - zeta) * (1 + zeta)) * tau - 1),
    assuming=(sp.Le(eta * L + eta**2 * L**2 * _mixing_load, 1),),
    reference=Reference("wang2021", "Theorem 1", arxiv="1808.07576"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.MIXED_LOCAL_SGD}, Conclusion.GRADIENT),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 3, "tau": 2, "m": 4, "K": 100, "zeta": "0.5"},
            "0.34500",
            "by hand: .2 + .075 + .03 * (5/3 * 2 - 1)",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""Cooperative SGD: local steps with gossip, every averaging replaced by one multiplication with a mixing matrix.

Setting.  As in ``pasgd_iterations``, but every tau steps the matrix of iterates is multiplied by W, symmetric and
doubly stochastic, whose eigenvalues other than 1 have modulus at most zeta.  zeta = 0 is full averaging: Theorem 1.

Derivation.  W leaves xbar unchanged, so (a) of ``pasgd_iterations`` stands.  For V, a gradient that has passed j
mixings reaches the deviations through W^j - J, J the averaging matrix, of spectral norm zeta^j.
Noise (orthogonal): EV_noise <= sigma2 (r + tau sum_{j>=1} zeta^(2j)), r steps after a mixing; twice its mean over r is
::

    sigma2 [(tau - 1) + 2 tau zeta^2/(1 - zeta^2)] = sigma2 [tau (1 + zeta^2)/(1 - zeta^2) - 1].

Gradients (weighted Cauchy-Schwarz, weights zeta^j): at most (r + tau zeta/(1 - zeta)) sum_s zeta^j(s) G_s; collecting
what one G_s sends to its own and to later rounds, twice the total is at most ::

    tau^2/(1 - zeta) [(1 + 2 zeta)(tau - 1)/tau + 2 zeta^2/(1 - zeta)].

G cancels under the stated condition, which is implied by the published one.
"""

_effective_eta = eta / (1 - beta)
_carried = (tau**2 / (1 - beta) + tau * (tau - 1) / 2) * (2 - beta) / (1 - beta)
_momentum_spread = tau / ((1 - beta) * (1 + beta)) + (tau - 1) / 2

block_momentum = Bound(
    name="block_momentum",
    quantity="average over K local steps of E|grad F(xbar)|^2, momentum between rounds",
    side=Side.UPPER,
    value=2 * gap / (_effective_eta * K)
    + _effective_eta * L * sigma2 / m
    + eta**2 * L**2 * sigma2 * (tau - 1)
    + 4 * beta**2 * _effective_eta**2 * L**2 * sigma2 / m * _momentum_spread,
    assuming=(
        sp.Le(
            _effective_eta * L + eta**2 * L**2 * tau * (tau - 1) + 4 * beta**2 * _effective_eta**2 * L**2 * _carried,
            sp.Rational(1, 2),
        ),
    ),
    reference=Reference("chen2016", "block momentum; the rate is derived here"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.MOMENTUM_LOCAL_SGD}, Conclusion.GRADIENT),
    examples=(
        Example(
            {
                "gap": 1,
                "eta": "0.05",
                "L": 1,
                "sigma2": 3,
                "tau": 2,
                "m": 4,
                "K": 100,
                "block_momentum_factor": "0.5",
            },
            "0.306250",
            "by hand: e = .1; .2 + .075 + .0075 + 4 * .25 * .01 * .75 * (8/3 + 1/2)",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""Local-update SGD with momentum between rounds (block momentum), for a non-convex problem.

Setting.  As in ``pasgd_iterations``; round j starts all workers at x_j, G_j is the sum of the tau mean gradients of
the round, u_j = beta u_{j-1} + G_j, u_{-1} = 0, x_{j+1} = x_j - eta u_j.  Write e = eta/(1 - beta).

Derivation.  z_j = x_j + beta/(1 - beta) (x_j - x_{j-1}) moves by -e G_j, so the points y_{j,k} = z_j - e (sum of the
first k mean gradients) make plain steps of size e.  Descend along y, write <grad F(y), g_i> as <grad F(xbar), g_i> +
<grad F(y) - grad F(xbar), g_i>, and bound the second by ``L^2|y - xbar|^2 + |mean g_i|^2/4``::

    avg E|grad F(xbar)|^2 <= 2 gap/(e K) + e L sigma2/m + L^2 avg EV + 2 L^2 avg EW - (1/2 - e L) avg EG,

with ``W = |y - xbar|^2``.  V is that of ``pasgd_iterations``.  For W, y - xbar = -beta e (u_{j-1} + sum of the first k
mean gradients): split into noise (orthogonal: variance (sigma2/m)(tau/(1 - beta^2) + k)) and gradients (weighted
Cauchy-Schwarz; collect what each G receives from its own and later rounds), ::

    avg EW <= 2 beta^2 e^2 [(sigma2/m)(tau/(1 - beta^2) + (tau - 1)/2) + A avg EG],
    A = (tau^2/(1 - beta) + tau (tau - 1)/2) (2 - beta)/(1 - beta).

G cancels when e L + eta^2 L^2 tau (tau - 1) + 4 beta^2 e^2 L^2 A <= 1/2.
"""

stale_sgd = Bound(
    name="stale_sgd",
    quantity="average over K steps of E|grad F(x)|^2, SGD with late gradients",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * sigma2 + 2 * eta**2 * L**2 * sigma2 * staleness,
    assuming=(sp.Le(eta * L + 2 * eta**2 * L**2 * staleness**2, 1),),
    reference=Reference(
        "lian2015", "consistent reads, one gradient a step; constants derived here", arxiv="1506.08272"
    ),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.SMOOTH,
                Property.BOUNDED_BELOW,
                Property.UNBIASED_GRADIENTS,
                Property.BOUNDED_VARIANCE,
                Property.INDEPENDENT_NOISE,
                Property.STALE_SGD,
            }
        ),
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "staleness": 3, "K": 100},
            "0.36000",
            "by hand: .2 + .1 + .06, at condition .1 + .18 <= 1",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(x_k)\|^2",
)
"""Asynchronous SGD: every step applies the gradient of a model that is some steps old.

Setting.  x_{k+1} = x_k - eta g_k, g_k a stochastic gradient at y_k = x_{k-d_k} with d_k <= delta = ``staleness`` (and
<= k), unbiased given x_0, .., x_k, of variance at most sigma2.  F is L-smooth.  The model is one, whoever computes.

Derivation.  The descent lemma with ``-2 <a, b> = |a - b|^2 - |a|^2 - |b|^2`` gives, G_k = ``E|grad F(y_k)|^2``, ::

    avg E|grad F(x)|^2 <= 2 gap/(eta K) + eta L sigma2 + L^2 avg E|x_k - y_k|^2 - (1 - eta L) avg G.

x_k - y_k is -eta times the sum of the last d_k gradients.  Split it into noise (a martingale) and gradients
(Cauchy-Schwarz): ``E|x_k - y_k|^2 <= 2 eta^2 (delta sigma2 + delta sum of the last delta G_j)``.  Every G_j is in at
most delta of these sums, so that G cancels under the condition.
"""
