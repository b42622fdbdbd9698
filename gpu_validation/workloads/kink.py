r"""A convex problem with a kink: the one where local steps cost what the worst-case bound says, up to a constant.

Derivation.  f'(x) = max(L x, -c).  Workers that start a round at 0 spread as eta sigma sqrt(r) Z, and the mean of
their positive parts over a round is E Z^+ (2/3) eta sigma sqrt(tau), E Z^+ = .3989.  The mean model is pushed by
L times that towards negative x, and by c towards positive x where L x < -c: with c equal to the push, it drifts to
the negative side, where its gradient is about -c, of order eta^2 L^2 sigma^2 tau when squared.
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
    """F(x) = sum_j f(x_j), f'(x) = max(x, -slope), with additive noise of variance ``noise`` in every coordinate.

    Parameters
    ----------
    d : int, optional
        Number of independent copies of the one-dimensional problem.  Start x = (1, ..., 1); L = 1, mu = 0, F* = 0.
    slope : float, optional
        The derivative of f is never below -slope; > 0.
    noise : float, optional
        Variance of the gradient's noise in every coordinate.

    Raises
    ------
    ValueError
        For arguments outside d >= 1, slope > 0, noise >= 0.

    Notes
    -----
    ``Kink.hard(tau=...)`` chooses the slope at which a period tau hurts most.
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
        """Return the slope (2/3) (2 pi)^(-1/2) eta sigma sqrt(tau) of the derivation above.

        Parameters
        ----------
        tau : int
            Local steps between two averagings.
        d : int, optional
            Number of coordinates.
        noise : float, optional
            Variance of the gradient's noise in every coordinate.
        eta : float, optional
            Learning rate.
        """
        spread = eta * math.sqrt(noise * tau)
        return cls(d=d, slope=spread * 2 / 3 / math.sqrt(2 * math.pi), noise=noise, eta=eta)

    def model(self) -> Point:
        """Return the point (1, ..., 1)."""
        return Point(np.ones(self.d))

    def draw(self, *, key: Key) -> Draw:
        """Return (xi,), the noise of the gradient, shape (d,)."""
        return (torch.from_numpy(np.sqrt(self.noise) * normal(key, self.d)),)

    def loss_on(self, model: torch.nn.Module, draw: Draw) -> torch.Tensor:
        """Return F(x) + <xi, x>."""
        x = point(model)
        return self.objective(model) + (draw[0].to(x) * x).sum()

    def objective(self, model: torch.nn.Module) -> torch.Tensor:
        """Return F at the model's point: a parabola, continued by its tangent below -slope."""
        x = point(model)
        inside = x.clamp(min=-self.slope)
        return (0.5 * inside**2 - self.slope * (x - inside)).sum()

    def constants(self) -> Constants:
        """Return exact."""
        return Constants(L=1.0, sigma2=self.d * self.noise, gap=0.5 * self.d, exact=True)

    def description(self) -> Description:
        """Return a formula."""
        return Description(self.name, synthetic=True, shape=(self.d,))
