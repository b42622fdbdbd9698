"""Ridge regression: a quadratic on real data, with L, mu and F* from its matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from .data import Bundled, Source
from .linear import LinearModel, numpy_targets

DIABETES = Bundled("diabetes")


@dataclass(frozen=True)
class Ridge(LinearModel):
    """F(x) = mean (a_i . x - b_i)^2/2 + decay/2 ``|x|^2``, including the intercept.

    Parameters
    ----------
    source : Source, optional
        Regression data, or data of two classes, whose targets become -1 and 1.
    eta : float, optional
        Learning rate.

    Raises
    ------
    ValueError
        For more than two classes, when the data are read.

    Notes
    -----
    The variance of a mini-batch gradient grows with x.  So no theorem with a uniform sigma^2 has a verdict unless
    ``batch`` is None.  sigma2 is the variance at the start.
    """

    source: Source = DIABETES
    eta: float = 0.05

    name = "ridge"

    def rows(self) -> int:
        """Return one."""
        return 1

    def curvature(self) -> float:
        return 1.0

    def mu(self) -> float:
        """Return the smallest eigenvalue of A^T A/n plus the decay."""
        A = self.features()
        return max(0.0, float(np.linalg.eigvalsh(A.T @ A / len(A))[0])) + self.decay

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return half the squared residuals."""
        return 0.5 * (outputs[:, 0] - self._signed(targets).to(outputs)) ** 2

    def labels(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return the class with the nearer target."""
        return (outputs[:, 0] > 0).long()

    def derivatives(self, x: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return A^T (A x - b)/n and A^T A/n."""
        A = self.features()[part]
        b = self._signed(torch.from_numpy(numpy_targets(self, part))).numpy()
        return A.T @ (A @ x - b) / len(part), A.T @ A / len(part)

    def variance(self) -> tuple[float, str]:
        """Return the variance at the start, where the gradients are -b_i a_i."""
        b = self._signed(self.data().train.targets).numpy()
        each = self.features() * b[:, None]
        return float(each.var(axis=0).sum()), "the variance grows with x; sigma2 is that at the start"

    def _signed(self, targets: torch.Tensor) -> torch.Tensor:
        classes = self.data().classes
        if classes > 2:
            raise ValueError(f"ridge regression needs numbers or two classes; {self.data().name} has {classes} classes")
        return 2.0 * targets - 1.0 if classes else targets
