"""Coordinate-wise median over the workers."""

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
class CoordinateMedian(Aggregate):
    """Decode the n messages and send the median of each coordinate (the mean of the two middle ones if n is even).

    Parameters
    ----------
    operator : Operator, optional
        Operator of the workers.  Every coordinate of the result lies between honest values while fewer than half of the
        workers are faulty (Yin et al. 2018).  The downlink is exact.
    """

    operator: Operator = field(default_factory=Identity)

    name = "coordinate_median"
    sources = ("yin2018",)
    topology = "star"

    @property
    def uplink(self) -> Operator:
        """Operator of the workers."""
        return self.operator

    @property
    def downlink(self) -> Operator:
        """Exact binary32."""
        return Identity()

    def merge(self, messages: Sequence[Message], *, d: int, keys: Sequence[Key]) -> Message:
        """Return the message of the medians."""
        median = np.median(self.decoded(messages, d, keys).astype(np.float64), axis=0)
        return self.downlink.encode(torch.from_numpy(median), key=server_key(keys))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(),)
