"""Local SGD as others bound it: strongly convex, convex and heterogeneous problems."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import NOISE, SAME_DATA, Setting
from ..special.elementary import GeometricDecay
from ..symbols import (
    R0,
    G,
    K,
    L,
    epsilon,
    eta,
    gap,
    heterogeneity,
    m,
    mu,
    omega,
    participants,
    psi0,
    rounds,
    shift,
    sigma2,
    sigma2_opt,
    tau,
)
from ..symbols import block_momentum_factor as beta
from ..symbols import sync_probability as p

_weights = K * shift**2 + shift * K * (K - 1) + K * (K - 1) * (2 * K - 1) / 6

stich = Bound(
    name="stich",
    quantity="E F(weighted average of xbar) - inf F after K local steps, eta_t = 4/(mu (a + t))",
    side=Side.UPPER,
    value=(
        mu * shift**3 * R0**2 / 2 + 4 * K * (K + 2 * shift) * sigma2 / (mu * m) + 256 * K * G**2 * tau**2 * L / mu**2
    )
    / _weights,
    assuming=(sp.Gt(shift, 16 * L / mu), sp.Gt(shift, tau), sp.Le(mu, L)),
    reference=Reference("stich2019", "Theorem 2.2", arxiv="1805.09767"),
    status=Status.PROVED,
    setting=Setting(
        SAME_DATA | {Property.STRONGLY_CONVEX, Property.SECOND_MOMENT, Property.FALLING_STEP_LOCAL_SGD},
        Conclusion.GAP_OF_WEIGHTED_AVERAGE,
    ),
    examples=(
        Example(
            {"R0": 1, "L": 1, "mu": 1, "sigma2": 1, "G": 1, "tau": 2, "m": 4, "K": 2, "shift": 20},
            "7.29132",
            "by hand: (4000 + 84 + 2048)/(400 + 441) = 6132/841",
        ),
    ),
    latex_name=r"E F(\hat x_K)-F^*",
)
"""Local SGD converges as fast as mini-batch SGD: strongly convex, falling learning rate (Stich).

Setting.  As in ``pasgd_iterations``, F mu-strongly convex, ``E|g|^2 <= G^2`` for every local gradient used, eta_t =
4/(mu (a + t)), t = 0..K-1, a > max(16 L/mu, tau); xhat averages xbar_t with weights w_t = (a + t)^2.

Derivation.  With g_i = grad F(x^i): strong convexity, ``|g_i|^2 <= 2 L (F(x^i) - F*)`` and Young's inequality give ::

    -2 <g_i, xbar - x*> <= -(F(x^i) - F*) - mu |x^i - x*|^2 + 2 L |x^i - xbar|^2,

and eta L <= 1/4 with Jensen's inequality the step ::

    E|xbar+ - x*|^2 <= (1 - eta mu)|xbar - x*|^2 - (eta/2)(F(xbar) - F*) + eta^2 sigma2/m + 2 eta L V.

EV <= tau^2 G^2 eta_s^2 at the last averaging s, and eta_s <= 2 eta_t since t - s <= tau <= a: V <= 4 tau^2 G^2 eta_t^2.
Multiply by w_t/eta_t: (1 - mu eta_t) w_t/eta_t <= mu (a + t - 1)^3/4, so distances telescope; sum w_t eta_t <=
2 K (K + 2a)/mu and sum w_t eta_t^2 = 16 K/mu^2.  Divide by half of S = sum w_t.
"""

khaled_iid_strongly_convex = Bound(
    name="khaled_iid_strongly_convex",
    quantity="E|xbar - x*|^2 after K local steps, F strongly convex, identical data",
    side=Side.UPPER,
    value=GeometricDecay(eta, mu, K) * R0**2 + eta * sigma2 / (mu * m) + 2 * L * eta**2 * (tau - 1) * sigma2 / mu,
    assuming=(sp.Le(eta * L, sp.Rational(1, 4)), sp.Le(mu, L)),
    reference=Reference("khaled2020", "identical data, strongly convex", arxiv="1909.04746"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.STRONGLY_CONVEX, Property.LOCAL_SGD}, Conclusion.DISTANCE),
    examples=(
        Example(
            {"R0": 2, "eta": "0.1", "L": 1, "mu": 1, "sigma2": 1, "tau": 3, "m": 4, "K": 2},
            "3.30500",
            "by hand: .81 * 4 + .025 + .04",
        ),
    ),
    latex_name=r"E\|\bar x_K-x^*\|^2",
)
"""Local SGD on identical data, strongly convex: linear convergence to a ball that grows with tau.

