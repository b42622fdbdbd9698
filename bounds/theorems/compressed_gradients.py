"""Gradient methods that compress every gradient without bias."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..special.elementary import FusedDifference, GeometricDecay
from ..symbols import (
    R0,
    K,
    L,
    d,
    epsilon,
    eta,
    gap,
    kappa,
    layer_load,
    layer_noise,
    levels,
    m,
    max_norm_floor,
    max_norm_growth,
    mu,
    omega,
    rounds,
    sigma2,
    sigma2_opt,
    tau,
)

dcgd = Bound(
    name="dcgd",
    quantity="E|x - x*|^2 after K steps of compressed gradient descent, strongly convex",
    side=Side.UPPER,
    value=GeometricDecay(eta, mu, K) * R0**2 + 2 * eta * omega * sigma2_opt / (m * mu),
    assuming=(sp.Le(eta * L * (1 + 2 * omega / m), 1), sp.Le(mu, L)),
    reference=Reference("khirirat2018", "strongly convex case", arxiv="1806.06573"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_CONVEX,
                Property.EVERY_SMOOTH,
                Property.STRONGLY_CONVEX,
                Property.FULL_GRADIENTS,
                Property.UNBIASED,
                Property.INDEPENDENT_MESSAGES,
                Property.COMPRESSED_GRADIENTS,
            }
        ),
        Conclusion.DISTANCE,
    ),
    examples=(
        Example(
            {"R0": 2, "eta": "0.1", "mu": 1, "L": 2, "omega": 4, "m": 4, "K": 2, "sigma2_opt": 3},
            "3.84000",
            "by hand: .81 * 4 + .2 * 4 * 3/4",
        ),
    ),
    latex_name=r"E\|x_K-x^*\|^2",
)
"""Distributed compressed gradient descent: linear convergence to a ball set by the differences between workers.

Setting.  x+ = x - eta mean C_i(grad F_i(x)) with unbiased C_i of constant omega, independent over the m workers; every
F_i convex and L-smooth, F mu-strongly convex; sigma2_opt is the mean over workers of ``|grad F_i(x*)|^2``.

Derivation.  ``E|mean C_i(grad F_i)|^2 <= |grad F|^2 + (omega/m) mean |grad F_i|^2``.  Let delta = F(x) - F*; then
``|grad F|^2 <= 2 L delta`` and ``mean |grad F_i|^2 <= 4 L delta + 2`` sigma2_opt.  With <grad F, ``x - x*> >= delta +
mu/2 |x - x*|^2`` the coefficient of delta is 2 eta (eta L (1 + 2 omega/m) - 1) <= 0 and ::

    E|x+ - x*|^2 <= (1 - eta mu)|x - x*|^2 + 2 eta^2 (omega/m) sigma2_opt.
"""

dcgd_iterations = Bound(
    name="dcgd_iterations",
    quantity="steps until E|x - x*|^2 <= epsilon |x_1 - x*|^2, compressed gradient descent, interpolation",
    side=Side.UPPER,
    value=kappa * (1 + omega / m) * sp.log(1 / epsilon),
    assuming=(sp.Lt(epsilon, 1),),
    reference=Reference("gorbunov2020", "compressed gradient descent, interpolation", arxiv="1905.11261"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_CONVEX,
                Property.EVERY_SMOOTH,
                Property.STRONGLY_CONVEX,
                Property.INTERPOLATION,
                Property.FULL_GRADIENTS,
                Property.UNBIASED,
                Property.INDEPENDENT_MESSAGES,
                Property.COMPRESSED_GRADIENTS,
                Property.TUNED_STEP,
            }
        ),
        Conclusion.STEPS_TO_DISTANCE,
    ),
    examples=(
        Example(
            {"kappa": 10, "omega": 4, "m": 4, "epsilon": "0.01"}, "92.1034", "20 ln(100), ln(10) = 2.302585 by hand"
        ),
    ),
    unit="step",
    latex_name="K",
)
"""Compressed gradient descent when all gradients vanish at the minimiser: how many steps a compressor costs.

