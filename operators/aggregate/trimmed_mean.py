"""Coordinate-wise mean without the extreme workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch

from ..compressors.identity import Identity
from ..key import Key
from ..message import Message
from ..operator import Operator
from .aggregate import Aggregate, server_key


@dataclass(frozen=True)
class TrimmedMean(Aggregate):
    """Drop the b largest and b smallest values per coordinate, b = ceil(fraction n), and average the others.

    Parameters
    ----------
    fraction : float, optional
        0 <= fraction < 1/2; at most b = floor((n - 1)/2) are dropped on each side, so that one remains.
    operator : Operator, optional
        Operator of the workers.  Every coordinate lies between honest values while at most b workers are faulty
        (Yin et al. 2018).  The downlink is exact.
    """

    fraction: float = 0.1
    operator: Operator = field(default_factory=Identity)

    name = "trimmed_mean"
    sources = ("yin2018",)
    topology = "star"

    def __post_init__(self) -> None:
        if not 0 <= self.fraction < 0.5:
            raise ValueError(f"fraction must satisfy 0 <= fraction < 1/2; got fraction = {self.fraction}")

    @property
    def uplink(self) -> Operator:
        """Operator of the workers."""
        return self.operator

    @property
    def downlink(self) -> Operator:
        """Exact binary32."""
        return Identity()

    def dropped(self, n: int) -> int:
        """Return the number of workers dropped on each side.

        Parameters
        ----------
        n : int
            Number of workers.
        """
        return min(int(np.ceil(self.fraction * n)), (n - 1) // 2)

    def merge(self, messages: Sequence[Message], *, d: int, keys: Sequence[Key]) -> Message:
        """Return the message of the trimmed means."""
        rows = np.sort(self.decoded(messages, d, keys).astype(np.float64), axis=0)
        b = self.dropped(len(rows))
        mean = rows[b : len(rows) - b].mean(axis=0)
        return self.downlink.encode(torch.from_numpy(mean), key=server_key(keys))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(0.1), cls(0.0)
