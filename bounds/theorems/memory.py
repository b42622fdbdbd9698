"""Contractive compression with a memory of what was not sent, with and without local steps."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..special.elementary import FusedDifference
from ..symbols import G, K, L, alpha, d, epsilon, eta, gap, kept, m, sigma2, tau, topk_gap

ef_memory = Bound(
    name="ef_memory",
    quantity="E|e|^2, the squared memory of error feedback at any step",
    side=Side.UPPER,
    value=eta**2 * G**2 * alpha * (1 + sp.sqrt(alpha)) ** 2 / (1 - alpha) ** 2,
    reference=Reference("karimireddy2019", "Lemma 3, sharpened", arxiv="1901.09847"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.SECOND_MOMENT, Property.CONTRACTIVE, Property.MEMORY}), Conclusion.ERROR_MEMORY
    ),
    examples=(Example({"alpha": "0.25", "eta": "0.1", "G": 2}, "0.0400000", "by hand: .04 * .25/.25"),),
    latex_name=r"E\|e\|^2",
)
"""Error feedback: the memory of what was not sent stays bounded.

Setting.  p = eta g + e, C(p) is sent, e+ = p - C(p), e_1 = 0; ``E|C(p) - p|^2 <= alpha |p|^2`` and ``E|g|^2 <= G^2``.

Derivation.  In the norm ``|v| = sqrt(E|v|^2)``, ``|e+| <= sqrt(alpha) |eta g + e| <= sqrt(alpha)(eta G + |e|)``, hence
``|e| <= eta G sqrt(alpha)/(1 - sqrt(alpha))`` at every step.  Never above the usual 4 alpha/(1 - alpha)^2 eta^2 G^2,
since 1 + sqrt(alpha) <= 2; four times below it for small alpha.
"""

ef_sgd = Bound(
    name="ef_sgd",
    quantity="average over K steps of E|grad F(x)|^2, SGD with error feedback, non-convex",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * G**2 + L**2 * ef_memory.value,
    reference=Reference("karimireddy2019", "Theorem II; constants derived here", arxiv="1901.09847"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.SMOOTH,
                Property.BOUNDED_BELOW,
                Property.UNBIASED_GRADIENTS,
                Property.SECOND_MOMENT,
                Property.CONTRACTIVE,
                Property.MEMORY_SGD,
            }
        ),
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "K": 100, "L": 1, "G": 2, "alpha": "0.25"}, "0.640000", "by hand: .2 + .4 + .04"
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(x_k)\|^2",
)
"""Error feedback makes any contractive compressor converge on non-convex problems.

Setting.  ``ef_memory`` at each of m workers; x+ = x - mean C_i(p_i); F L-smooth, g_i unbiased with ``E|g_i|^2 <= G^2``.

Derivation.  y = x - mean e_i makes plain SGD steps.  Descend along y; <grad F(y), ``grad F(x)> >= |grad F(x)|^2/2 - L^2
|y - x|^2/2`` and ``E|y - x|^2`` <= the bound of ``ef_memory``::

    avg E|grad F(x)|^2 <= 2 gap/(eta K) + eta L G^2 + L^2 E|e|^2.
"""

gtopk_sgd = Bound(
    name="gtopk_sgd",
    quantity="average over K steps of E|grad F(x)|^2, global top-k SGD with memory, non-convex",
    side=Side.UPPER,
    value=ef_sgd.value.xreplace({1 - alpha: kept / d, alpha: (d - kept) / d}),
    assuming=(sp.Le(kept, d),),
    reference=Reference("shi2019", "assumption of the convergence theorem; constants derived here"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.SMOOTH,
                Property.BOUNDED_BELOW,
                Property.UNBIASED_GRADIENTS,
                Property.MEAN_SECOND_MOMENT,
                Property.AGGREGATE_CONTRACTS,
                Property.GLOBAL_TOPK_SGD,
            }
        ),
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "K": 100, "L": 1, "G": 2, "kept": 3, "d": 4}, "0.640000", "by hand: .2 + .4 + .04"
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(x_k)\|^2",
)
"""Global top-k SGD with memory, under the assumption that it contracts the summed message like top-k of d.

