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

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import K, L, eta, gap, m, sigma2, tau

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
