"""Mean of the decoded messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch

from bounds.claims import Claim, Contractive, NoClaim, Unbiased

from ..compressors.identity import Identity
from ..compressors.qsgd import QSGD
from ..key import Key
from ..message import Message
from ..operator import Operator
from .aggregate import Aggregate, server_key


@dataclass(frozen=True)
class Mean(Aggregate):
    """Decode the n messages, average in float64, and encode the average with the downlink's operator.

    Parameters
    ----------
    operator : Operator, optional
        Operator of the workers.
    down : Operator, optional
        Operator of the server, exact by default.

    Notes
    -----
    With independent workers and an exact downlink: an unbiased operator gives omega/n, a contractive one gives
    alpha (Jensen), both times the mean energy of the x_i.
    """

    operator: Operator = field(default_factory=QSGD)
    down: Operator = field(default_factory=Identity)

    name = "mean"
    topology = "star"

    @property
    def uplink(self) -> Operator:
        """Operator of the workers."""
        return self.operator

    @property
    def downlink(self) -> Operator:
        """Operator of the server."""
        return self.down

    def merge(self, messages: Sequence[Message], *, d: int, keys: Sequence[Key]) -> Message:
        """Return the encoded mean, summed in the order of the workers."""
        rows, total = self.decoded(messages, d, keys), np.zeros(d)
        for row in rows:
            total += row
        return self.down.encode(torch.from_numpy(total / len(messages)), key=server_key(keys))

    def claim_mean(self, d: int, n: int) -> Claim:
        """Return omega/n or alpha with an exact downlink.

        With an unbiased downlink of variance omega' the two variances add up to omega/n + omega' (1 + omega/n), since
        ``|mean x_i|^2`` is at most the mean energy.
        """
        up, down = self.operator.claim(d), self.down.claim(d)
        exact = not isinstance(down, NoClaim) and (down.omega if isinstance(down, Unbiased) else down.alpha) == 0
        if isinstance(up, NoClaim) or (exact is False and not isinstance(down, Unbiased)):
            return NoClaim("one of the two operators makes no claim that can be combined")
        if isinstance(up, Unbiased):
            later = down.omega if isinstance(down, Unbiased) else 0.0
            return Unbiased(up.omega / n + later * (1 + up.omega / n), tight=up.tight and exact)
        return Contractive(up.alpha) if exact else NoClaim("a biased mean was compressed again")

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(Identity()), cls(QSGD(levels=16)), cls(QSGD(levels=16), QSGD(levels=64))
