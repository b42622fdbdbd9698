"""The third-order law: on smooth problems only the third derivative makes local steps cost anything.

Derivation (formal expansion in eta).  Stationarity forces the mean over a round of mean_i grad F(x^i) to vanish.
Expanding grad F(x^i) around xbar, the second-order term leaves ::

    round mean of E grad F(xbar) = -(1/2) F'''[C],   C = (1 - 1/m)(1/tau) sum_{r<tau} Cov_r,

Cov_r the covariance of one worker r steps after an averaging::

    Cov_0 = 0, Cov_{r+1} = (I - eta H) Cov_r (I - eta H) + eta^2 Sigma.

In the eigenbasis of H every entry is a geometric sum with factor q = (1 - eta lambda_j)(1 - eta lambda_k).  So
C_jk = (1 - 1/m) eta^2 Sigma_jk times the mean of the first tau partial sums of q^s.  The excess of ``E|grad
F(xbar)|^2`` over tau = 1 is about ``|bias|^2``: fourth order in eta.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .geometric import mean_geometric_sum


def round_covariance(hessian: Any, noise: Any, *, eta: float, m: int, tau: int) -> np.ndarray:
    """Return C, the mean over a round of the covariance of a worker around the mean, shape (d, d).

    Parameters
    ----------
    hessian : ndarray, shape (d, d)
        Symmetric.
    noise : ndarray, shape (d, d)
        Covariance of one worker's gradient, symmetric.

    Raises
    ------
    ValueError
        If some ``|1 - eta lambda|`` exceeds 1, where the workers diverge, or for tau < 1 or m < 1.
    """
    eigenvalues, vectors = np.linalg.eigh(np.asarray(hessian, float))
    shrink = 1 - eta * eigenvalues
    if np.abs(shrink).max() > 1 or tau < 1 or m < 1:
        raise ValueError(
            f"need |1 - eta lambda| <= 1, tau >= 1, m >= 1; got {np.abs(shrink).max()}, tau = {tau}, m = {m}"
        )
    x = eta * eigenvalues
    y = -(x[:, None] + x[None, :] - np.outer(x, x))  # q - 1
    rotated = vectors.T @ np.asarray(noise, float) @ vectors
    return vectors @ ((1 - 1 / m) * eta**2 * rotated * mean_geometric_sum(y, tau)) @ vectors.T


def bias(third_derivative: Any, covariance: Any) -> np.ndarray:
    """Return -(1/2) F'''[C], the round mean of E grad F(xbar); third_derivative of shape (d, d, d), result (d,)."""
    return -0.5 * np.einsum("jkl,kl->j", np.asarray(third_derivative, float), np.asarray(covariance, float))


def logistic_bias(features: Any, probabilities: Any, covariance: Any) -> np.ndarray:
    """Return the same for the mean logistic loss, without forming F''': shape (d,).

    Parameters
    ----------
    features
        (n, d).
    probabilities
        (n,) predicted at the point of expansion.
    """
    A, p = np.asarray(features, float), np.asarray(probabilities, float)
    spread = np.einsum("ij,jk,ik->i", A, np.asarray(covariance, float), A)
    return -0.5 * A.T @ (p * (1 - p) * (1 - 2 * p) * spread) / len(A)


def scalar_bias(*, third: Any, curvature: Any, sigma2: Any, eta: Any, m: Any, tau: Any) -> Any:
    """Return the one-dimensional law with second derivative ``curvature`` and third derivative ``third``, broadcasting.

    About -(third/4)(1 - 1/m) eta^2 sigma2 (tau - 1) while eta curvature tau << 1, saturating at
    -(third/4)(1 - 1/m) eta sigma2/curvature.
    """
    x = np.asarray(eta, float) * curvature
    growth = mean_geometric_sum(-x * (2 - x), tau)
    return -0.5 * np.asarray(third, float) * (1 - 1 / np.asarray(m, float)) * np.square(eta) * sigma2 * growth
