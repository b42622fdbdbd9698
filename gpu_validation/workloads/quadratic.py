"""A quadratic with additive Gaussian noise: L, sigma^2 and F* are known exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from operators import Key
from operators.random import normal

from .workload import Constants, Workload


class Point(torch.nn.Module):
    """The parameter vector x itself, float64."""

    def __init__(self, x: np.ndarray) -> None:
        super().__init__()
        self.x = torch.nn.Parameter(torch.from_numpy(np.array(x, dtype=np.float64)))


@dataclass(frozen=True)
class Quadratic(Workload):
    """F(x) = 1/2 sum_j lambda_j x_j^2 with noise of variance ``noise`` in every coordinate.

    d : dimension; the eigenvalues are log-spaced from ``smallest`` to 1, so L = 1 and F* = 0.
    Start x = (1, ..., 1).  The defaults are the reference problem of the theory (sigma^2 = 4).
    """

    d: int = 10
    smallest: float = 1e-2
    noise: float = 0.4
    eta: float = 0.05

    name = "quadratic"

    @property
    def eigenvalues(self) -> np.ndarray:
        """Shape (d,), ascending, the largest equal to 1."""
        return np.logspace(np.log10(self.smallest), 0, self.d)

    def model(self) -> Point:
        """The point (1, ..., 1)."""
        return Point(np.ones(self.d))

    def loss(self, model: torch.nn.Module, *, key: Key) -> torch.Tensor:
        """F(x) + <xi, x>, whose gradient is Lambda x + xi."""
        xi = torch.from_numpy(np.sqrt(self.noise) * normal(key, self.d))
        return self.objective(model) + (xi * model.get_parameter("x")).sum()

    def objective(self, model: torch.nn.Module) -> torch.Tensor:
        """F at the model's point."""
        return 0.5 * (torch.from_numpy(self.eigenvalues) * model.get_parameter("x") ** 2).sum()

    def constants(self) -> Constants:
        """Exact: the noise is additive and its variance the same everywhere."""
        return Constants(L=1.0, sigma2=self.d * self.noise, gap=0.5 * float(self.eigenvalues.sum()), exact=True)
