"""Mixing of models at the end of a round: one multiplication of all models by a matrix W.

The model of rank i becomes sum_j W[i, j] times that of rank j.  EASGD's anchor counts as one more model.  This is the
view of cooperative SGD (Wang & Joshi, arXiv:1808.07576).  A doubly stochastic W keeps the mean of all models.  zeta,
the spectral norm of W without its mean, measures how much it reduces their differences.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch

from ...distributed.transport import VectorTransport

State = Mapping[str, torch.Tensor]


class Mixing(ABC):
    """A mode of averaging; subclasses are frozen, final dataclasses without side effects.

    Attributes
    ----------
    common : bool
        Whether all ranks start the next round from one model, as compressed movements and block momentum require.
    """

    common: ClassVar[bool]

    def check(self, m: int) -> None:  # noqa: B027  most modes work with any number of ranks
        """Raise ValueError if the mode does not work with m ranks.

        Parameters
        ----------
        m : int
            Number of workers.
        """

    def members(self, round_index: int, m: int) -> Sequence[int]:
        """Return the ranks whose models count in a round, ascending; all unless the mode samples them.

        Parameters
        ----------
        round_index : int
            Index of the round, from 0.
        m : int
            Number of workers.
        """
        return range(m)

    @abstractmethod
    def matrix(self, m: int, round_index: int = 0) -> np.ndarray:
        """Return W of a round, shape (m, m), or (m + 1, m + 1) with an anchor as the last model.

        Parameters
        ----------
        m : int
            Number of workers.
        round_index : int, optional
            Index of the round, from 0.
        """

    def mix(self, transport: VectorTransport, owns: Sequence[torch.Tensor], round_index: int) -> list[torch.Tensor]:
        """Return the vector that each rank hosted here receives: by default the mean of the members.

        Parameters
        ----------
        transport : VectorTransport
            Transport of the messages.
        owns : sequence of tensor
            One vector per rank hosted here, shape (n,).
        round_index : int
            Index of the round, from 0.

        Returns
        -------
        list of tensor
            Vectors in float32, or float64 for float64.
        """
        return transport.means(owns, self.members(round_index, transport.size))

    def init(self, start: torch.Tensor) -> State:
        """Return a rank's state before the first round, which starts at the model ``start`` on all ranks.

        Parameters
        ----------
        start : tensor
            Common model, shape (d,).
        """
        return {}

    def update(self, state: State, own: torch.Tensor, blended: torch.Tensor, m: int) -> tuple[State, torch.Tensor]:
        """Return (new state, next model) of a rank.

        Parameters
        ----------
        state : State
            Result of ``init`` or of the last ``update``.
        own : tensor
            Model of the rank, shape (d,).
        blended : tensor
            Result of ``mix``, shape (d,).
        m : int
            Number of workers.
        """
        return state, blended


def zeta(W: np.ndarray) -> float:
    """Return the spectral norm of W - J, where J is the averaging matrix.

    For a symmetric W it is the second largest ``|eigenvalue|``.  It is 0 for full averaging.  It is below 1 exactly if
    repeated mixing makes all models equal.

    Parameters
    ----------
    W : ndarray
        Mixing matrix, shape (m, m).
    """
    return float(np.linalg.norm(W - 1 / len(W), 2))
