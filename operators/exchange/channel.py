"""One direction of an exchange: what one rank sends of one vector, step by step, with the memory of one end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from ..feedback.feedback import Feedback, State
from ..feedback.memoryless import Memoryless
from ..key import Key
from ..message import CorruptMessage, Message
from ..operator import Operator

GATHERED, TO_OWNER, FROM_OWNER = 0, 1, 2  # what a message is for


def with_memory(operator: Operator | Feedback) -> Feedback:
    """Return a feedback method as it is, and an operator as one that remembers nothing.

    Parameters
    ----------
    operator : Operator or Feedback
        What compresses.
    """
    return operator if isinstance(operator, Feedback) else Memoryless(operator)


@contextmanager
def naming(what: str, rank: int) -> Iterator[None]:
    """Name the sender of a damaged message.

    Parameters
    ----------
    what : str
        What it sent: "shard" or "mean".
    rank : int
        Who.

    Raises
    ------
    CorruptMessage
        That names the rank, where one is raised inside.
    """
    try:
        yield
    except CorruptMessage as error:
        raise CorruptMessage(f"the {what} that rank {rank} sent is damaged: {error}") from error


def stage_key(key: Key, stage: int, shard: int, *, step: int, rank: int) -> Key:
    """Return the stream of one message: another one for every stage, shard, step and sender.

    Parameters
    ----------
    key : Key
        That of the run.
    stage : int
        ``GATHERED``, ``TO_OWNER`` or ``FROM_OWNER``.
    shard : int
        Whose shard is encoded.
    step : int
        Number of the exchange.
    rank : int
        Who encodes.
    """
    sent = replace(key, step=step, rank=rank)
    return sent if stage == GATHERED else sent.fold_in(stage).fold_in(shard)


class Channel:
    """The messages of one rank about one shard; sender and receiver each have one of their own.

    Parameters
    ----------
    operator : Operator or Feedback
        What compresses; a Feedback keeps the state of this end in ``state``.
    key : Key
        That of the run; step and rank are filled in.
    stage : int
        ``GATHERED``, ``TO_OWNER`` or ``FROM_OWNER``.
    rank : int
        Who sends.
    shard : int
        Whose shard it is; 0 for a whole vector.
    d : int
        Entries of the shard; of none, an empty message is sent.
    receives : bool
        Which end this is.
    """

    def __init__(
        self, operator: Operator | Feedback, key: Key, *, stage: int, rank: int, shard: int, d: int, receives: bool
    ) -> None:
        self.method, self.d = with_memory(operator), d
        self._address = key, stage, shard, rank
        self.state: State = {} if d == 0 else self.method.init_receiver(d) if receives else self.method.init(d)

    def encode(self, x: torch.Tensor, step: Any) -> Message:
        """Return the message of a step.

        Parameters
        ----------
        x : tensor, shape (d,)
            The shard.
        step : int
            Number of the exchange.
        """
        if self.d == 0:
            return Message(torch.empty(0, dtype=torch.uint8), 0)
        self.state, message = self.method.encode(self.state, x, key=self._key(step))
        return message

    def decode(self, message: Message, step: Any) -> torch.Tensor:
        """Return what a message of a step says, float32, shape (d,).

        Parameters
        ----------
        message : Message
            From the sender's end.
        step : int
            Number of the exchange.

        Raises
        ------
        CorruptMessage
            For a damaged message.
        """
        if self.d == 0:
            return torch.empty(0)
        self.state, x = self.method.decode(self.state, message, d=self.d, key=self._key(step))
        return x

    def _key(self, step: int) -> Key:
        key, stage, shard, rank = self._address
        return stage_key(key, stage, shard, step=step, rank=rank)
