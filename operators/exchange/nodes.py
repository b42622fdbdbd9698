"""Exact means inside nodes: every rank of a node owns a shard, which it exchanges for its node with the other nodes."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..message import Message

FLOAT_BITS = 32


def check_nodes(size: int, ranks_per_node: int) -> None:
    """Refuse nodes that the ranks do not fill.

    Parameters
    ----------
    size : int
        Number of ranks.
    ranks_per_node : int
        Ranks of a node; 1 where there are none.

    Raises
    ------
    ValueError
        Unless it is 1, or there are two nodes or more, all with as many ranks.
    """
    if ranks_per_node != 1 and (ranks_per_node < 1 or size % ranks_per_node or size == ranks_per_node):
        raise ValueError(
            f"ranks_per_node must be 1, or divide the number of ranks into two nodes or more; got ranks_per_node = "
            f"{ranks_per_node} for {size} ranks: leave it out where there are no such nodes"
        )


def raw(x: torch.Tensor) -> Message:
    """Return numbers as they are.

    Parameters
    ----------
    x : tensor, shape (n,)
        Of any dtype.
    """
    payload = x.contiguous().view(torch.uint8)
    return Message(payload, 8 * payload.numel())


def numbers(message: Message, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return what ``raw`` was given.

    Parameters
    ----------
    message : Message
        From ``raw``.
    dtype : dtype, optional
        Of the numbers.
    """
    return message.payload.clone().view(dtype)  # a copy begins where the numbers may


def mean_of(messages: Sequence[Message]) -> torch.Tensor:
    """Return the mean of float32 vectors, added in order in float64 and rounded once.

    Parameters
    ----------
    messages : sequence of Message
        From ``raw``, in rank order.
    """
    total = numbers(messages[0]).double()
    for message in messages[1:]:
        total += numbers(message)
    return (total / len(messages)).float()
