"""Elastic averaging (EASGD; Zhang, Choromanska & LeCun 2015): models and an anchor pull at each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import torch

from .mixing import Mixing, State
from .mixing import zeta as zeta_of


@final
@dataclass(frozen=True)
class Elastic(Mixing):
    """x_i <- x_i - alpha (x_i - z) and z <- z + alpha sum_i (x_i - z), both from the values before.

    Parameters
    ----------
    alpha : float
        0 < alpha < 2/(m + 1), so that zeta = ``max(|1 - alpha|, |1 - (m + 1) alpha|)`` < 1.  Every rank keeps the
        anchor z, which starts at the common starting point; it is the model to evaluate.  W is symmetric and doubly
        stochastic on the m models and the anchor, whose mean is therefore kept.  Buffers and, if wanted, optimizer
        states are averaged in full.  Computed in float64, kept in the models' precision.

    Raises
    ------
    ValueError
        For arguments outside the range.
    """

    alpha: float

    common = False

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must satisfy 0 < alpha < 1; got {self.alpha}")

    @classmethod
    def best(cls, m: int) -> Elastic:
        """Return alpha = 2/(m + 2), for which zeta is least: m/(m + 2).

        Parameters
        ----------
        m : int
            Number of workers.
        """
        return cls(2 / (m + 2))

    def check(self, m: int) -> None:
        """The pull must not overshoot."""
        if not self.alpha < 2 / (m + 1):
            raise ValueError(f"alpha must satisfy 0 < alpha < 2/(m + 1) = {2 / (m + 1):.6g}; got {self.alpha}")

    def zeta(self, m: int) -> float:
        """Return how much of a difference between the models and the anchor is left after one averaging, at most.

        Parameters
        ----------
        m : int
            Number of workers.
        """
        return zeta_of(self.matrix(m))

    def matrix(self, m: int, round_index: int = 0) -> np.ndarray:
        """Return shape (m + 1, m + 1), the anchor last."""
        W = np.diag(np.full(m + 1, 1 - self.alpha))
        W[:m, m] = W[m, :m] = self.alpha
        W[m, m] = 1 - m * self.alpha
        return W

    def init(self, start: torch.Tensor) -> State:
        """Return the anchor is where all ranks start."""
        return {"anchor": start}

    def update(self, state: State, own: torch.Tensor, blended: torch.Tensor, m: int) -> tuple[State, torch.Tensor]:
        """Pull model and anchor; ``blended`` is the mean of all models."""
        anchor = state["anchor"].to(blended.device, torch.float64)
        moved = anchor + (m * self.alpha) * (blended - anchor)
        mixed = own - self.alpha * (own - anchor)
        return {"anchor": moved.to(blended.dtype)}, mixed.to(blended.dtype)
