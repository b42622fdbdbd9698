"""Model A: a quadratic with additive Gaussian noise, for which L, mu, sigma^2, F* and the law of a run are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from operators import Key
from operators.random import normal

from .diagonal import Diagonal, point
from .workload import Constants, Draw


@dataclass(frozen=True)
class Quadratic(Diagonal):
    """A diagonal quadratic whose gradients have additive noise of constant variance.

    The defaults are the reference problem of the theory (L = 1, sigma^2 = 4).  The exact law of a run is
    ``bounds.dynamics.additive`` on ``problem``; it does not depend on tau.
    """

    name = "quadratic"

    def draw(self, *, key: Key) -> Draw:
        """Return (xi,), the gradient noise, shape (d * copies,)."""
        return (torch.from_numpy(np.sqrt(self.noise) * normal(key, self.d * self.copies)),)

    def loss_on(self, model: torch.nn.Module, draw: Draw) -> torch.Tensor:
        """Return F(x) + <xi, x>, whose gradient is Lambda x + xi."""
        x = point(model)
        return self.objective(model) + (draw[0].to(x) * x).sum()

    def constants(self) -> Constants:
        """Return the exact constants: the noise is additive with constant variance."""
        problem = self.problem
        return Constants(L=problem.L, sigma2=problem.sigma2, gap=problem.gap, exact=True, mu=problem.mu)
