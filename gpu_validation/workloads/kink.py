"""A convex problem with a kink, on which local steps cost as much as the worst-case bound up to a constant.

Derivation.  f'(x) = max(L x, -c).  Workers that start a round at 0 spread as eta sigma sqrt(r) Z.  The mean of
their positive parts over a round is E Z^+ (2/3) eta sigma sqrt(tau), with E Z^+ = 0.3989.  The mean model is pushed by
L times that towards negative x, and by c towards positive x where L x < -c.  With c equal to the push it drifts to
the negative side.  There its squared gradient is about c^2, of order eta^2 L^2 sigma^2 tau.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from operators import Key
from operators.random import normal

from .diagonal import Point, point
from .workload import Constants, Description, Draw, Workload


@dataclass(frozen=True)
class Kink(Workload):
    """F(x) = sum_j f(x_j) with f'(x) = max(x, -slope), start x = (1, ..., 1), L = 1, mu = 0, F* = 0.

    Parameters
    ----------
    d : int, optional
        Number of independent copies of the one-dimensional problem, >= 1.
    slope : float, optional
        Largest negative slope of f, > 0.
    noise : float, optional
        Additive variance of every coordinate of the gradient, >= 0.
    eta : float, optional
        Learning rate.

    Raises
    ------
    ValueError
        For arguments outside d >= 1, slope > 0, noise >= 0.

    Notes
    -----
    ``Kink.hard(tau=...)`` chooses the slope at which a period tau costs most.
    """

    d: int = 10
    slope: float = 0.05
    noise: float = 0.4
    eta: float = 0.05

    name = "kink"

    def __post_init__(self) -> None:
        if self.d < 1 or self.slope <= 0 or self.noise < 0:
            raise ValueError(f"need d >= 1, slope > 0 and noise >= 0; got {self}")

    @classmethod
    def hard(cls, *, tau: int, d: int = 10, noise: float = 0.4, eta: float = 0.05) -> Kink:
        """Return the problem with slope (2/3) (2 pi)^(-1/2) eta sigma sqrt(tau), as derived above.

        Parameters
        ----------
        tau : int
            Local steps per round.
        d : int, optional
            Number of coordinates.
        noise : float, optional
            Additive variance of every coordinate of the gradient.
        eta : float, optional
            Learning rate.
        """
        spread = eta * math.sqrt(noise * tau)
        return cls(d=d, slope=spread * 2 / 3 / math.sqrt(2 * math.pi), noise=noise, eta=eta)

    def model(self) -> Point:
        """Return the point (1, ..., 1)."""
        return Point(np.ones(self.d))

    def draw(self, *, key: Key) -> Draw:
        """Return (xi,), the gradient noise, shape (d,)."""
        return (torch.from_numpy(np.sqrt(self.noise) * normal(key, self.d)),)

    def loss_on(self, model: torch.nn.Module, draw: Draw) -> torch.Tensor:
        """Return F(x) + <xi, x>."""
        x = point(model)
        return self.objective(model) + (draw[0].to(x) * x).sum()

    def objective(self, model: torch.nn.Module) -> torch.Tensor:
        """Return F at the model's parameters: a parabola, continued linearly below -slope."""
        x = point(model)
        inside = x.clamp(min=-self.slope)
        return (0.5 * inside**2 - self.slope * (x - inside)).sum()

    def constants(self) -> Constants:
        """Return the exact constants."""
        return Constants(L=1.0, sigma2=self.d * self.noise, gap=0.5 * self.d, exact=True)

    def description(self) -> Description:
        """Return the description of a synthetic problem."""
        return Description(self.name, synthetic=True, shape=(self.d,))