Setting.  As in ``khaled_iid``, F mu-strongly convex.

Derivation.  The one-step inequality proved in ``stich``, without its function value, is ::

    E|xbar+ - x*|^2 <= (1 - eta mu)|xbar - x*|^2 + eta^2 sigma2/m + 2 eta L V;

EV <= eta^2 sigma2 (tau - 1) by ``pasgd_convex``.  Unroll and sum the geometric series.
"""

khaled_iid = Bound(
    name="khaled_iid",
    quantity="E F(mean over K local steps of xbar) - inf F, F convex, identical data",
    side=Side.UPPER,
    value=2 * R0**2 / (eta * K) + 2 * eta * sigma2 / m + 4 * eta**2 * L * sigma2 * (tau - 1),
    assuming=(sp.Le(eta * L, sp.Rational(1, 4)),),
    reference=Reference("khaled2020", "identical data, convex", arxiv="1909.04746"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.CONVEX, Property.MINIMISER, Property.LOCAL_SGD}, Conclusion.GAP_OF_AVERAGE),
    examples=(
        Example(
            {
                "R0": "3.16227766016837933199889354443",
                "eta": "0.05",
                "L": 1,
                "sigma2": 4,
                "tau": 16,
                "m": 16,
                "K": 4000,
            },
            "0.72500",
            "published check value on the reference quadratic, |x_1 - x*|^2 = 10: .1 + .025 + .6",
        ),
    ),
    latex_name=r"E F(\hat x_K)-F^*",
)
"""Local SGD on identical data, convex: the bound of Khaled, Mishchenko and Richtarik.

Setting.  As in ``pasgd_gap`` with eta L <= 1/4.

Derivation.  With mu = 0 the one-step inequality proved in ``stich`` reads ::

    E|xbar+ - x*|^2 <= |xbar - x*|^2 - (eta/2)(F(xbar) - F*) + eta^2 sigma2/m + 2 eta L V,

and EV <= eta^2 sigma2 (tau - 1) by ``pasgd_convex``.  Sum and divide by eta K/2.
Term by term 4 to 16 times above ``pasgd_gap``.
"""

khaled_heterogeneous = Bound(
    name="khaled_heterogeneous",
    quantity="E F(mean over K local steps of xbar) - inf F, convex, different data at every worker",
    side=Side.UPPER,
    value=4 * R0**2 / (eta * K) + 20 * eta * sigma2_opt / m + 16 * eta**2 * L * (tau - 1) ** 2 * sigma2_opt,
    assuming=(sp.Le(eta * L, sp.Rational(1, 4)), sp.Le(eta * L * (tau - 1), sp.Rational(1, 8))),
    reference=Reference("khaled2020", "heterogeneous data, convex", arxiv="1909.04746"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.SAMPLES_CONVEX_SMOOTH,
                Property.MINIMISER,
                Property.UNBIASED_GRADIENTS,
                Property.INDEPENDENT_NOISE,
                Property.LOCAL_SGD,
            }
        ),
        Conclusion.GAP_OF_AVERAGE,
    ),
    examples=(
        Example(
            {"R0": 1, "eta": "0.05", "L": 1, "sigma2_opt": 1, "tau": 3, "m": 4, "K": 100},
            "1.21000",
            "by hand: .8 + .25 + .16",
        ),
    ),
    latex_name=r"E F(\hat x_K)-F^*",
)
"""Local SGD on different data at every worker, convex: the bound of Khaled, Mishchenko and Richtarik.

Setting.  Worker i samples g_i(x) with mean grad F_i(x), F the mean of the F_i; every sample function is convex and
L-smooth; sigma2_opt is the mean over workers of ``E|g_i(x*)|^2``, which contains the differences between workers.

Derivation.  Let delta = F(xbar) - F*.  Convexity and smoothness give ::

    -2 mean <grad F_i(x^i), xbar - x*> <= -2 delta + L V.

Split mean g_i(x^i) at xbar (Young, 5 : 5/4) and at x*, where the mean gradients cancel: ``E|mean g_i|^2 <= 5 L^2 V +
(5/4)(4 L delta + 2`` sigma2_opt/m), so for eta L <= 1/4: (3/4) eta sum delta <= R0^2 + (9/4) eta L sum V + (5/2) eta^2
sigma2_opt K/m.

Since ``E|g_i(x^i)|^2`` averages to at most 3 L^2 V + 6 L delta + 3 sigma2_opt, a round has ::

    sum V <= eta^2 tau (tau - 1)/2 (3 L^2 sum V + 6 L sum delta + 3 tau sigma2_opt),

