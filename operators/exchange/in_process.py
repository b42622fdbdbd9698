"""The mean of m vectors by an exchange, in one process: the same bits as between m real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from ..feedback.feedback import Feedback
from ..inputs import rows_of
from ..key import Key
from ..message import Message
from ..operator import SHORT, Operator
from .channel import FROM_OWNER, GATHERED, TO_OWNER, Channel, stage_key
from .choice import Exchange, choose
from .ordered_mean import OrderedSum
from .shards import lengths, shards
from .streams import BATCH, decoded_batches
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
    second = second or operator
    if chosen == "gather":
        if isinstance(operator, Operator) and d <= SHORT:
            return _gathered(vectors, operator, key, d)
        return _gathered_one_by_one(vectors, operator, key, d)
    if isinstance(operator, Operator) and isinstance(second, Operator) and d <= m * SHORT:
        return _in_two_shots(vectors, operator, second, key)
    ranks = [TwoShot(operator, second, key, rank=rank, m=m, d=d) for rank in range(m)]
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


def _in_two_shots(vectors: Sequence[torch.Tensor], first: Operator, second: Operator, key: Key) -> MeanOfRanks:
    """Return the mean in two shots, the messages of each shard at once, and then those of all owners."""
    matrix = torch.stack(list(vectors))
    (m, d), out = matrix.shape, torch.empty_like(vectors[0])
    cuts, sent, shared = shards(d, m), np.zeros(m, np.int64), np.zeros(m, np.int64)
    by_length = {n: [owner for owner in range(m) if cuts[owner].stop - cuts[owner].start == n] for n in lengths(d, m)}
    by_length.pop(0, None)
    for n, owners in by_length.items():
        for owner in owners:
            total, stream = OrderedSum(n, matrix.device), stage_key(key, TO_OWNER, owner, step=key.step, rank=0)
            for ranks, bits, rows in decoded_batches([matrix[:, cuts[owner]]], first, stream):
                total.add(rows)
                sent[ranks] += bits
                sent[owner] -= bits[ranks.index(owner)] if owner in ranks else 0
            out[cuts[owner]] = total.mean().float()
        keys = [stage_key(key, FROM_OWNER, owner, step=key.step, rank=owner) for owner in owners]
        messages = second.encode_rows(torch.stack([out[cuts[owner]] for owner in owners]), keys=keys)
        shared[owners] = messages.bits
        for owner, mean in zip(owners, second.decode_rows(messages, d=n, keys=keys), strict=True):
            out[cuts[owner]] = mean
    return MeanOfRanks(out, "two_shot", tuple((sent + (m - 1) * shared).tolist()))


def _gathered(vectors: Sequence[torch.Tensor], operator: Operator, key: Key, d: int) -> MeanOfRanks:
    """Return the mean of whole messages, summed in rank order in float64."""
    total, sent, some = OrderedSum(d, vectors[0].device), np.zeros(len(vectors), np.int64), max(1, BATCH // d)
    batches = (torch.stack(list(vectors[start : start + some])) for start in range(0, len(vectors), some))
    for ranks, bits, rows in decoded_batches(batches, operator, stage_key(key, GATHERED, 0, step=key.step, rank=0)):
        total.add(rows)
        sent[ranks] = (len(vectors) - 1) * bits
    return MeanOfRanks(total.mean(), "gather", tuple(sent.tolist()))


def _gathered_one_by_one(
    vectors: Sequence[torch.Tensor], operator: Operator | Feedback, key: Key, d: int
) -> MeanOfRanks:
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
