"""What happens to the models when a round ends: one multiplication of all of them by a matrix W.

The model of rank i becomes sum_j W[i, j] times that of rank j; EASGD's anchor counts as one more model.  This is
the view of cooperative SGD (Wang & Joshi, arXiv:1808.07576): a doubly stochastic W keeps the mean of all models,
and what it does to their differences is measured by zeta, the spectral norm of W without its mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Protocol

import numpy as np
import torch

State = Mapping[str, torch.Tensor]


class Transport(Protocol):
    """Joins the ranks; a process hosts one of them, or all of them as virtual workers.

    size : number of ranks.  ranks : those hosted here; vectors are given and returned in their order.
    """

    size: int
    ranks: Sequence[int]

    def means(self, owns: Sequence[torch.Tensor], members: Sequence[int]) -> list[torch.Tensor]:
        """The mean of the members' vectors for every rank hosted here, folded in rank order."""

    def receive(
        self, owns: Sequence[torch.Tensor], sources: Callable[[int], Sequence[int]]
    ) -> list[dict[int, torch.Tensor]]:
        """For every rank hosted here the vectors of its sources, by rank; its own is never one of them."""


class Mixing(ABC):
    """A mode of averaging; subclasses are frozen, final dataclasses, and their methods change nothing.

    common : whether all ranks start the next round from one point, which compressed deltas and block momentum need.
    """

    common: ClassVar[bool]

    def check(self, m: int) -> None:  # noqa: B027  most modes work with any number of ranks
        """Raise ValueError if the mode cannot work with m ranks."""

    def members(self, turn: int, m: int) -> Sequence[int]:
        """The ranks whose models count in round ``turn`` >= 0, ascending; all, unless the mode draws them."""
        return range(m)

    @abstractmethod
    def matrix(self, m: int, turn: int = 0) -> np.ndarray:
        """W of round ``turn``, shape (m, m), or (m + 1, m + 1) with an anchor as the last model."""

    def blend(self, transport: Transport, owns: Sequence[torch.Tensor], turn: int) -> list[torch.Tensor]:
        """What reaches every rank hosted here: by default the mean of the members.

        owns : one vector for each of them, shape (n,).  Returns vectors in float32, float64 for float64.
        """
        return transport.means(owns, self.members(turn, transport.size))

    def init(self, start: torch.Tensor) -> State:
        """What a rank remembers before the first round, which starts everywhere at ``start``."""
        return {}

    def update(self, state: State, own: torch.Tensor, blended: torch.Tensor, m: int) -> tuple[State, torch.Tensor]:
        """(new state, the rank's next model) from its own model and from what reached it."""
        return state, blended


def zeta(W: np.ndarray) -> float:
    """The spectral norm of W - J, J the averaging matrix: the largest |eigenvalue| but the first of a symmetric W.

    0 for full averaging; below 1 exactly if repeated mixing makes all models equal.
    """
    return float(np.linalg.norm(W - 1 / len(W), 2))
