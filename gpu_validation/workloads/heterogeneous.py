"""Model C: different quadratics on different workers without noise, whose bias does not vanish with time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from bounds.dynamics import heterogeneous
from operators import Key

from .diagonal import Point, point
from .workload import Constants, Description, Draw, Workload

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
