"""Model A, a quadratic with additive Gaussian noise: L, mu, sigma^2, F* and the whole law of a run are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from bounds import dynamics
from operators import Key
from operators.random import normal

from .workload import Constants, Description, Draw, Workload


class Point(torch.nn.Module):
    """The parameter vector x itself, float64."""

    def __init__(self, x: np.ndarray) -> None:
        super().__init__()
        self.x = torch.nn.Parameter(torch.from_numpy(np.array(x, dtype=np.float64)))


def point(model: torch.nn.Module) -> torch.Tensor:
    """The parameter vector of a Point, shape (d,)."""
    return model.get_parameter("x")


@dataclass(frozen=True)
class Quadratic(Workload):
    """F(x) = 1/2 sum_j lambda_j x_j^2 with noise of variance ``noise`` in every coordinate.

    d : dimension; the eigenvalues are log-spaced from ``smallest`` to 1, so L = 1 and F* = 0.
    copies : how often each eigenvalue occurs, for sharper averages; the dimension is d * copies.
    Start x = (1, ..., 1).  The defaults are the reference problem of the theory (sigma^2 = 4).
    The exact law of a run is ``bounds.dynamics.additive`` on ``problem``.
    """

    d: int = 10
    smallest: float = 1e-2
    noise: float = 0.4
    eta: float = 0.05
    copies: int = 1

    name = "quadratic"

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
        """The point (1, ..., 1)."""
        return Point(np.ones(self.d * self.copies))

    def draw(self, *, key: Key) -> Draw:
        """(xi,), the additive noise of the gradient, shape (d * copies,)."""
        return (torch.from_numpy(np.sqrt(self.noise) * normal(key, self.d * self.copies)),)

    def loss_on(self, model: torch.nn.Module, draw: Draw) -> torch.Tensor:
        """F(x) + <xi, x>, whose gradient is Lambda x + xi."""
        x = point(model)
        return self.objective(model) + (draw[0].to(x) * x).sum()

    def objective(self, model: torch.nn.Module) -> torch.Tensor:
        """F at the model's point."""
        x = point(model)
        return 0.5 * (torch.from_numpy(self.eigenvalues).to(x) * x**2).sum()

    def constants(self) -> Constants:
        """Exact: the noise is additive and its variance the same everywhere."""
        problem = self.problem
        return Constants(L=problem.L, sigma2=problem.sigma2, gap=problem.gap, exact=True, mu=problem.mu)

    def description(self) -> Description:
        """A formula."""
        return Description(self.name, synthetic=True, shape=(self.d * self.copies,))