and eta L (tau - 1) <= 1/8 lets both sums on the right be absorbed: 0.52 eta sum delta <= R0^2 + 2.5 (...) + 7.1 (...).
This is below the published statement, constants 4, 20, 16, term by term.
"""

koloskova = Bound(
    name="koloskova",
    quantity="steps until the average of E|grad F(xbar)|^2 is at most epsilon, tuned step size, different data",
    side=Side.UPPER,
    value=L
    * gap
    * (
        32 * sigma2 / (m * epsilon**2)
        + (sp.sqrt(512 * sigma2 * tau) + sp.sqrt(sp.Rational(2048, 3)) * tau * heterogeneity)
        / epsilon ** sp.Rational(3, 2)
        + 16 * tau / epsilon
    ),
    reference=Reference("koloskova2020", "non-convex case, all-reduce; constants derived here", arxiv="2003.10422"),
    status=Status.PROVED,
    setting=Setting(
        NOISE
        | {
            Property.EVERY_SMOOTH,
            Property.BOUNDED_BELOW,
            Property.BOUNDED_HETEROGENEITY,
            Property.LOCAL_SGD,
            Property.TUNED_STEP,
        },
        Conclusion.STEPS_TO_GRADIENT,
    ),
    examples=(
        Example(
            {"L": 1, "gap": 1, "sigma2": 1, "m": 4, "epsilon": "0.25", "tau": 2, "heterogeneity": 0},
            "512.000",
            "by hand: 128 + 32 * 8 + 128",
        ),
        Example(
            {"L": 1, "gap": 1, "sigma2": 0, "m": 4, "epsilon": 1, "tau": 4, "heterogeneity": "1.7320508075688772935"},
            "245.0193",
            "by hand: sqrt(2048) * 4 + 64 with sqrt(2048) = 45.254834",
        ),
    ),
    unit="step",
    latex_name="K",
)
"""A unified theory of decentralised SGD, for periodic full averaging and different data: steps to an accuracy.

Derivation.  In ``pasgd_heterogeneous`` make each of the four terms at most epsilon/4: eta is the smallest of
1/(2 L tau) (for the conditions), m epsilon/(4 L sigma2), sqrt(epsilon/(8 tau))/(L sigma) and
sqrt(3 epsilon/32)/(L tau zeta), using (2/3)(2 tau - 1)(tau - 1) <= (4/3) tau^2.  Then K = 8 gap/(eta epsilon), and
1/eta is at most the sum of the four inverses.  The published statement is the same up to an absolute constant.
"""

woodworth_upper = Bound(
    name="woodworth_upper",
    quantity="average over all local steps of E F(xbar) - inf F, tuned step size, convex, homogeneous",
    side=Side.UPPER,
    value=L * R0**2 / (2 * tau * rounds)
    + sp.sqrt(sigma2) * R0 / sp.sqrt(m * tau * rounds)
    + sp.Rational(3, 4) * sp.cbrt(L * sigma2 * R0**4 / 2) / (sp.cbrt(tau) * rounds ** sp.Rational(2, 3)),
    reference=Reference("woodworth2020", "homogeneous convex case; constants derived here", arxiv="2002.07839"),
    status=Status.PROVED,
    setting=Setting(
        SAME_DATA | {Property.CONVEX, Property.MINIMISER, Property.LOCAL_SGD, Property.TUNED_STEP}, Conclusion.GAP
    ),
    examples=(
        Example(
            {"L": 2, "R0": 1, "sigma2": 1, "m": 1, "tau": 1, "rounds": 64},
            "0.1875",
            "by hand: 1/64 + 1/8 + (3/4)/16",
        ),
    ),
    note="On quadratics the last term is absent: local steps cost nothing there.",
    latex_name=r"\frac1K\sum_k E F(\bar x_k)-F^*",
)
"""Is local SGD better than mini-batch SGD?  The homogeneous convex upper bound, here with its constants.

Setting.  As in ``pasgd_gap``: ``rounds`` rounds of tau local steps, step size tuned to the constants.

Derivation.  In ``pasgd_gap_sharp`` with K = tau R take eta = min(1/L, R0 sqrt(m)/(sigma sqrt(K)),
(2 R0^2/(L sigma2 tau K))^(1/3)).  R0^2/(2 eta K) is at most the sum of its values at the three; the second and the
third also bound the noise term and the term of the local steps (with (1 - 1/m)(tau - 1) <= tau)::

    L R0^2/(2K) + (1/2 + 1/2) sigma R0/sqrt(m K) + (1/2 + 1/4) 2^(-1/3) (L sigma2 R0^4 tau/K^2)^(1/3).

