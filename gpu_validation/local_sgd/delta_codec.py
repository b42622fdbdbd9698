"""What a round sends if it is compressed: every rank's movement since the round began, and their mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from operators import Feedback, Key, Message, Operator
from operators.ddp.gather import Refusal

CHANGED, FAILED, NOT_FINITE = 0, 1, 2  # why a rank has no message; the entry is added to the last
Error = tuple[float, float, float]  # error2, norm2 and error_along of a Round
WHOLE: Error = (0.0, float("nan"), 0.0)
SILENT: Error = (0.0, 0.0, 0.0)


class Sender:
    """One rank's end of a compressor; a Feedback's memory goes on from round to round.

    Parameters
    ----------
    operator : Operator or Feedback or None
        None where whole models are sent.
    key : Key
        Of the operator's randomness; step and rank are filled in.
    rank : int
        Number of the rank.
    d : int
        Number of coordinates.
    """

    def __init__(self, operator: Operator | Feedback | None, key: Key, *, rank: int, d: int) -> None:
        self.operator, self.key, self.rank = operator, key, rank
        self.state: Any = operator.init(d) if isinstance(operator, Feedback) else None

    def encode(self, delta: np.ndarray, round_index: int) -> Message:
        """Return the message of round ``round_index``; delta is float32, shape (d,).

        Parameters
        ----------
        delta : ndarray
            The rank's change in the round, float32, shape (d,).
        round_index : int
            Number of the round, counted from 0.
        """
        key = replace(self.key, step=round_index, rank=self.rank)
        if isinstance(self.operator, Feedback):
            self.state, message = self.operator.encode(self.state, torch.from_numpy(delta), key=key)
            return message
        assert self.operator is not None  # whole models are not encoded
        return self.operator.encode(delta, key=key)


class Receiver:
    """The other end, for the messages of all m ranks; every rank keeps the same one.

    Parameters
    ----------
    operator : Operator or Feedback or None
        The compressor.
    key : Key
        Stream of random numbers.
    m : int
        Number of workers.
    d : int
        Number of coordinates.
    """

    def __init__(self, operator: Operator | Feedback | None, key: Key, *, m: int, d: int) -> None:
        self.operator, self.key, self.d = operator, key, d
        self.states: list[Any] = [operator.init_receiver(d) if isinstance(operator, Feedback) else None] * m

    def mean(
        self, messages: Mapping[int, Message], members: Sequence[int], round_index: int, keep: Sequence[int]
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """Return the mean of the members' decoded deltas, folded in rank order in float64, and those of the ranks to
        keep.

        Parameters
        ----------
        messages : mapping of int to Message
            One message of every rank, in rank order.
        members : sequence of int
            The ranks whose models count.
        round_index : int
            Number of the round, counted from 0.
        keep : sequence of int
            Whether the ranks' own decoded vectors are kept too.
        """
        total, kept = np.zeros(self.d), {}
        for rank in members:
            decoded = self._decode(rank, messages[rank], round_index)
            total += decoded
            if rank in keep:
                kept[rank] = decoded
        return total / len(members), kept

    def _decode(self, rank: int, message: Message, round_index: int) -> np.ndarray:
        key = replace(self.key, step=round_index, rank=rank)
        if isinstance(self.operator, Feedback):
            self.states[rank], decoded = self.operator.decode(self.states[rank], message, d=self.d, key=key)
            return decoded.numpy()
        assert self.operator is not None  # whole models are not decoded
        return self.operator.decode(message, d=self.d, key=key).numpy()


def decoding_error(decoded: np.ndarray, delta: np.ndarray) -> Error:
    """Return squared error, squared norm of the delta, inner product of error and delta; accumulated in float64.

    Parameters
    ----------
    decoded : ndarray
        What became of the delta, shape (d,).
    delta : ndarray
        The change that was sent, shape (d,).
    """
    exact = delta.astype(np.float64)
    error = decoded - exact
    return float(error @ error), float(exact @ exact), float(error @ exact)


def why_not(movement: torch.Tensor) -> int:
    """Return the number that tells all ranks why a movement, shape (d,), could not be compressed.

    Parameters
    ----------
    movement : tensor
        The change, shape (d,).
    """
    finite = torch.isfinite(movement.float())
    return FAILED if finite.all() else NOT_FINITE + int(finite.int().argmin())


def in_words(refusal: Refusal, averaging: str, name_of: Callable[[int], str], failure: Exception | None) -> str:
    """Return the same sentence on every rank, but for the words of this rank's own failure, if it has one.

    Parameters
    ----------
    refusal : Refusal
        The number on which the ranks agreed.
    averaging : str
        Which one.
    name_of : callable
        The name of an entry of the movement.
    failure : Exception or None
        What this rank raised, None if nothing.
    """
    who = f"the movement of rank {refusal.rank} in {averaging},"
    if refusal.reason == FAILED:
        why = f": {type(failure).__name__}: {failure}" if failure else "; the error of that rank says why"
        return f"{who} could not be compressed{why}"
    return (
        f"{who} is not finite in binary32: {name_of(refusal.reason - NOT_FINITE)}; look for an overflow in the loss, "
        "lower the learning rate, or clip the gradients"
    )


def mean_in_words(rank: int, averaging: str, failure: Exception | None) -> str:
    """Return why there is no mean, in two shots: the same sentence on every rank, but for its own failure's words.

    Parameters
    ----------
    rank : int
        The owner who has none.
    averaging : str
        Which one.
    failure : Exception or None
        What this rank raised, None if nothing.
    """
    why = f": {type(failure).__name__}: {failure}" if failure else "; the error of that rank says why"
    return f"the mean of the shard of rank {rank} in {averaging}, could not be formed{why}"
