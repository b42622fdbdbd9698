"""Sampled clients: a new random subset takes part in every round, and all ranks receive its average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from operators import Key
from operators.compressors.random_k import random_support

from .mixing import Mixing


@final
@dataclass(frozen=True)
class Sampled(Mixing):
    """Average the models of ``clients`` ranks, drawn without replacement from a shared key.

    Parameters
    ----------
    clients : int
        Number of ranks per round, 1 <= clients <= m.
    key : Key
        The draw of round t depends only on it and on t; its rank is ignored.

    Raises
    ------
    ValueError
        If clients < 1 or clients > m.

    Notes
    -----
    All subsets are equally likely, up to a relative error of 2^-32, so the average is an unbiased estimate of the mean
    of all models.  With ``S^2 = sum_i |x_i - mean|^2/(m - 1)`` its expected squared error is (1/clients - 1/m) S^2.
    """

    clients: int
    key: Key

    common = True

    def __post_init__(self) -> None:
        if self.clients < 1:
            raise ValueError(f"clients must be >= 1; got {self.clients}")

    def check(self, m: int) -> None:
        """Raise ValueError if there are fewer ranks than clients."""
        if self.clients > m:
            raise ValueError(f"clients must satisfy 1 <= clients <= m = {m}; got {self.clients}")

    def members(self, round_index: int, m: int) -> Sequence[int]:
        """Return the ranks of round ``round_index``."""
        return [int(rank) for rank in random_support(self.key.shared().fold_in(round_index), self.clients, m)]

    def matrix(self, m: int, round_index: int = 0) -> np.ndarray:
        """Return W with 1/clients in the members' columns.

        Its rows sum to 1; its columns do so only on average over rounds.
        """
        W = np.zeros((m, m))
        W[:, self.members(round_index, m)] = 1 / self.clients
        return W
