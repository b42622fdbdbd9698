"""Model C: workers with different quadratics and no noise, exactly: the bias that no amount of time removes.

F_i(x) = 1/2 (x - c_i)^T H_i (x - c_i), F their mean.

Derivation.  tau local steps from a common x end at c_i + P_i (x - c_i), P_i = (I - eta H_i)^tau; averaging gives an
affine map whose fixed point solves (mean (I - P_i)) x = mean (I - P_i) c_i.  At tau = 1 it is the minimiser of F; as
tau grows it tends to mean c_i.  To leading order in eta, ::

    grad F(x_tau) = (eta (tau - 1)/2) mean H_i grad F_i(x*).

hessians
    Float array (m, d, d), symmetric positive definite.

centres
    Float array (m, d).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .geometric import one_minus_power


def minimiser(hessians: Any, centres: Any) -> np.ndarray:
    """Return x*, shape (d,)."""
    H, c = np.asarray(hessians, float), np.asarray(centres, float)
    return np.linalg.solve(H.sum(0), np.einsum("ijk,ik->j", H, c))


def gradient(hessians: Any, centres: Any, x: Any) -> np.ndarray:
    """Return grad F(x), shape (d,)."""
    H, c = np.asarray(hessians, float), np.asarray(centres, float)
    return np.einsum("ijk,ik->j", H, np.asarray(x, float) - c) / len(H)


def fixed_point(hessians: Any, centres: Any, *, eta: float, tau: int) -> np.ndarray:
    """Return the limit of local gradient descent with averaging every tau steps, shape (d,).

    Raises
    ------
    ValueError
        If eta is not below 2 over the largest eigenvalue, where there is no limit.
    """
    H, c = np.asarray(hessians, float), np.asarray(centres, float)
    eigenvalues, vectors = np.linalg.eigh(H)
    if not 0 < eta * eigenvalues.max() < 2:
        raise ValueError(f"eta must satisfy 0 < eta < 2/lambda_max = {2 / eigenvalues.max()}; got eta = {eta}")
    lost = np.einsum("ijk,ik,ilk->ijl", vectors, one_minus_power(eta * eigenvalues, tau), vectors)
    return np.linalg.solve(lost.sum(0), np.einsum("ijk,ik->j", lost, c))


def leading_order_gradient(hessians: Any, centres: Any, *, eta: float, tau: int) -> np.ndarray:
    """Return the first term of the expansion in eta of grad F at the fixed point, shape (d,)."""
    H, c = np.asarray(hessians, float), np.asarray(centres, float)
    local = np.einsum("ijk,ik->ij", H, minimiser(H, c) - c)
    return eta * (tau - 1) / 2 * np.einsum("ijk,ik->j", H, local) / len(H)


def mean_squared_gradient(hessians: Any, centres: Any, start: Any, *, eta: float, tau: int, K: int) -> float:
    """Return the average of ``|grad F|^2`` at the mean of the workers before each of K local steps, from a common start
    (d,).
    """
    H, c = np.asarray(hessians, float), np.asarray(centres, float)
    x = np.broadcast_to(np.asarray(start, float), c.shape)
    sums = 0.0
    for k in range(K):
        sums += float(np.square(gradient(H, c, x.mean(axis=0))).sum())
        x = x - eta * np.einsum("ijk,ik->ij", H, x - c)
        if (k + 1) % tau == 0:
            x = np.broadcast_to(x.mean(axis=0), c.shape)
    return sums / K
