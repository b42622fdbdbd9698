"""The diagonal quadratic on which the exact models run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Quadratic:
    """F(x) = 1/2 sum_j eigenvalues_j (x_j - x*_j)^2, gradients with additive noise of variance noise_j.

    Parameters
    ----------
    eigenvalues : ndarray, shape (d,)
        Eigenvalues of the Hessian, float64.
    start : ndarray, shape (d,)
        x_1 - x* in the eigenbasis.
    noise : ndarray, shape (d,)
        Variance of each coordinate of one worker's gradient.

    Raises
    ------
    ValueError
        For different shapes, negative eigenvalues or variances, or if no eigenvalue is positive.
    """

    eigenvalues: np.ndarray
    start: np.ndarray
    noise: np.ndarray

    def __post_init__(self) -> None:
        for name in ("eigenvalues", "start", "noise"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), float))
        shapes = (self.eigenvalues.shape, self.start.shape, self.noise.shape)
        if self.eigenvalues.ndim != 1 or len(set(shapes)) != 1 or self.eigenvalues.size == 0:
            raise ValueError(f"eigenvalues, start and noise must share one shape (d,), d >= 1; got {shapes}")
        if not all(np.all(np.isfinite(getattr(self, name))) for name in ("eigenvalues", "start", "noise")):
            raise ValueError(f"eigenvalues, start and noise must be finite; got {self}")
        if self.eigenvalues.min() < 0 or self.eigenvalues.max() <= 0:
            raise ValueError(f"eigenvalues must be >= 0 with one positive; got {self.eigenvalues}")
        if self.noise.min() < 0:
            raise ValueError(f"a variance must be >= 0; got noise = {self.noise}")

    @property
    def L(self) -> float:
        """The largest eigenvalue, which is the smoothness constant."""
        return float(self.eigenvalues.max())

    @property
    def mu(self) -> float:
        """The smallest eigenvalue, which is the strong convexity constant."""
        return float(self.eigenvalues.min())

    @property
    def sigma2(self) -> float:
        """Variance of one worker's gradient."""
        return float(self.noise.sum())

    @property
    def gap(self) -> float:
        """F(x_1) - inf F."""
        return float(0.5 * self.eigenvalues @ self.start**2)

    @property
    def R0(self) -> float:
        """Distance from the start to the minimiser."""
        return float(np.linalg.norm(self.start))


def reference_quadratic() -> Quadratic:
    """Return the problem on which the bounds' looseness is quoted: ten log-spaced eigenvalues from .01 to 1.

    L = 1, sigma2 = 4 spread evenly, unit start errors, gap = 1.24091.
    """
    return Quadratic(np.logspace(-2, 0, 10), np.ones(10), np.full(10, 0.4))