Setting.  As in ``topk_sgd``; the aggregate A(p_1..p_m) that all workers apply satisfies ``E|mean p_i - A|^2 <= (1 -
k/d) E|mean p_i|^2``.  It does not follow from the algorithm (messages may cancel): check it on the data.

Derivation.  The mean memory is mean p_i - A, so ``ef_memory`` holds for it with alpha = 1 - k/d; then as ``ef_sgd``.
"""

_rest = sp.sqrt((d - kept) / d)

topk_sgd = Bound(
    name="topk_sgd",
    quantity="average over K steps of E|grad F(x)|^2, top-k SGD with memory, non-convex",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * G**2 + (eta * L * G * (_rest + topk_gap) * (1 + _rest) * d / kept) ** 2,
    assuming=(sp.Le(kept, d),),
    reference=Reference("alistarh2018", "Assumption 1; constants derived here", arxiv="1809.10505"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.SMOOTH,
                Property.BOUNDED_BELOW,
                Property.UNBIASED_GRADIENTS,
                Property.MEAN_SECOND_MOMENT,
                Property.TOPK_NEAR_MEAN,
                Property.TOPK_MEMORY_SGD,
            }
        ),
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "K": 100, "L": 1, "G": 2, "kept": 3, "d": 4, "topk_gap": "0.5"},
            "0.760000",
            "by hand: .2 + .4 + (.2 * 1/.5)^2",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(x_k)\|^2",
)
"""Top-k SGD with memory, under the assumption that the top-k of the mean is close to the mean of the top-k.

Setting.  m workers with memory e_i send T(p_i), p_i = eta g_i + e_i, T = top-k of d; x+ = x - mean T(p_i). ``|T(mean
p_i) - mean T(p_i)| <= xi eta |mean g_i|`` (``topk_gap``), ``E|mean g_i|^2 <= G^2``, F L-smooth.

Derivation.  The mean memory obeys ``|e+|`` <= ``|pbar - T(pbar)| + xi eta`` ``|gbar| <= sqrt(1 - k/d)|e| + (sqrt(1 -
k/d) + xi) eta`` ``|gbar|``, so by Minkowski's inequality ::

    sqrt(E|e|^2) <= eta G (sqrt(1 - k/d) + xi)/(1 - sqrt(1 - k/d)).

Continue as in ``ef_sgd``.  Unlike there, G bounds the mean gradient, which is smaller with many workers.
"""

ef21 = Bound(
    name="ef21",
    quantity="steps until the average of E|grad F|^2 is at most epsilon, EF21, non-convex",
    side=Side.UPPER,
    value=2 * L * gap * (1 + sp.sqrt(alpha)) / (epsilon * (1 - alpha)),
    reference=Reference("richtarik2021", "Theorem 1", arxiv="2106.05203"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_SMOOTH,
                Property.BOUNDED_BELOW,
                Property.FULL_GRADIENTS,
                Property.CONTRACTIVE,
                Property.EF21,
                Property.TUNED_STEP,
            }
        ),
        Conclusion.STEPS_TO_GRADIENT,
    ),
    examples=(
        Example({"L": 1, "gap": "0.5", "epsilon": 1, "alpha": "0.99"}, "199.5", "published check value"),
        Example({"L": 1, "gap": "0.5", "epsilon": 1, "alpha": "0.5"}, "3.41", "published check value, 2 + sqrt(2)"),
    ),
    unit="step",
    latex_name="K",
)
"""EF21: error feedback that compresses the change of the gradient and needs no bound on gradients.

Setting.  x+ = x - eta mean g_i, g_i+ = g_i + C_i(grad F_i(x+) - g_i), g_i = grad F_i at the start; contraction alpha;
every F_i L-smooth, full gradients.