The third is the best for its two terms, a/eta + b eta^2 with a = R0^2/(2K) and b = L sigma2 tau/8.

The published statement has an absolute constant before the same three terms; 1 therefore suffices.
"""

_proxskip_rate = sp.Min(eta * mu, p**2)

proxskip = Bound(
    name="proxskip",
    quantity="E of the Lyapunov function of ProxSkip after K local steps",
    side=Side.UPPER,
    value=sp.Max(GeometricDecay(eta, mu, K), GeometricDecay(p, p, K)) * psi0 + eta**2 * sigma2 / _proxskip_rate,
    assuming=(sp.Le(eta * L, 1), sp.Le(mu, L)),
    reference=Reference("mishchenko2022", "Theorem 3.6 and its stochastic form", arxiv="2202.09357"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_STRONGLY_CONVEX,
                Property.EVERY_SMOOTH,
                Property.UNBIASED_GRADIENTS,
                Property.BOUNDED_VARIANCE,
                Property.PROXSKIP,
            }
        ),
        Conclusion.LYAPUNOV,
    ),
    examples=(
        Example(
            {"eta": "0.5", "mu": "0.5", "L": 1, "sync_probability": "0.5", "K": 2, "psi0": 16, "sigma2": 2},
            "11.00000",
            "by hand: (3/4)^2 * 16 + .5/.25",
        ),
    ),
    latex_name=r"E\Psi_K",
)
"""ProxSkip (Scaffnew): local steps with control variates, communication skipped with probability 1 - p.

Setting.  Every F_i mu-strongly convex and L-smooth, data may differ; steps xhat_i = x_i - eta (g_i - h_i); with
probability p the x_i become the mean of xhat_i - (eta/p) h_i, otherwise xhat_i; then h_i += (p/eta)(x_i - xhat_i).  Psi
= mean over workers of ``|x_i - x*|^2 + (eta/p)^2 |h_i - grad F_i(x*)|^2``; noise of variance sigma2 is allowed.

Derivation.  Averaging is a projection, hence firmly non-expansive: ``|Pu - Pv|^2 + |(u - Pu) - (v - Pv)|^2 <= |u -
v|^2``.  At a communication Psi is the left side for u = xhat - (eta/p) h, v = x* - (eta/p) h*, so ::

    E Psi+ <= |xhat - x*|^2 - 2 eta <xhat - x*, h - h*> + (eta/p)^2 |h - h*|^2.

With w = x - eta g, w* = x* - eta h*: xhat - x* = w - w* + eta (h - h*); the cross terms cancel and ::

    E Psi+ <= E|w - w*|^2 + (1 - p^2)(eta/p)^2 |h - h*|^2,  E|w - w*|^2 <= (1 - eta mu)|x - x*|^2 + eta^2 sigma2.

Unroll with the slower of the two factors.
"""

fedpaq = Bound(
    name="fedpaq",
    quantity="average over K local steps of E|grad F(xbar)|^2, eta = 1/(L sqrt(K)), round changes quantised",
    side=Side.UPPER,
    value=2 * L * gap / sp.sqrt(K) + (1 + omega) * sigma2 / (m * sp.sqrt(K)) + sigma2 * (m + 1) / m * (tau - 1) / K,
    reference=Reference("reisizadeh2020", "Theorem 2, non-convex", arxiv="1909.13014"),
    status=Status.RECALLED,
    setting=Setting(
        SAME_DATA | {Property.UNBIASED, Property.INDEPENDENT_MESSAGES, Property.FEDPAQ},
        Conclusion.GRADIENT,
        known_up_to="conditions on K that are not stated here",
    ),
    examples=(
        Example(
            {"L": 1, "gap": 1, "K": 100, "m": 4, "omega": 3, "sigma2": 1, "tau": 5},
            "0.350000",
            "by hand: .2 + .1 + 1.25 * .04",
        ),
    ),
    note="Recalled; its conditions on K are not stated here.  The proved pasgd_compressed has 1 + 2 omega in the place "
    "of 1 + omega: for non-convex F gradients correlate with earlier noise of the same round.",
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""FedPAQ: periodic averaging of quantised differences, with the step size 1/(L sqrt(K))."""

