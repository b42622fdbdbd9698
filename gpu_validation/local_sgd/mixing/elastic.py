"""Elastic averaging (EASGD; Zhang, Choromanska & LeCun 2015): models and an anchor attract each other."""

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
    """Elastic averaging: x_i <- x_i - alpha (x_i - z) and z <- z + alpha sum_i (x_i - z), from the same old values.

    Every rank stores the anchor z, which starts at the common model; evaluate the anchor.  W is symmetric and doubly
    stochastic on the m models and the anchor, so their mean does not change.  Buffers and averaged optimizer states
    take the full mean.  Updates are computed in float64 and stored in the models' precision.

    Parameters
    ----------
    alpha : float
        0 < alpha < 2/(m + 1), so that zeta = ``max(|1 - alpha|, |1 - (m + 1) alpha|)`` < 1.

    Raises
    ------
    ValueError
        For an alpha outside this range.
    """

    alpha: float

    common = False

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must satisfy 0 < alpha < 1; got {self.alpha}")

    @classmethod
    def best(cls, m: int) -> Elastic:
        """Return the mode with alpha = 2/(m + 2), which minimises zeta: m/(m + 2).

        Parameters
        ----------
        m : int
            Number of workers.
        """
        return cls(2 / (m + 2))

    def check(self, m: int) -> None:
        """Raise ValueError unless alpha < 2/(m + 1)."""
        if not self.alpha < 2 / (m + 1):
            raise ValueError(f"alpha must satisfy 0 < alpha < 2/(m + 1) = {2 / (m + 1):.6g}; got {self.alpha}")

    def zeta(self, m: int) -> float:
        """Return the largest factor by which an averaging multiplies differences between models and anchor.

        Parameters
        ----------
        m : int
            Number of workers.
        """
        return zeta_of(self.matrix(m))

    def matrix(self, m: int, round_index: int = 0) -> np.ndarray:
        """Return W, shape (m + 1, m + 1), with the anchor last."""
        W = np.diag(np.full(m + 1, 1 - self.alpha))
        W[:m, m] = W[m, :m] = self.alpha
        W[m, m] = 1 - m * self.alpha
        return W

    def init(self, start: torch.Tensor) -> State:
        """Return the state with the anchor at the common start."""
        return {"anchor": start}

    def update(self, state: State, own: torch.Tensor, blended: torch.Tensor, m: int) -> tuple[State, torch.Tensor]:
        """Move model and anchor; ``blended`` is the mean of all models."""
        anchor = state["anchor"].to(blended.device, torch.float64)
        moved = anchor + (m * self.alpha) * (blended - anchor)
        mixed = own - self.alpha * (own - anchor)
        return {"anchor": moved.to(blended.dtype)}, mixed.to(blended.dtype)
