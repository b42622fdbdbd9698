"""The outer step: SGD with momentum on the difference between the global model and the workers' mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class OuterStep:
    """One step of ``torch.optim.SGD`` whose gradient is Delta = theta - mean of the workers' models.

    ``u <- momentum u + Delta``; then ``theta <- theta - lr (Delta + momentum u)`` with Nesterov's correction and
    ``theta <- theta - lr u`` without.  The default is plain averaging.

    Parameters
    ----------
    lr : float, optional
        Outer learning rate nu, > 0.
    momentum : float, optional
        beta in [0, 1).
    nesterov : bool, optional
        Whether the step looks ahead; without momentum both are the same.

    Raises
    ------
    ValueError
        For values outside these ranges.
    """

    lr: float = 1.0
    momentum: float = 0.0
    nesterov: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.lr < float("inf"):
            raise ValueError(f"an outer learning rate must be a positive number; got lr = {self.lr}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"an outer momentum must satisfy 0 <= momentum < 1; got {self.momentum}")

    def apply(self, theta: np.ndarray, buffer: np.ndarray, delta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return theta and the momentum buffer after the step.

        Parameters
        ----------
        theta : ndarray
            The global model.
        buffer : ndarray
            u, of the same shape.
        delta : ndarray
            theta less the mean of the workers' models, of the same shape.
        """
        buffer = self.momentum * buffer + delta
        step = delta + self.momentum * buffer if self.nesterov else buffer
        return theta - self.lr * step, buffer


AVERAGING = OuterStep()
"""Plain averaging: the global model becomes the mean of the workers' models."""
