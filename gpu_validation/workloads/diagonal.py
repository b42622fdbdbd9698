"""What the diagonal quadratics share: the point, the eigenvalues, F."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch

from bounds import dynamics

from .workload import Description, Workload


class Point(torch.nn.Module):
    """The parameter vector x itself, float64.

    Parameters
    ----------
    x : ndarray
        A vector of parameters.
    """

    def __init__(self, x: np.ndarray) -> None:
        super().__init__()
        self.x = torch.nn.Parameter(torch.from_numpy(np.array(x, dtype=np.float64)))


def point(model: torch.nn.Module) -> torch.Tensor:
    """Return the vector x of a Point, shape (d,); not a Parameter where torch.func has put another tensor in its place.

    Parameters
    ----------
    model : Module
        As ``model()`` makes it.
    """
    return cast(torch.Tensor, model.x)


@dataclass(frozen=True)
class Diagonal(Workload):
    """F(x) = 1/2 sum_j lambda_j x_j^2, so that F* = 0; subclasses say what noise the gradients carry.

    Parameters
    ----------
    d : int, optional
        Number of eigenvalues, log-spaced from ``smallest`` to 1, so that L = 1.
    smallest : float, optional
        Least eigenvalue of the Hessian, mu.
    noise : float, optional
        Variance of every coordinate of one worker's gradient, apart from what grows with the gradient.  Start x = (1,
        ..., 1).
    copies : int, optional
        How often each of them occurs, for sharper averages; the dimension is d * copies.

    Raises
    ------
    ValueError
        For arguments outside d >= 1, copies >= 1, 0 < smallest <= 1, noise >= 0.
    """

    d: int = 10
    smallest: float = 1e-2
    noise: float = 0.4
    eta: float = 0.05
    copies: int = 1

    def __post_init__(self) -> None:
        if self.d < 1 or self.copies < 1 or not 0 < self.smallest <= 1 or self.noise < 0:
            raise ValueError(f"need d >= 1, copies >= 1, 0 < smallest <= 1 and noise >= 0; got {self}")

    @property
    def eigenvalues(self) -> np.ndarray:
        """Shape (d * copies,), ascending, the largest equal to 1."""
        return np.logspace(np.log10(self.smallest), 0, self.d).repeat(self.copies)

    @property
    def problem(self) -> dynamics.Quadratic:
        """The same problem for the exact models."""
        ones = np.ones(self.d * self.copies)
        return dynamics.Quadratic(eigenvalues=self.eigenvalues, start=ones, noise=self.noise * ones)

    def model(self) -> Point:
        """Return the point (1, ..., 1)."""
        return Point(np.ones(self.d * self.copies))

    def objective(self, model: torch.nn.Module) -> torch.Tensor:
        """Return F at the model's point."""
        x = point(model)
        return 0.5 * (torch.from_numpy(self.eigenvalues).to(x) * x**2).sum()

    def description(self) -> Description:
        """Return a formula."""
        return Description(self.name, synthetic=True, shape=(self.d * self.copies,))
