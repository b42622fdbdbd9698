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

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import K, L, eta, gap, layer_load, layer_noise, m

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
