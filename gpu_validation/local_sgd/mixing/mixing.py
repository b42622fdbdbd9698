"""What happens to the models when a round ends: one multiplication of all of them by a matrix W.

The model of rank i becomes sum_j W[i, j] times that of rank j; EASGD's anchor counts as one more model.  This is
the view of cooperative SGD (Wang & Joshi, arXiv:1808.07576): a doubly stochastic W keeps the mean of all models,
and what it does to their differences is measured by zeta, the spectral norm of W without its mean.
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
    """A mode of averaging; subclasses are frozen, final dataclasses, and their methods change nothing.

    Attributes
    ----------
    common : bool
        Whether all ranks start the next round from one point, which compressed deltas and block momentum need.
    """

    common: ClassVar[bool]

    def check(self, m: int) -> None:  # noqa: B027  most modes work with any number of ranks
        """Raise ValueError if the mode cannot work with m ranks.

        Parameters
        ----------
        m : int
            Number of workers.
        """

    def members(self, round_index: int, m: int) -> Sequence[int]:
        """Return the ranks whose models count in round ``round_index`` >= 0, ascending; all, unless the mode draws
        them.

        Parameters
        ----------
        round_index : int
            Number of the round, counted from 0.
        m : int
            Number of workers.
        """
        return range(m)

    @abstractmethod
    def matrix(self, m: int, round_index: int = 0) -> np.ndarray:
        """Return W of round ``round_index``, shape (m, m), or (m + 1, m + 1) with an anchor as the last model.

        Parameters
        ----------
        m : int
            Number of workers.
        round_index : int, optional
            Number of the round, counted from 0.
        """

    def mix(self, transport: VectorTransport, owns: Sequence[torch.Tensor], round_index: int) -> list[torch.Tensor]:
        """Return what reaches every rank hosted here: by default the mean of the members.

        Parameters
        ----------
        transport : VectorTransport
            How messages travel.
        owns : sequence of tensor
            One vector for each of them, shape (n,).
        round_index : int
            Number of the round, counted from 0.

        Returns
        -------
        list of tensor
            Vectors in float32, float64 for float64.
        """
        return transport.means(owns, self.members(round_index, transport.size))

    def init(self, start: torch.Tensor) -> State:
        """Return what a rank remembers before the first round, which starts everywhere at ``start``.

        Parameters
        ----------
        start : tensor
            The model at the start.
        """
        return {}

    def update(self, state: State, own: torch.Tensor, blended: torch.Tensor, m: int) -> tuple[State, torch.Tensor]:
        """Return (new state, the rank's next model) from its own model and from what reached it.

        Parameters
        ----------
        state : State
            What ``state_dict`` gave.
        own : tensor
            The rank's own model.
        blended : tensor
            What reached it.
        m : int
            Number of workers.
        """
        return state, blended


def zeta(W: np.ndarray) -> float:
    """Return the spectral norm of W - J, J the averaging matrix: the largest ``|eigenvalue|`` but the first of a
    symmetric W.

    0 for full averaging; below 1 exactly if repeated mixing makes all models equal.

    Parameters
    ----------
    W : ndarray
        The mixing matrix, shape (m, m).
    """
    return float(np.linalg.norm(W - 1 / len(W), 2))
