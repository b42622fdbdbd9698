"""What is sent and how, and the error that the laws of sums give it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bounds.claims import Unbiased
from bounds.theorems import gather_error, two_shot_error
from operators import EDEN, QSGD, TCDQ, ErrorFeedback, Feedback, Key, Operator, ScaledSign, TopK
from operators.exchange.shards import shards
from operators.random import normal

from ...records.storage import Record
from ..unit import Unit, of_kind

DENSE = "float32"
EXCHANGES = ("gather", "two_shot")
CODECS: dict[str, Operator | Feedback] = {
    "tcdq": TCDQ(omega=0.1),
    "qsgd": QSGD(levels=16, bucket=512),
    "eden": EDEN(bits_per_coordinate=4),
    "topk": ErrorFeedback(TopK(fraction=0.01)),
    "sign": ErrorFeedback(ScaledSign()),
}
FORGETFUL = "sign, owner forgets"
EXACT = "exact"
Method = tuple[Operator | Feedback | None, Operator | Feedback | None]  # of both stages
TRAINED: dict[str, Method] = {
    EXACT: (None, None),
    "tcdq": (TCDQ(omega=0.02), None),
    "qsgd": (QSGD(levels=16, bucket=512), None),
    "eden": (EDEN(bits_per_coordinate=3), None),
    "topk": (ErrorFeedback(TopK(fraction=0.05)), None),
    "sign": (ErrorFeedback(ScaledSign()), None),
    FORGETFUL: (ErrorFeedback(ScaledSign()), ScaledSign()),
}


@dataclass(frozen=True)
class Networked(Unit, kind="network"):
    """All methods between m real processes on the shaped network."""

    m: int


@dataclass(frozen=True)
class Simulated(Unit, kind="simulated"):
    """One codec between m workers of one process."""

    codec: str
    m: int


@dataclass(frozen=True)
class Train(Unit, kind="train"):
    """The digits with real processes."""

    method: str
    seed: int


KINDS: tuple[type[Networked | Simulated | Train], ...] = (Networked, Simulated, Train)


def vectors(seed: int, step: int, m: int, d: int) -> list[torch.Tensor]:
    """Return independent Gaussian vectors of all ranks, float32.

    Parameters
    ----------
    seed : int
        Of the run.
    step : int
        Number of the exchange.
    m : int
        Number of ranks.
    d : int
        Number of coordinates.
    """
    keys = [Key(seed, step=step, rank=rank).fold_in(1) for rank in range(m)]
    return [torch.from_numpy(normal(key, d).astype(np.float32)) for key in keys]


def expected_error(operator: Operator | Feedback, exchange: str, x: Sequence[torch.Tensor]) -> float | None:
    """Return what the law gives for the squared error of the mean, by the claims at the lengths that are encoded.

    Parameters
    ----------
    operator : Operator or Feedback
        Of both stages.
    exchange : str
        "gather" or "two_shot".
    x : sequence of tensor, shape (d,)
        The vectors of all ranks.

    Returns
    -------
    float or None
        None for an operator without a claim of no bias, and for one with memory.
    """
    if isinstance(operator, Feedback):
        return None
    rows = torch.stack(list(x)).double()
    m, d = rows.shape
    total = 0.0
    for shard in [slice(0, d)] if exchange == "gather" else shards(d, m):
        part = rows[:, shard]
        claim = operator.claim(part.shape[1])
        if not isinstance(claim, Unbiased):
            return None
        square, of_mean = float(part.square().sum()) / m, float(part.mean(dim=0).square().sum())
        if exchange == "gather":
            total += float(gather_error(mean_square=square, m=m, omega=claim.omega))
        else:
            total += float(
                two_shot_error(mean_square=square, square_of_mean=of_mean, m=m, omega1=claim.omega, omega2=claim.omega)
            )
    return total


def is_tight(operator: Operator | Feedback, d: int) -> bool:
    """Return whether the law is an equality.

    Parameters
    ----------
    operator : Operator or Feedback
        Of both stages.
    d : int
        Number of coordinates that are encoded.
    """
    claim = operator.claim(d) if isinstance(operator, Operator) else None
    return isinstance(claim, Unbiased) and claim.tight


def exchanges(records: Sequence[Record]) -> list[tuple[int, Record]]:
    """Return the number of workers, and the record of one codec by one exchange, of all units that have them.

    Parameters
    ----------
    records : sequence of Record
        The records at hand.
    """
    networked = [(unit.m, record) for unit, record in of_kind(records, Networked)]
    simulated = [(unit.m, record) for unit, record in of_kind(records, Simulated)]
    return [(m, method) for m, record in [*networked, *simulated] for method in record["methods"]]
