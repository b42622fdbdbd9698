"""The mean in two shots: every rank compresses each shard for its owner, every owner the mean of its shard for all.

Rank i cuts its vector into m shards and sends C1 of shard j to rank j, the owner of shard j.  The owner decodes the m
messages, takes their mean in rank order in float64 and sends C2 of it to all.  Every rank, the owner too, uses what C2
decodes to; so all ranks end with the same bits.  What the operators claim, they claim for vectors as long as a shard.
A rank sends (1 - 1/m)(b1 + b2) bits per coordinate, and the error of the mean is ``bounds.theorems.two_shot_error``.
Error feedback needs a memory at both ends: the worker's of C1 and the owner's of C2.
What is decoded, summed and encoded stays on the device on which the messages lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import torch

from ..feedback.feedback import Feedback, State
from ..inputs import canonical_tensor
from ..key import Key
from ..message import Message
from ..operator import Operator
from .channel import FROM_OWNER, TO_OWNER, Channel, naming
from .choice import lengths
from .ordered_mean import ordered_mean

E = TypeVar("E")


class End(Protocol):
    """One end of a channel; ``step`` says which message of the sequence it is."""

    @property
    def d(self) -> int:
        """Number of coordinates."""

    def encode(self, x: torch.Tensor, step: Any) -> Message:
        """Return the message of a step."""

    def decode(self, message: Message, step: Any) -> torch.Tensor:
        """Return what a message of a step says."""


def ends_of(end: Callable[[int, int, int, bool], E], *, rank: int, m: int) -> dict[str, list[E]]:
    """Return all ends of one rank, by what they are for.

    Parameters
    ----------
    end : callable
        Makes one from stage, sender, owner of the shard, and whether it receives.
    rank : int
        Whose ends.
    m : int
        Number of ranks.
    """
    ranks = range(m)
    return {
        "senders": [end(TO_OWNER, rank, owner, False) for owner in ranks],
        "receivers": [end(TO_OWNER, sender, rank, True) for sender in ranks],
        "owner": [end(FROM_OWNER, rank, rank, False)],
        "means": [end(FROM_OWNER, owner, owner, True) for owner in ranks],
    }


def to_owners(ends: Sequence[End], x: torch.Tensor, step: Any) -> list[Message]:
    """Return a rank's messages of the first shot, one for every owner.

    Parameters
    ----------
    ends : sequence of End
        The rank's senders, by owner.
    x : tensor
        The shards one after the other, in the order of their owners.
    step
        Number of the exchange.
    """
    pieces = x.split([end.d for end in ends])
    return [end.encode(piece, step) for end, piece in zip(ends, pieces, strict=True)]


def merge(ends: Sequence[End], out: End, messages: Mapping[int, Message], members: Iterable[int], step: Any) -> Message:
    """Return an owner's message of the second shot: the encoded mean of the members' shards.

    Parameters
    ----------
    ends : sequence of End
        The owner's receivers, by rank.
    out : End
        Its sender to all.
    messages : mapping of int to Message
        Of the first shot, by rank.
    members : iterable of int
        The ranks that count, in rank order.
    step
        Number of the exchange.

    Raises
    ------
    CorruptMessage
        That names the rank, for a damaged message.
    """

    def decoded() -> Iterator[torch.Tensor]:
        for rank in members:
            with naming("shard", rank):
                vector = ends[rank].decode(messages[rank], step)
            yield vector

    return out.encode(ordered_mean(decoded(), torch.float32), step)


def from_owners(ends: Sequence[End], messages: Sequence[Message], step: Any) -> torch.Tensor:
    """Return the mean that all ranks use, float32, shard after shard in the order of their owners.

    Parameters
    ----------
    ends : sequence of End
        Receivers, by owner.
    messages : sequence of Message
        Of the second shot, by owner.
    step
        Number of the exchange.

    Raises
    ------
    CorruptMessage
        That names the owner, for a damaged message.
    """
    parts = []
    for owner, (end, message) in enumerate(zip(ends, messages, strict=True)):
        with naming("mean", owner):
            parts.append(end.decode(message, step))
    return torch.cat([part for part in parts if part.numel()] or parts)  # empty ones may lie on another device


class TwoShot:
    """One rank's ends of an exchange in two shots, for vectors of one length.

    Parameters
    ----------
    first : Operator or Feedback
        Compresses the shards for their owners.
    second : Operator or Feedback
        Compresses their means for all.
    key : Key
        Of the operators' randomness; step and rank are filled in, stage and shard are folded in.
    rank : int
        Whose ends.
    m : int
        Number of ranks.
    d : int
        Number of coordinates.
    reads_own : bool, optional
        Whether the rank also keeps what decodes its own shards (``own``), which only their owners need.
    """

    def __init__(
        self,
        first: Operator | Feedback,
        second: Operator | Feedback,
        key: Key,
        *,
        rank: int,
        m: int,
        d: int,
        reads_own: bool = False,
    ) -> None:
        sizes = lengths(d, m)

        def end(stage: int, sender: int, owner: int, receives: bool) -> Channel:
            operator = first if stage == TO_OWNER else second
            return Channel(operator, key, stage=stage, rank=sender, shard=owner, d=sizes[owner], receives=receives)

        self.senders, self.receivers, (self.owner,), self.means = ends_of(end, rank=rank, m=m).values()
        self.readers = [end(TO_OWNER, rank, owner, True) for owner in range(m) if reads_own]

    def encode(self, x: torch.Tensor | np.ndarray, step: int) -> list[Message]:
        """Return the messages of the first shot, one for every owner.

        Parameters
        ----------
        x : tensor or ndarray, shape (d,)
            This rank's vector.
        step : int
            Number of the exchange.
        """
        return to_owners(self.senders, canonical_tensor(x), step)

    def merge(self, messages: Mapping[int, Message], members: Iterable[int], step: int) -> Message:
        """Return the message of the second shot, for all.

        Parameters
        ----------
        messages : mapping of int to Message
            That have come for this rank, by sender.
        members : iterable of int
            The ranks that count.
        step : int
            Number of the exchange.
        """
        return merge(self.receivers, self.owner, messages, members, step)

    def mean(self, messages: Sequence[Message], step: int) -> torch.Tensor:
        """Return the mean, float32, shape (d,).

        Parameters
        ----------
        messages : sequence of Message
            Of the second shot, by owner.
        step : int
            Number of the exchange.
        """
        return from_owners(self.means, messages, step)

    def own(self, messages: Sequence[Message], step: int) -> torch.Tensor:
        """Return what the owners decode this rank's shards to, float32, shape (d,); a rank that ``reads_own``.

        Parameters
        ----------
        messages : sequence of Message
            Of the first shot, by owner.
        step : int
            Number of the exchange.
        """
        return torch.cat([end.decode(message, step) for end, message in zip(self.readers, messages, strict=True)])

    @property
    def state(self) -> list[State]:
        """Tensors that the ends remember, which may be set."""
        return [channel.state for channel in self._channels]

    @state.setter
    def state(self, states: Sequence[State]) -> None:
        if len(states) != len(self._channels):
            raise ValueError(
                f"the saved state is of {len(states)} ends and this exchange has {len(self._channels)}: give exchange, "
                "errors and the number of ranks as they were"
            )
        for channel, state in zip(self._channels, states, strict=True):
            channel.state = state

    @property
    def _channels(self) -> list[Channel]:
        return [*self.senders, *self.receivers, self.owner, *self.means, *self.readers]
