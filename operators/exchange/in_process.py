"""The mean of m vectors by an exchange, in one process: the same bits as between m real ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from ..feedback.feedback import Feedback
from ..inputs import canonical_rows, rows_of
from ..key import Key, Keys
from ..message import Message
from ..operator import SHORT, Operator
from .channel import FROM_OWNER, GATHERED, TO_OWNER, Channel, stage_key
from .choice import Exchange, choose, lengths, shards
from .ordered_mean import OrderedSum
from .two_shot import TwoShot

# Means of vectors that come in batches, one row per rank: the same bits as between real ranks, in bounded memory.
#
# The ranks are numbered in the order of their rows.  Memory is that of the mean and of one batch, so that the number of
# ranks is limited by time only.

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
    total, bits = None, 0
    stream = stage_key(key, GATHERED, 0, step=key.step, rank=0)
    for total, sent in _sums_of_decoded(batches, operator, stream):  # noqa: B007  its last value is needed
        bits += int(sent.sum())
    if total is None:
        raise ValueError("there must be at least one vector; got no batch")
    return MeanOfStream(total.mean(), total.count, (total.count - 1) * bits)


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
    total, bits = None, 0
    for total, sent in _sums_of_decoded(batches, operator, stage_key(key, TO_OWNER, shard, step=key.step, rank=0)):
        owner = shard - (total.count - sent.size)  # its row in this batch, if it is there
        bits += int(sent.sum()) - (int(sent[owner]) if 0 <= owner < sent.size else 0)  # it sends itself nothing
    if total is None or not 0 <= shard < total.count:
        raise ValueError(f"shard must be the rank of an owner below m = {total.count if total else 0}; got {shard}")
    sender = stage_key(key, FROM_OWNER, shard, step=key.step, rank=shard)
    second = second or operator
    message = second.encode(total.mean().float(), key=sender)
    mean = second.decode(message, d=total.total.numel(), key=sender)
    return MeanOfStream(mean, total.count, bits + (total.count - 1) * message.bits)


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


def _sums_of_decoded(
    batches: Iterable[torch.Tensor | np.ndarray], operator: Operator, key: Key
) -> Iterator[tuple[OrderedSum, np.ndarray]]:
    """Yield, after each batch, the sum of the decoded vectors of ranks 0, 1, .., and the bits of its messages."""
    total = None
    for rows in rows_of_batches(batches):
        first = total.count if total else 0
        keys = Keys(key, range(first, first + rows.shape[0]))
        messages = operator.encode_rows(rows, keys=keys)
        decoded = operator.decode_rows(messages, d=rows.shape[1], keys=keys)
        total = (total or OrderedSum(rows.shape[1], rows.device)).add(decoded)
        yield total, messages.bits


def _sum_of_decoded(
    batches: Iterable[torch.Tensor | np.ndarray], operator: Operator, key: Key
) -> tuple[OrderedSum, np.ndarray]:
    """Return the sum of the decoded vectors of ranks 0, 1, .., at least one, and the bits of each message."""
    sums, sent = zip(*_sums_of_decoded(batches, operator, key), strict=True)
    return sums[-1], np.concatenate(sent)


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
            stream = stage_key(key, TO_OWNER, owner, step=key.step, rank=0)
            total, bits = _sum_of_decoded([matrix[:, cuts[owner]]], first, stream)
            bits[owner] = 0
            sent += bits
            out[cuts[owner]] = total.mean().float()
        keys = [stage_key(key, FROM_OWNER, owner, step=key.step, rank=owner) for owner in owners]
        messages = second.encode_rows(torch.stack([out[cuts[owner]] for owner in owners]), keys=keys)
        shared[owners] = messages.bits
        for owner, mean in zip(owners, second.decode_rows(messages, d=n, keys=keys), strict=True):
            out[cuts[owner]] = mean
    return MeanOfRanks(out, "two_shot", tuple((sent + (m - 1) * shared).tolist()))


def _gathered(vectors: Sequence[torch.Tensor], operator: Operator, key: Key, d: int) -> MeanOfRanks:
    """Return the mean of whole messages, summed in rank order in float64."""
    some = max(1, BATCH // d)
    batches = (torch.stack(list(vectors[start : start + some])) for start in range(0, len(vectors), some))
    total, bits = _sum_of_decoded(batches, operator, stage_key(key, GATHERED, 0, step=key.step, rank=0))
    return MeanOfRanks(total.mean(), "gather", tuple(((len(vectors) - 1) * bits).tolist()))


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
