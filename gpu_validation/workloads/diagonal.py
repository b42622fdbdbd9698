"""Common base of the diagonal quadratics: model, eigenvalues, F."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch

from bounds import dynamics

from .workload import Description, Workload


class Point(torch.nn.Module):
    """Model that is its parameter vector x, float64.

    Parameters
    ----------
    x : ndarray
        Initial parameters, shape (d,).
    """

    def __init__(self, x: np.ndarray) -> None:
        super().__init__()
        self.x = torch.nn.Parameter(torch.from_numpy(np.array(x, dtype=np.float64)))


def point(model: torch.nn.Module) -> torch.Tensor:
    """Return the vector x of a Point, shape (d,); not a Parameter if torch.func has replaced it.

    Parameters
    ----------
    model : Module
        Model of ``model()``.
    """
    return cast(torch.Tensor, model.x)


@dataclass(frozen=True)
class Diagonal(Workload):
    """F(x) = 1/2 sum_j lambda_j x_j^2 with F* = 0 and start x = (1, ..., 1); subclasses add the gradient noise.

    Parameters
    ----------
    d : int, optional
        Number of eigenvalues, log-spaced from ``smallest`` to 1, so that L = 1.
    smallest : float, optional
        Smallest eigenvalue mu of the Hessian, in (0, 1].
    noise : float, optional
        Additive variance of every coordinate of one worker's gradient, >= 0.
    eta : float, optional
        Learning rate.
    copies : int, optional
        Multiplicity of each eigenvalue, for more precise averages; the dimension is d * copies.

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
        """Eigenvalues, shape (d * copies,), ascending, the largest 1."""
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
        """Return F at the model's parameters."""
        x = point(model)
        return 0.5 * (torch.from_numpy(self.eigenvalues).to(x) * x**2).sum()

    def description(self) -> Description:
        """Return the description of a synthetic problem."""
        return Description(self.name, synthetic=True, shape=(self.d * self.copies,))
