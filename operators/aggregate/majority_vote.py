"""signSGD with majority vote, and the exact probability of a wrong vote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch

from ..compressors.sign_sgd import SignSGD
from ..key import Key
from ..message import Message
from ..operator import Operator
from ..random import bits32
from .aggregate import Aggregate, server_key

Ties = Literal["positive", "negative", "random"]


@dataclass(frozen=True)
class MajorityVote(Aggregate):
    """Send signs from every worker; return the sign of their sum per coordinate.

    Parameters
    ----------
    ties : Ties, optional
        Result of a tie: "positive" as sign(0) everywhere else, "negative", or "random", a fair coin from the
        server's stream, one word per coordinate.

    Notes
    -----
    d bits each way (Bernstein et al. 2019).  It estimates the sign of the mean, not the mean.
    """

    ties: Ties = "positive"

    name = "majority_vote"
    sources = ("bernstein2019",)
    topology = "star"

    def __post_init__(self) -> None:
        if self.ties not in ("positive", "negative", "random"):
            raise ValueError(f'ties must be "positive", "negative" or "random"; got {self.ties!r}')

    @property
    def uplink(self) -> Operator:
        """Signs."""
        return SignSGD()

    @property
    def downlink(self) -> Operator:
        """Signs."""
        return SignSGD()

    def merge(self, messages: Sequence[Message], *, d: int, keys: Sequence[Key]) -> Message:
        """Return the message of the majority signs."""
        total = self.decoded(messages, d, keys).sum(axis=0)
        tied = total == 0
        if tied.any() and self.ties != "positive":
            low = np.ones(d, bool) if self.ties == "negative" else bits32(server_key(keys), d) >> 31 == 1
            total[tied & low] = -1
        return self.downlink.encode(torch.from_numpy(total), key=server_key(keys))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls("negative"), cls("random")


def wrong_vote_probability(right: Sequence[float], tie: float = 0.5) -> float:
    """Return the probability that a vote of independent workers differs from the true sign.

    Parameters
    ----------
    right : sequence of float
        Probability per worker that its sign is right; an adversary that negates has one minus an honest worker's.
    tie : float, optional
        Probability that an even split counts as wrong.  Exact convolution in float64, n^2 operations.
    """
    law = np.ones(1)
    for p in right:
        law = np.append(law * (1 - p), 0.0) + np.append(0.0, law * p)
    n = len(right)
    wrong = float(law[: (n + 1) // 2].sum())
    return wrong + (tie * float(law[n // 2]) if n % 2 == 0 else 0.0)
