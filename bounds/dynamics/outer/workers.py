"""The workers' quadratics: the same for all, or one each with a common eigenbasis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..geometric import excess, geometric_sum
from ..quadratic import Quadratic


@dataclass(frozen=True, eq=False)
class Workers:
    """m workers, worker i with F_i(x) = 1/2 sum_j eigenvalues_ij (x_j - centres_ij)^2 and gradient noise.

    Parameters
    ----------
    eigenvalues : ndarray, shape (m, d)
        Curvature of each worker's quadratic in each coordinate.
    centres : ndarray, shape (m, d)
        Its minimiser.
    noise : ndarray, shape (m, d)
        Variance of its gradient.
    start : ndarray, shape (d,)
        Where all begin.

    Raises
    ------
    ValueError
        For shapes that differ, negative eigenvalues or variances, or a coordinate in which nobody has curvature.
    """

    eigenvalues: np.ndarray
    centres: np.ndarray
    noise: np.ndarray
    start: np.ndarray

    def __post_init__(self) -> None:
        for name in ("eigenvalues", "centres", "noise", "start"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), float))
        shapes = (self.eigenvalues.shape, self.centres.shape, self.noise.shape)
        if self.eigenvalues.ndim != 2 or len(set(shapes)) != 1 or self.start.shape != shapes[0][1:]:
            raise ValueError(
                f"eigenvalues, centres and noise must share a shape (m, d) and start have (d,); "
                f"got {shapes} and {self.start.shape}"
            )
        if self.eigenvalues.min() < 0 or self.noise.min() < 0:
            raise ValueError("eigenvalues and variances must be >= 0")
        if self.eigenvalues.sum(0).min() <= 0:
            raise ValueError("in every coordinate some worker must have a positive eigenvalue")

    @classmethod
    def alike(cls, problem: Quadratic, m: int) -> Workers:
        """Return m workers that all minimise ``problem``, whose minimiser becomes the origin.

        Parameters
        ----------
        problem : Quadratic
            What every worker minimises.
        m : int
            Number of workers.
        """
        copies = np.ones((m, 1))
        return cls(
            copies * problem.eigenvalues, copies * np.zeros_like(problem.start), copies * problem.noise, problem.start
        )

    @property
    def m(self) -> int:
        """Number of workers."""
        return len(self.eigenvalues)

    @property
    def are_alike(self) -> bool:
        """Whether all workers have the same quadratic and noise."""
        return all(np.all(rows == rows[0]) for rows in (self.eigenvalues, self.centres, self.noise))

    @property
    def minimiser(self) -> np.ndarray:
        """The minimiser of the mean of the F_i, shape (d,)."""
        return np.asarray((self.eigenvalues * self.centres).sum(0) / self.eigenvalues.sum(0))

    def reduced(self) -> Workers:
        """Return one worker whose steps are the mean's, with a share of the noise, if all are alike; else themselves.

        Averages of the models of workers that are alike move by themselves: affine steps of the mean, noise of variance
        1/m.
        """
        if not self.are_alike:
            return self
        return Workers(self.eigenvalues[:1], self.centres[:1], self.noise[:1] / self.m, self.start)

    def kept(self, eta: float, steps: int) -> np.ndarray:
        """Return (1 - eta eigenvalues)^steps, what local steps leave of an error; shape (m, d).

        Parameters
        ----------
        eta : float
            Learning rate.
        steps : int
            Local steps.
        """
        return np.asarray((1 - eta * self.eigenvalues) ** steps)

    def variance(self, eta: float, steps: int) -> np.ndarray:
        """Return the variance that the noise of local steps adds; shape (m, d).

        Parameters
        ----------
        eta : float
            Learning rate.
        steps : int
            Local steps.
        """
        return eta**2 * self.noise * geometric_sum(excess(eta * self.eigenvalues), steps)