Derivation.  In ``dcgd`` with grad F_i(x*) = 0, ``mean |grad F_i|^2 <= 2 L delta`` without the factor 2, so eta = 1/(L
(1 + omega/m)) contracts ``|x - x*|^2`` by 1 - eta mu <= exp(-eta mu) a step.
"""

_qsgd_omega = sp.Min(d / levels**2, sp.sqrt(d) / levels)

qsgd = Bound(
    name="qsgd",
    quantity="average over K steps of E F(x) - inf F, QSGD with s levels, convex",
    side=Side.UPPER,
    value=R0**2 / (2 * eta * K) + eta * (1 + _qsgd_omega) * sigma2 / (2 * m),
    assuming=(sp.Le(eta * L * (1 + _qsgd_omega / m), 1),),
    reference=Reference("alistarh2017", "Theorem 3.4; constants derived here", arxiv="1610.02132"),
    status=Status.PROVED,
    setting=Setting(
        SAME_DATA | {Property.CONVEX, Property.MINIMISER, Property.INDEPENDENT_MESSAGES, Property.QUANTISED_GRADIENTS},
        Conclusion.GAP,
    ),
    examples=(
        Example(
            {"R0": 2, "eta": "0.1", "K": 100, "L": 1, "d": 100, "levels": 2, "sigma2": 1, "m": 4},
            "0.275000",
            "by hand: omega = min(25, 5); .2 + .1 * 6/8",
        ),
    ),
    latex_name=r"\frac1K\sum_k E F(x_k)-F^*",
)
"""QSGD: parallel SGD with stochastically rounded gradients, convex.

Setting.  x+ = x - eta mean Q(g_i), Q with s levels and L2 normalisation, m workers, F convex and L-smooth.

Derivation.  Rounding one coordinate to multiples of ``|v|/s`` has variance at most ``(|v|/s)^2 min(1/4, s|v_j|/|v|)``;
summed, omega = min(d/s^2, sqrt(d)/s) is valid.  ``E|mean Q(g_i)|^2 <= (1 + omega/m)|grad F|^2 + (1 + omega) sigma2/m``,
and -2 <grad F, ``x - x*> <= -2 (F - F*) - |grad F|^2/L`` absorbs the first part when eta L (1 + omega/m) <= 1.  Sum the
recursion of ``|x - x*|^2``.
"""

_pull = FusedDifference(2 * mu, eta, max_norm_growth)  # a step multiplies by 1 - eta _pull

terngrad = Bound(
    name="terngrad",
    quantity="E|x - x*|^2 after K steps of TernGrad",
    side=Side.UPPER,
    value=GeometricDecay(eta, _pull, K) * R0**2 + eta * max_norm_floor / _pull,
    assuming=(sp.Lt(eta * max_norm_growth, 2 * mu), sp.Ge(max_norm_growth, mu**2)),
    reference=Reference("wen2017", "Assumption 3 and Theorem 1; the rate is derived here", arxiv="1705.07878"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.ONE_POINT_CONVEX,
                Property.UNBIASED_GRADIENTS,
                Property.MAX_NORM_MOMENT,
                Property.TERNARY_GRADIENTS,
            }
        ),
        Conclusion.DISTANCE,
    ),
    examples=(
        Example(
            {"R0": 2, "eta": "0.1", "K": 2, "mu": 1, "max_norm_floor": 3, "max_norm_growth": 4},
            "3.009900",
            "by hand: .84^2 * 4 + .3/1.6",
        ),
    ),
    latex_name=r"E\|x_K-x^*\|^2",
)
"""TernGrad under its max-norm assumption: linear convergence to a ball.

Setting.  x+ = x - eta mean T(g_i), ``T(g)_j = |g|_inf sign(g_j)`` ``Bernoulli(|g_j|/|g|_inf)``; <grad F(x), ``x - x*>
>= mu |x - x*|^2``; for every local gradient ``E[|g|_inf |g|_1]`` <= A + ``B |x - x*|^2`` (``max_norm_floor``,
``max_norm_growth``), the assumption of the original analysis, which states convergence without a rate.

Derivation.  T is unbiased and ``E|T(g)|^2 = |g|_inf |g|_1`` exactly, so ::

    E|x+ - x*|^2 <= (1 - 2 eta mu + eta^2 B)|x - x*|^2 + eta^2 A;

