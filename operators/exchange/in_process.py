"""The mean of m vectors by an exchange, in one process: the same bits as between m real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from ..feedback.feedback import Feedback
from ..inputs import rows_of
from ..key import Key
from ..message import Message
from ..operator import Operator
from .channel import GATHERED, Channel
from .choice import Exchange, choose
from .two_shot import TwoShot


@dataclass(frozen=True, eq=False)
class MeanOfRanks:
    """What an exchange has come to.

    Parameters
    ----------
    mean : tensor, shape (d,)
        What every rank holds at the end: float64 if gathered, float32 in two shots.
    exchange : str
        "gather" or "two_shot".
    sent_bits : tuple of int, bits
        What each rank has sent, once for every receiver, without headers.
    """

    mean: torch.Tensor
    exchange: Literal["gather", "two_shot"]
    sent_bits: tuple[int, ...]


def mean_of_ranks(
    vectors: Sequence[torch.Tensor],
    operator: Operator | Feedback,
    *,
    exchange: Exchange = "two_shot",
    second: Operator | Feedback | None = None,
    key: Key,
) -> MeanOfRanks:
    """Return the mean of m vectors as an exchange between m ranks gives it.

    Parameters
    ----------
    vectors : sequence of tensor, shape (d,)
        One of every rank, in rank order.
    operator : Operator or Feedback
        Compresses; a Feedback starts without memory.
    exchange : Exchange, optional
        "gather", "two_shot" or "auto".
    second : Operator or Feedback or None, optional
        Compresses the means of two shots; by default ``operator``.
    key : Key
        Of the operators' randomness; its step is kept, the rank is filled in.

    Raises
    ------
    ValueError
        For no vectors, vectors of different lengths, or an unknown exchange.
    """
    vectors = rows_of(vectors)
    d, m = vectors[0].numel(), len(vectors)
    chosen = choose(exchange, operator, second, d=d, m=m).exchange
    if chosen == "gather":
        return _gathered(vectors, operator, key, d)
    ranks = [TwoShot(operator, second or operator, key, rank=rank, m=m, d=d) for rank in range(m)]
    sent = [rank.encode(x, key.step) for rank, x in zip(ranks, vectors, strict=True)]
    merged = [
        owner.merge({sender: messages[j] for sender, messages in enumerate(sent)}, range(m), key.step)
        for j, owner in enumerate(ranks)
    ]
    bits = tuple(
        sum(message.bits for j, message in enumerate(sent[rank]) if j != rank) + (m - 1) * merged[rank].bits
        for rank in range(m)
    )
    return MeanOfRanks(ranks[0].mean(merged, key.step), chosen, bits)


def _gathered(vectors: Sequence[torch.Tensor], operator: Operator | Feedback, key: Key, d: int) -> MeanOfRanks:
    """Return the mean of whole messages, summed in rank order in float64."""
    total, messages = torch.zeros(d, dtype=torch.float64, device=vectors[0].device), list[Message]()
    for rank, x in enumerate(vectors):
        sender, receiver = (
            Channel(operator, key, stage=GATHERED, rank=rank, shard=0, d=d, receives=receives)
            for receives in (False, True)
        )
        messages.append(sender.encode(x, key.step))
        total += receiver.decode(messages[-1], key.step)
    sent = tuple((len(vectors) - 1) * message.bits for message in messages)
    return MeanOfRanks(total / len(vectors), "gather", sent)
