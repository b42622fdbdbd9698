"""Model B: a quadratic whose gradient noise grows with the gradient, so that tau matters slightly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from operators import Key
from operators.random import normal

from .diagonal import Diagonal, point
from .workload import Constants, Draw


@dataclass(frozen=True)
class MultiplicativeQuadratic(Diagonal):
    """A diagonal quadratic with gradients lambda_j (1 + z_j) x_j + xi_j.

    Parameters
    ----------
    noise_growth : float, optional
        Variance of each z_j, >= 0; the variance of a gradient is sigma2 + noise_growth ``|grad F|^2``.

    Raises
    ------
    ValueError
        For a negative variance.

    Notes
    -----
    The exact law of a run is ``bounds.dynamics.multiplicative`` on ``problem``.
    """

    noise_growth: float = 4.0

    name = "multiplicative"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise_growth < 0:
            raise ValueError(f"noise_growth is a variance and must be >= 0; got {self.noise_growth}")

    def draw(self, *, key: Key) -> Draw:
        """Return (xi, z), each of shape (d * copies,)."""
        size = self.d * self.copies
        both = torch.from_numpy(normal(key, 2 * size))
        return np.sqrt(self.noise) * both[:size], np.sqrt(self.noise_growth) * both[size:]

    def loss_on(self, model: torch.nn.Module, draw: Draw) -> torch.Tensor:
        """Return a function of x with this gradient; its value is F(x) on average."""
        x = point(model)
        xi, z = (part.to(x) for part in draw)
        slope = torch.from_numpy(self.eigenvalues).to(x) * x.detach()
        return self.objective(model) + ((xi + z * slope) * x).sum()

    def constants(self) -> Constants:
        """Return the exact constants; sigma2 is only the constant part of the variance."""
        problem = self.problem
        return Constants(
            L=problem.L,
            sigma2=problem.sigma2,
            gap=problem.gap,
            exact=False,
            reason=f"the variance is sigma2 + {self.noise_growth:g} |grad F|^2, not uniform in x",
            mu=problem.mu,
        )
