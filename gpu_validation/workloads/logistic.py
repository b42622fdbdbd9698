"""Logistic regression: convex and smooth, with every constant of the theorems known or bounded for all x."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import cross_entropy, softplus

from .data import Bundled, Source
from .linear import LinearModel, numpy_targets

DIGITS = Bundled("digits")


@dataclass(frozen=True)
class LogisticRegression(LinearModel):
    """Mean logistic loss plus decay/2 ``|x|^2`` in weights and intercepts; softmax loss for three or more classes.

    L = c lambda_max(A^T A/n) + decay, with c = 1/4 for two classes (attained at x = 0) and c = 1/2 for more (approached
    if two classes share all the probability).  mu = decay, which is approached as all probabilities saturate.  sigma2
    is at most ``c' mean |a_i|^2`` over the batch for all x, with c' = 1 or 2, since ``|p - y|^2`` is at most c'.

    Raises
    ------
    ValueError
        For regression data, when they are read.
    """

    source: Source = DIGITS

    name = "logistic"

    @property
    def binary(self) -> bool:
        """Whether there are two classes, and so a single output."""
        classes = self.data().classes
        if not classes:
            raise ValueError(f"logistic regression needs labels; {self.data().name} is a regression")
        return classes == 2

    def rows(self) -> int:
        """Return one output for two classes, else one per class."""
        return 1 if self.binary else self.data().classes

    def curvature(self) -> float:
        """Return the largest eigenvalue of diag(p) - p p^T; of p (1 - p) for one output."""
        return 0.25 if self.binary else 0.5

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return -log p of the true label."""
        if not self.binary:
            return cross_entropy(outputs, targets, reduction="none")
        return softplus((1 - 2 * targets).to(outputs) * outputs[:, 0])

    def labels(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return the most probable labels."""
        return (outputs[:, 0] > 0).long() if self.binary else outputs.argmax(dim=1)

    def derivatives(self, x: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient and Hessian in the order of the model's parameters: weights by row, then intercepts."""
        A, y = self.features()[part], numpy_targets(self, part)
        n, d = A.shape
        rows = self.rows()
        W = np.concatenate([x[: rows * (d - 1)].reshape(rows, d - 1), x[rows * (d - 1) :, None]], axis=1)
        p = _probabilities(A @ W.T)
        wrong = p - (y[:, None] if self.binary else np.eye(rows)[y])
        gradient = wrong.T @ A / n  # (rows, d)
        hessian = np.empty((rows, d, rows, d))
        for j in range(rows):
            for k in range(j + 1):
                weight = p[:, j] * ((j == k) - p[:, k])
                hessian[j, :, k] = hessian[k, :, j] = A.T @ (A * weight[:, None]) / n
        order = _order(rows, d)
        return gradient.reshape(-1)[order], hessian.reshape(rows * d, rows * d)[np.ix_(order, order)]

    def variance(self) -> tuple[float, str]:
        """Return a bound for all x: ``E|g_i|^2`` with the largest ``|p - y|^2``."""
        largest = 1.0 if self.binary else 2.0
        return largest * float(np.square(self.features()).sum(axis=1).mean()), ""


def _probabilities(outputs: np.ndarray) -> np.ndarray:
    """Return the probability of label 1 for one output, of every label for more; same shape as the outputs."""
    if outputs.shape[1] == 1:
        return np.exp(-np.logaddexp(0, -outputs))
    shifted = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def _order(rows: int, d: int) -> np.ndarray:
    """Return the positions in a (rows, d) table, intercepts last, in the order of the parameters."""
    place = np.arange(rows * d).reshape(rows, d)
    return np.concatenate([place[:, :-1].reshape(-1), place[:, -1]])
