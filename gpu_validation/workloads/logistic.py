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
    """Mean logistic loss and decay/2 ``|x|^2`` in the weights and intercepts; the softmax form for three classes or
    more.

    L = c lambda_max(A^T A/n) + decay with c = 1/4 for two classes (attained at x = 0) and 1/2 for more (approached
    where two classes share all the probability); mu = decay (approached as all probabilities saturate). sigma2 is at
    most ``c' mean |a_i|^2`` over the batch, c' = 1 or 2, wherever x is: ``|p - y|^2`` is at most c'.

    Raises
    ------
    ValueError
        For a regression when the data are read.
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
        """Return one output for two classes, else one a class."""
        return 1 if self.binary else self.data().classes

    def curvature(self) -> float:
        """Return largest eigenvalue of diag(p) - p p^T; p (1 - p) for one output."""
        return 0.25 if self.binary else 0.5

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return -log p of the true label."""
        if not self.binary:
            return cross_entropy(outputs, targets, reduction="none")
        return softplus((1 - 2 * targets).to(outputs) * outputs[:, 0])

    def labels(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return the likeliest label."""
        return (outputs[:, 0] > 0).long() if self.binary else outputs.argmax(dim=1)

    def derivatives(self, x: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return them in the order of the model's parameters: weights row by row, then intercepts."""
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
        """Return a bound for all x: ``E|g_i|^2`` with ``|p - y|^2`` at its largest."""
        largest = 1.0 if self.binary else 2.0
        return largest * float(np.square(self.features()).sum(axis=1).mean()), ""


def _probabilities(outputs: np.ndarray) -> np.ndarray:
    """Of label 1 for one output, of every label for more; shape of the outputs."""
    if outputs.shape[1] == 1:
        return np.exp(-np.logaddexp(0, -outputs))
    shifted = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def _order(rows: int, d: int) -> np.ndarray:
    """Where the entries of a (rows, d) table with the intercepts last stand in the order of the parameters."""
    place = np.arange(rows * d).reshape(rows, d)
    return np.concatenate([place[:, :-1].reshape(-1), place[:, -1]])
