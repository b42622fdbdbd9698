"""Problems whose constants and optimum are known: models A, B and C, and a convex problem with a kink."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch

from bounds import dynamics
from bounds.dynamics import heterogeneous
from operators import Key
from operators.random import normal

from .workload import Constants, Description, Draw, Workload


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


Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class HeterogeneousQuadratics(Workload):
    """F_i(x) = 1/2 (x - c_i)^T H_i (x - c_i) on worker i; F is their mean; start x = 0.

    Parameters
    ----------
    hessians : tuple of Matrix, optional
        One symmetric positive definite matrix per worker.
    centres : Matrix, optional
        One minimiser per worker.
    eta : float, optional
        Learning rate.

    Raises
    ------
    ValueError
        For shapes that do not fit, or a matrix that is not symmetric positive definite.

    Notes
    -----
    The exact limit of a run is ``bounds.dynamics.heterogeneous.fixed_point``.  The defaults are its worked example.
    """

    hessians: tuple[Matrix, ...] = (((1.0, 0.0), (0.0, 0.2)), ((0.3, 0.0), (0.0, 1.0)))
    centres: Matrix = ((1.0, 0.0), (-1.0, 1.0))
    eta: float = 0.1

    name = "heterogeneous"

    def __post_init__(self) -> None:
        H, c = self.H, self.c
        if c.ndim != 2 or H.shape != (*c.shape, c.shape[1]):
            raise ValueError(f"m workers in d dimensions need shapes (m, d, d) and (m, d); got {H.shape} and {c.shape}")
        if (H.transpose(0, 2, 1) != H).any() or np.linalg.eigvalsh(H).min() <= 0:
            raise ValueError(f"every matrix must be symmetric positive definite; got {self.hessians}")

    @property
    def H(self) -> np.ndarray:
        """Hessians, shape (m, d, d)."""
        return np.array(self.hessians, float)

    @property
    def c(self) -> np.ndarray:
        """Centres, shape (m, d)."""
        return np.array(self.centres, float)

    @property
    def workers(self) -> int:
        """Number of workers, one per centre."""
        return len(self.centres)

    def model(self) -> Point:
        """Return a model at the origin."""
        return Point(np.zeros(self.c.shape[1]))

    def draw(self, *, key: Key) -> Draw:
        """Return (H_i, c_i) of worker i = key.rank, without randomness."""
        if key.rank is None or key.rank >= self.workers:
            raise ValueError(f"{self.name} has workers 0 to {self.workers - 1}; got rank {key.rank}")
        return torch.from_numpy(self.H[key.rank]), torch.from_numpy(self.c[key.rank])

    def loss_on(self, model: torch.nn.Module, draw: Draw) -> torch.Tensor:
        """Return F_i(x)."""
        x = point(model)
        H, c = (part.to(x) for part in draw)
        return 0.5 * (x - c) @ H @ (x - c)

    def objective(self, model: torch.nn.Module) -> torch.Tensor:
        """Return F(x)."""
        parts = [self.loss_on(model, self.draw(key=Key(0, rank=i))) for i in range(self.workers)]
        return torch.stack(parts).mean()

    def constants(self) -> Constants:
        """Return the exact constants; L is the largest of the workers' own."""
        H, c = self.H, self.c
        best = heterogeneous.minimiser(H, c)
        local = np.einsum("ijk,ik->ij", H, best - c)
        start = -best
        return Constants(
            L=float(np.linalg.eigvalsh(H).max()),
            sigma2=0.0,
            gap=float(0.5 * start @ H.mean(axis=0) @ start),
            exact=False,
            reason="the workers have different objectives",
            mu=float(np.linalg.eigvalsh(H.mean(axis=0)).min()),
            heterogeneity=float(np.square(local).sum(axis=1).mean()),
        )

    def description(self) -> Description:
        """Return the description of a synthetic problem."""
        return Description(self.name, synthetic=True, shape=(self.c.shape[1],))


# Derivation.  f'(x) = max(L x, -c).  Workers that start a round at 0 spread as eta sigma sqrt(r) Z.  The mean of
# their positive parts over a round is E Z^+ (2/3) eta sigma sqrt(tau), with E Z^+ = 0.3989.  The mean model is pushed
# by L times that towards negative x, and by c towards positive x where L x < -c.  With c equal to the push it drifts
# to the negative side.  There its squared gradient is about c^2, of order eta^2 L^2 sigma^2 tau.
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
