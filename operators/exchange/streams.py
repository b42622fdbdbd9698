"""Means of vectors that come in batches, one row per rank: the same bits as between real ranks, in bounded memory.

The ranks are numbered in the order of their rows.  Memory is that of the mean and of one batch, so that the number of
ranks is limited by time only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from ..inputs import canonical_rows
from ..key import Key, Keys
from ..operator import Operator
from .channel import FROM_OWNER, GATHERED, TO_OWNER, stage_key
from .ordered_mean import OrderedSum

BATCH = 1 << 20  # coordinates that one call of an operator takes


@dataclass(frozen=True, eq=False)
class MeanOfStream:
    """The mean of the vectors of m ranks, and what they have sent.

    Parameters
    ----------
    mean : tensor, shape (d,)
        The vector that every rank ends with: float64 if gathered, float32 from an owner of a shard.
    m : int
        Number of ranks.
    sent_bits : int, bits
        All messages, counted once per receiver, without headers.
    """

    mean: torch.Tensor
    m: int
    sent_bits: int


def mean_of_stream(batches: Iterable[torch.Tensor | np.ndarray], operator: Operator, *, key: Key) -> MeanOfStream:
    """Return the mean of vectors that are gathered, reading them once and in batches.

    It equals ``mean_of_ranks`` with ``exchange="gather"`` bit for bit, and needs memory for the mean and one batch.

    Parameters
    ----------
    batches : iterable of tensor or ndarray, shape (b, d)
        The vectors of the ranks in rank order, b of them at a time; b may vary.
    operator : Operator
        Compresses every vector.
    key : Key
        Randomness of the operator; its step is kept, the rank is filled in.

    Raises
    ------
    ValueError
        For no vectors, rows of different lengths, or one that is not finite.
    """
    total, sent = None, 0
    for _, bits, rows in decoded_batches(batches, operator, stage_key(key, GATHERED, 0, step=key.step, rank=0)):
        total = (total or OrderedSum(rows.shape[1], rows.device)).add(rows)
        sent += int(bits.sum())
    if total is None:
        raise ValueError("there must be at least one vector; got no batch")
    return MeanOfStream(total.mean(), total.count, (total.count - 1) * sent)


def mean_of_shard(
    batches: Iterable[torch.Tensor | np.ndarray],
    operator: Operator,
    *,
    second: Operator | None = None,
    shard: int,
    key: Key,
) -> MeanOfStream:
    """Return the mean of one shard as two shots between m ranks give it, reading the ranks' parts in batches.

    It equals the coordinates of that shard in ``mean_of_ranks`` with ``exchange="two_shot"``, bit for bit.  An exchange
    between many ranks can be simulated by some of its shards, whose errors are alike.

    Parameters
    ----------
    batches : iterable of tensor or ndarray, shape (b, n)
        The ranks' parts of the shard in rank order, b of them at a time; b may vary.
    operator : Operator
        Compresses what the ranks send to the owner.
    second : Operator or None, optional
        Compresses the mean; by default ``operator``.
    shard : int
        Number of the shard, which is the rank of its owner.
    key : Key
        Randomness of the operators; its step is kept, the rank is filled in.

    Raises
    ------
    ValueError
        For no vectors, rows of different lengths, or one that is not finite.
    """
    total, sent = None, 0
    for ranks, bits, rows in decoded_batches(batches, operator, stage_key(key, TO_OWNER, shard, step=key.step, rank=0)):
        total = (total or OrderedSum(rows.shape[1], rows.device)).add(rows)
        sent += int(bits.sum()) - (int(bits[ranks.index(shard)]) if shard in ranks else 0)
    if total is None or not 0 <= shard < total.count:
        raise ValueError(f"shard must be the rank of an owner below m = {total.count if total else 0}; got {shard}")
    sender = stage_key(key, FROM_OWNER, shard, step=key.step, rank=shard)
    second = second or operator
    message = second.encode(total.mean().float(), key=sender)
    mean = second.decode(message, d=total.total.numel(), key=sender)
    return MeanOfStream(mean, total.count, sent + (total.count - 1) * message.bits)


def rows_of_batches(batches: Iterable[torch.Tensor | np.ndarray]) -> Iterator[torch.Tensor]:
    """Yield the rows of all batches as canonical matrices of at most ``BATCH`` coordinates, or of one row.

    Parameters
    ----------
    batches : iterable of tensor or ndarray, shape (b, d)
        One vector per row.

    Raises
    ------
    ValueError
        For rows of different lengths, or one that is not finite.
    """
    d = 0
    for batch in batches:
        matrix = canonical_rows(batch)
        d = d or matrix.shape[1]
        if matrix.shape[1] != d:
            raise ValueError(f"all vectors must have d = {d} coordinates; got rows of {matrix.shape[1]}")
        yield from matrix.split(max(1, BATCH // matrix.shape[1]))


def decoded_batches(
    batches: Iterable[torch.Tensor | np.ndarray], operator: Operator, key: Key
) -> Iterator[tuple[range, np.ndarray, torch.Tensor]]:
    """Yield (ranks, bits of their messages, their decoded vectors) for some rows at a time.

    Parameters
    ----------
    batches : iterable of tensor or ndarray, shape (b, d)
        The vectors of the ranks in rank order.
    operator : Operator
        Compresses every vector.
    key : Key
        Stream of the messages; the rank is filled in.
    """
    first = 0
    for rows in rows_of_batches(batches):
        ranks = range(first, first + rows.shape[0])
        keys, first = Keys(key, ranks), ranks.stop
        messages = operator.encode_rows(rows, keys=keys)
        yield ranks, messages.bits, operator.decode_rows(messages, d=rows.shape[1], keys=keys)