Derivation.  With ``e = mean |g_i - grad F_i(x)|^2`` and Young's inequality at 1/sqrt(alpha) - 1, ::

    E e+ <= sqrt(alpha) e + alpha/(1 - sqrt(alpha)) L^2 |x+ - x|^2.

As in ``marina`` add eta/(2 theta) times this, theta = 1 - sqrt(alpha), to the descent lemma; ``|x+ - x|^2`` drops for
eta L = 1/(1 + sqrt(alpha)/(1 - sqrt(alpha))) = 1 - sqrt(alpha).  Sum: avg ``E|grad F|^2 <= 2 gap/(eta K)``.
"""

_gamma = 1 - alpha

qsparse = Bound(
    name="qsparse",
    quantity="average over workers and K local steps of E|grad F(x^i)|^2, compressed with memory",
    side=Side.UPPER,
    value=4 * gap / (eta * K)
    + 4 * eta * L * sigma2 / m
    + 8 * (4 * (1 - _gamma**2) / _gamma**2 + 1) * eta**2 * L**2 * G**2 * tau**2,
    assuming=(sp.Le(eta * L, sp.Rational(1, 2)),),
    reference=Reference("basu2019", "Theorem 1", arxiv="1906.02367"),
    status=Status.PROVED,
    setting=Setting(
        SAME_DATA | {Property.SECOND_MOMENT, Property.CONTRACTIVE, Property.MEMORY_LOCAL_SGD}, Conclusion.LOCAL_GRADIENT
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "G": 1, "tau": 2, "m": 4, "K": 100, "alpha": "0.5"},
            "4.6600",
            "by hand: .4 + .1 + 8 * 13 * .04",
        ),
    ),
    note="The term in G^2 tau^2 always prefers no compression: it cannot justify a ratio.",
    latex_name=r"\frac1{mK}\sum_{i,k} E\|\nabla F(x_k^i)\|^2",
)
"""Qsparse-local-SGD: local steps, a contractive compressor and error memory together.

Setting.  As in ``pasgd_iterations`` with ``E|g|^2 <= G^2`` for every local gradient, any L-smooth F; every tau steps
each worker sends the compressed sum of its memory and its change, ``E|C(v) - v|^2 <= alpha |v|^2``, and keeps the
rest.  The average runs over workers and local steps of ``E|grad F(x^i)|^2``.

Derivation.  The virtual point y moves by -eta mean g; ``<grad F(y), g_i> >= |g_i|^2/2 - L^2|y - x^i|^2/2`` and eta L <=
1/2 give, after summation, ::

    avg E|grad F(x^i)|^2 <= 4 gap/(eta K) + 2 eta L sigma2/m + 2 L^2 avg E|y - x^i|^2.

``|y - x^i|^2 <= 2 |y - xbar|^2 + 2 |xbar - x^i|^2``; the second is at most eta^2 tau^2 G^2, the first is the mean
memory: by Minkowski's inequality its root grows as sqrt(alpha)(. + eta tau G), so ``E|memory|^2 <= alpha/(1 -
sqrt(alpha))^2 eta^2 tau^2 G^2 <= 4 alpha/(1 - alpha)^2 eta^2 tau^2 G^2``.  With gamma = 1 - alpha the published
constants 4 (1 - gamma^2)/gamma^2 and 8, and 4 before the variance, are larger.
"""

pasgd_memory = Bound(
    name="pasgd_memory",
    quantity="average over workers and K local steps of E|grad F(x^i)|^2, compressed with memory",
    side=Side.UPPER,
    value=(2 * gap / (eta * K) + eta * L * sigma2 / m + (eta * L * tau * G * (1 + sp.sqrt(alpha)) / (1 - alpha)) ** 2)
    / FusedDifference(1, eta, L),
    assuming=(sp.Lt(eta * L, 1),),
    reference=Reference("ratedist", "sharp form of basu2019, Theorem 1"),
    status=Status.PROVED,
    setting=Setting(
        SAME_DATA | {Property.SECOND_MOMENT, Property.CONTRACTIVE, Property.MEMORY_LOCAL_SGD}, Conclusion.LOCAL_GRADIENT
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.2", "L": 1, "sigma2": 1, "G": 1, "tau": 2, "m": 4, "K": 100, "alpha": "0.25"},
            "0.987500",
            "by hand: (.1 + .05 + (.4/.5)^2)/.8",
        ),
    ),
    latex_name=r"\frac1{mK}\sum_{i,k} E\|\nabla F(x_k^i)\|^2",
)
"""Local steps, a contractive compressor and error memory: the sharp form of what Qsparse-local-SGD states.