scaffold = Bound(
    name="scaffold",
    quantity="local steps until the average of E|grad F|^2 is at most epsilon, SCAFFOLD, non-convex, up to a constant",
    side=Side.UPPER,
    value=L * gap * (sigma2 / (participants * epsilon**2) + tau * (m / participants) ** sp.Rational(2, 3) / epsilon),
    assuming=(sp.Le(participants, m),),
    reference=Reference("karimireddy2020", "Table 2 and Theorem III, non-convex", arxiv="1910.06378"),
    status=Status.RECALLED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_SMOOTH,
                Property.BOUNDED_BELOW,
                Property.UNBIASED_GRADIENTS,
                Property.BOUNDED_VARIANCE,
                Property.INDEPENDENT_NOISE,
                Property.SCAFFOLD,
            }
        ),
        Conclusion.STEPS_TO_GRADIENT,
        known_up_to="an absolute constant factor",
    ),
    examples=(
        Example(
            {"L": 1, "gap": 1, "sigma2": 1, "m": 8, "participants": 1, "tau": 5, "epsilon": "0.1"},
            "300.000000",
            "by hand: 1/.01 + 5 * 4/.1",
        ),
    ),
    unit="step",
    note="Recalled, and known up to an absolute constant only.  Differences between the workers' data do not enter.",
    latex_name="K",
)
"""SCAFFOLD: local SGD whose workers correct their steps by control variates, with some workers a round.

Recalled in rounds: sigma2/(s tau epsilon^2) + (m/s)^(2/3)/epsilon for s participants of m, times L gap by the units;
here times tau.  Local steps pay for noise only: without noise their number per round changes no number of rounds.
"""

fednova = Bound(
    name="fednova",
    quantity="average over K local steps of E|grad F(xbar)|^2, FedNova, up to a constant",
    side=Side.UPPER,
    value=gap / (eta * K)
    + eta * L * sigma2 / m
    + eta**2 * L**2 * (sigma2 * (tau - 1) + heterogeneity**2 * tau * (tau - 1)),
    assuming=(sp.Le(eta * L * tau, 1),),
    reference=Reference("wang2020", "Theorem 1 at equal weights and numbers of steps", arxiv="2007.07481"),
    status=Status.RECALLED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_SMOOTH,
                Property.BOUNDED_BELOW,
                Property.UNBIASED_GRADIENTS,
                Property.BOUNDED_VARIANCE,
                Property.INDEPENDENT_NOISE,
                Property.BOUNDED_HETEROGENEITY,
                Property.FEDNOVA,
            }
        ),
        Conclusion.GRADIENT,
        known_up_to="an absolute constant factor",
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "m": 4, "K": 100, "tau": 5, "heterogeneity": 1},
            "0.365000",
            "by hand: .1 + .025 + .01 * (4 + 20)",
        ),
    ),
    note="Recalled, and known up to an absolute constant only.  The proved pasgd_heterogeneous has its constants.",
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""FedNova: changes are divided by each worker's number of local steps, so that unequal numbers shift no optimum.

With tau_i steps at worker i, plain averaging minimises sum tau_i F_i instead of sum F_i; on quadratics of equal
curvature it stops at the mean of the minimisers with weights 1 - (1 - eta L)^tau_i.  At equal tau_i both are local SGD,
for which the recalled bound stands here.
"""

slowmo = Bound(
    name="slowmo",
    quantity="average over K local steps of E|grad F(xbar)|^2, SlowMo on local SGD, slow learning rate 1",
    side=Side.UPPER,
    value=(2 * gap + m * sigma2 * L) / sp.sqrt(m * K)
    + 4 * m * sigma2 * L**2 * (tau - 1) / K * beta**2
    + 8 * m * sigma2 * L**2 * tau / K * beta**2 / (1 - beta**2),
    reference=Reference("wangslowmo2020", "Theorem 1, slow learning rate 1", arxiv="1910.00643"),
    status=Status.RECALLED,
    setting=Setting(
        SAME_DATA | {Property.SLOW_MOMENTUM},
        Conclusion.GRADIENT,
        known_up_to="conditions on K and the deviation of the inner directions, which are not stated here",
    ),
    examples=(
        Example(
            {"gap": 1, "L": 1, "sigma2": 1, "m": 4, "K": 10000, "tau": 5, "block_momentum_factor": "0.5"},
            "0.0369333333",
            "by hand: 6/200 + .0064 * .25 + .016 * (1/3)",
        ),
    ),
    note="Recalled; its conditions on K are not stated here.  The proved block_momentum is the same method.",
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""SlowMo: momentum between rounds of any base optimizer (see ``block_momentum``, which is proved).

Recalled for the effective step size sqrt(m/K) with K local steps in all; the base optimizer adds the deviation of its
directions from the gradient, which is left out.
"""