unroll and sum the geometric series.
"""

layerwise_sgd = Bound(
    name="layerwise_sgd",
    quantity="average over K steps of E|grad F(x)|^2, compressed layer by layer in both directions, non-convex",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * layer_noise / m,
    assuming=(sp.Le(eta * L * layer_load, 1),),
    reference=Reference("dutta2020", "non-convex case; constants derived here", arxiv="1911.08250"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.SMOOTH,
                Property.BOUNDED_BELOW,
                Property.SAME_F,
                Property.UNBIASED_GRADIENTS,
                Property.LAYER_VARIANCE,
                Property.INDEPENDENT_NOISE,
                Property.LAYERWISE_UNBIASED,
                Property.INDEPENDENT_MESSAGES,
                Property.LAYERWISE_GRADIENTS,
            }
        ),
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "K": 100, "L": 1, "m": 4, "layer_load": 6, "layer_noise": 14},
            "0.550000",
            "by hand: .2 + .1 * 14/4",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(x_k)\|^2",
)
"""Layer-wise compression at the workers and at the master: why it is not worse than the entire model.

Setting.  x+ = x - eta C_M(mean C_i(g_i)); both sides compress each layer l on its own, unbiased, with constants
omega_M,l and omega_W,l, independently; layer l of a worker's gradient has variance sigma2_l.

Derivation.  Layer by layer ``E|C_M(v)|^2 <= (1 + omega_M)|v|^2`` and, for the mean of the workers' messages, ``E|v|^2
<= (1 + omega_W/m)|grad F|^2 + (1 + omega_W) sigma2/m``.  The descent lemma with ::

    Omega       = max_l (1 + omega_M,l)(1 + omega_W,l/m)       (``layer_load``),
    Omega_sigma = sum_l (1 + omega_M,l)(1 + omega_W,l) sigma2_l (``layer_noise``)

and eta L Omega <= 1 gives avg ``E|grad F|^2 <= 2 gap/(eta K) + eta L`` Omega_sigma/m.  For the entire model both
constants are those of the whole dimension, never smaller at the same setting.
"""


def layer_sums(
    omega_worker: Sequence[float], omega_master: Sequence[float], sigma2: Sequence[float], *, m: int
) -> dict[str, float]:
    """Return what the layers contribute, ready as ``layerwise_sgd(gap=, eta=, K=, L=, m=m, **sums)``.

    Parameters
    ----------
    omega_worker : sequence of float
        Variance constant of the workers' compressors, one entry a layer, >= 0.
    omega_master : sequence of float
        Variance constant of the master's, one entry a layer, >= 0.
    sigma2 : sequence of float
        Variance of one worker's gradient, one entry a layer, >= 0.

    Raises
    ------
    ValueError
        For other arguments.
    """
    worker, master, variance = (np.asarray(values, float) for values in (omega_worker, omega_master, sigma2))
    if worker.ndim != 1 or not worker.shape == master.shape == variance.shape or worker.size == 0:
        raise ValueError(
            f"each layer needs two constants and a variance; got {worker.shape}, {master.shape}, {variance.shape}"
        )
    if min(worker.min(), master.min(), variance.min()) < 0:
        raise ValueError(f"constants and variances must be >= 0; got {worker}, {master}, {variance}")
    return {
        "layer_load": float(np.max((1 + master) * (1 + worker / m))),
        "layer_noise": float(np.sum((1 + master) * (1 + worker) * variance)),
    }


glasgow = Bound(
    name="glasgow",
    quantity="E F - inf F of local SGD with tuned step size on the worst convex homogeneous problem, up to a constant",
    side=Side.LOWER,
    value=L * R0**2 / (tau * rounds)
    + sp.Min(L * R0**2, sp.sqrt(sigma2) * R0 / sp.sqrt(m * tau * rounds))
    + sp.Min(L * R0**2, sp.cbrt(L * sigma2 * R0**4) / (sp.cbrt(tau) * rounds ** sp.Rational(2, 3))),
    assuming=(sp.Ge(tau, 2), sp.Ge(m, 2)),
    reference=Reference("glasgow2022", "homogeneous convex case", arxiv="2111.03741"),
    status=Status.RECALLED,
    setting=Setting(
        frozenset({Property.HARDEST_CONVEX, Property.LOCAL_SGD}),
        Conclusion.GAP_OF_OUTPUT,
        known_up_to="an absolute constant factor",
    ),
    examples=(
        Example(
            {"L": 1, "R0": 1, "sigma2": 1, "m": 2, "tau": 8, "rounds": 64},
            "0.064453125",
            "by hand: 1/512 + 1/32 + 1/32",
        ),
    ),
    note="Recalled, and known up to an absolute constant only.  At tau = 1 and at m = 1 the last term would contradict "
    "the proved pasgd_gap.  Third-order smoothness of F improves the rate.",
)


"""Sharp bounds for federated averaging: local SGD itself cannot beat its known upper bound, up to a constant."""