Setting and quantity as in ``qsparse``, for any eta L < 1.

Derivation.  The virtual point y moves by -eta mean g; ``<grad F(y), g_i> >= |g_i|^2/2 - L^2 |y - x^i|^2/2`` for the
local gradients g_i = grad F(x^i) gives, after summation, ::

    (1 - eta L) avg E|g_i|^2 <= 2 gap/(eta K) + eta L sigma2/m + L^2 avg E|y - x^i|^2.

In the norm sqrt(avg ``E|.|^2``): ``|y - xbar|`` is at most the memory, sqrt(alpha)/(1 - sqrt(alpha)) eta tau G by the
argument of ``ef_memory`` with tau steps in the place of one, and ``|xbar - x^i| <= eta tau G``.  Their sum is eta tau
G/(1 - sqrt(alpha)).  For small eta L this is half of the first two terms of ``qsparse`` and about an eighth of its
last.
"""

ef21_noise = Bound(
    name="ef21_noise",
    quantity="average over K steps of E|grad F(x)|^2, EF21 on stochastic gradients, non-convex",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + 2 * sigma2 * ((1 + sp.sqrt(alpha)) ** 2 / (1 - alpha)) ** 2,
    assuming=(sp.Le(eta * L + 2 * (eta * L) ** 2 * alpha * (1 + sp.sqrt(alpha)) ** 2 / (1 - alpha) ** 2, 1),),
    reference=Reference("fatkhullin2021", "EF21 with stochastic gradients; constants derived here", arxiv="2110.03294"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_SMOOTH,
                Property.BOUNDED_BELOW,
                Property.UNBIASED_GRADIENTS,
                Property.BOUNDED_VARIANCE,
                Property.CONTRACTIVE,
                Property.EF21_SGD,
            }
        ),
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.2", "L": 1, "sigma2": "0.01", "K": 100, "alpha": "0.25"},
            "0.280000",
            "by hand: .1 + .02 * 9, at condition .2 + .08 <= 1",
        ),
    ),
    note="The floor does not fall with the number of workers, which is why EF21 on noise takes large batches.",
    latex_name=r"\frac1K\sum_k E\|\nabla F(x_k)\|^2",
)
"""EF21 on stochastic gradients: the memory keeps a share of the noise, and no number of workers removes it.

Setting.  x+ = x - eta mean g_i, g_i+ = g_i + C_i(h_i - g_i) with h_i a stochastic gradient of F_i at x+, of variance at
most sigma2; g_i = grad F_i at the start; contraction alpha, every F_i L-smooth.

Derivation.  The descent lemma, eta L <= 1, with g = mean g_i and ``|g - grad F|^2 <= mean |g_i - grad F_i|^2``::

    avg E|grad F|^2 <= 2 gap/(eta K) + avg E mean |g_i - grad F_i|^2 - (1 - eta L) avg E|g|^2.

Let a = sqrt(alpha).  g_i+ - grad F_i(x+) = (C_i(h_i - g_i) - (h_i - g_i)) + noise, and h_i - g_i is noise, less the
error g_i - grad F_i(x), plus the change of grad F_i.  In the norm e = sqrt(avg E mean of squares), Minkowski's
inequality and a zero start give ``e <= a (e + eta L sqrt(avg E|g|^2) + sigma) + sigma``, hence::

    e^2 <= 2 (a eta L/(1 - a))^2 avg E|g|^2 + 2 ((1 + a)/(1 - a))^2 sigma2.

The first is absorbed under the condition.
"""
