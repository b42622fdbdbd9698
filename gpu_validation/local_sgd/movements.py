"""How the compressed movements of a round become their mean: gathered whole, or in two shots over owners of shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from operators import Feedback, Message, Operator
from operators.ddp.gather import Refusal
from operators.exchange import TwoShot
from operators.exchange.shards import lengths
from operators.summed import Summed

from ..distributed.transport import Transport
from .config import Settings
from .delta_codec import FAILED, Receiver, Sender
from .payload import Payload, Row

Outgoing = Message | Sequence[Message] | int | None  # of a member; or why it has none; or it has nothing to say


@dataclass(frozen=True)
class MeanMovement:
    """What all ranks have after an exchange.

    Parameters
    ----------
    movement : ndarray, shape (d,)
        The mean.
    bits : sequence of int, bits
        Lengths of the ranks' messages, in rank order; in two shots of all shards of each.
    rows : mapping of int to list of float
        The numbers that travelled with the messages, by rank.
    decoded : mapping of int to ndarray, shape (d,)
        What became of the movements of the ranks hosted here; empty where no errors are kept.
    mean_bits : tuple of int, bits
        Lengths of the owners' messages in two shots, in rank order.
    """

    movement: np.ndarray
    bits: Sequence[int]
    rows: Mapping[int, list[float]]
    decoded: Mapping[int, np.ndarray] = field(default_factory=dict)
    mean_bits: tuple[int, ...] = ()


class MeanRefused(RuntimeError):  # noqa: N818  it is told on
    """The owner of a shard could not form its mean.

    Parameters
    ----------
    rank : int
        Which one.
    failure : Exception or None
        What a rank hosted here raised, None if another one did.
    """

    def __init__(self, rank: int, failure: Exception | None) -> None:
        super().__init__(f"rank {rank} could not form the mean of its shard")
        self.rank, self.failure = rank, failure


class Movements(Protocol):
    """One exchange with the memory of all its ends hosted here.

    Attributes
    ----------
    senders : sequence
        With ``encode(delta, round_index)`` and ``state``, one for each rank hosted here.
    states : list
        What the receivers remember beside them.
    """

    @property
    def senders(self) -> Sequence[Any]:
        """One for each rank hosted here."""

    states: list[Any]

    def mean(
        self, outgoing: Sequence[Outgoing], rows: Sequence[Row], *, members: Sequence[int], round_index: int, steps: int
    ) -> MeanMovement:
        """Return the mean of the members' movements, the same bits on all ranks.

        Raises
        ------
        Refusal
            On every rank, if one has no message; MeanRefused if one has no mean.
        UnevenSteps
            On every rank, if one has made another number of local steps.
        """


class Gathered:
    """Every rank sends its message to all, and all decode all of them.

    Parameters
    ----------
    settings : Settings
        Operator and key.
    transport : Transport
        How messages travel.
    payload : Payload
        What travels with them.
    d : int
        Number of coordinates.
    """

    def __init__(self, settings: Settings, transport: Transport, payload: Payload, d: int) -> None:
        operator, key = settings.operator, settings.shared_key
        assert not isinstance(operator, Summed)  # chosen by the settings
        self.senders = [Sender(operator, key, rank=rank, d=d) for rank in transport.ranks]
        self.receiver = Receiver(operator, key, m=transport.size, d=d)
        self._transport, self._payload = transport, payload
        self._kept = transport.ranks if settings.errors else ()
        self._exact = exact_bits(operator, [d] * transport.size)

    @property
    def states(self) -> list[Any]:
        """What the receivers remember."""
        return list(self.receiver.states)

    @states.setter
    def states(self, states: list[Any]) -> None:
        self.receiver.states = list(states)

    def mean(
        self, outgoing: Sequence[Any], rows: Sequence[Row], *, members: Sequence[int], round_index: int, steps: int
    ) -> MeanMovement:
        """Gather, decode and sum in rank order."""
        exact = self._exact if len(members) == self._transport.size else None
        messages, sent = self._payload.gathered(self._transport, outgoing, rows, steps, exact)
        mean, decoded = self.receiver.mean(messages, members, round_index, keep=self._kept)
        bits = [messages[rank].bits if rank in members else 0 for rank in range(self._transport.size)]
        return MeanMovement(mean, bits, sent, decoded)


class InTwoShots:
    """Every rank sends shards to their owners, who send the compressed means of theirs to all.

    Parameters
    ----------
    settings : Settings
        Operators and key.
    transport : Transport
        How messages travel.
    payload : Payload
        What travels with them.
    d : int
        Number of coordinates.
    """

    def __init__(self, settings: Settings, transport: Transport, payload: Payload, d: int) -> None:
        assert settings.operator is not None  # whole models are not encoded
        assert not isinstance(settings.operator, Summed)
        first, second, m = settings.operator, settings.second or settings.operator, transport.size
        self._transport, self._payload, self._keeps = transport, payload, settings.errors
        key, sizes = settings.shared_key, lengths(d, m)
        self._exact, self._exact_means = exact_bits(first, sizes), exact_bits(second, sizes)
        self.senders = [TwoShot(first, second, key, rank=r, m=m, d=d, reads_own=self._keeps) for r in transport.ranks]

    @property
    def states(self) -> list[Any]:
        """Nothing: a rank's ends are all with its sender."""
        return []

    @states.setter
    def states(self, states: list[Any]) -> None:
        assert not states  # checked with the settings

    def mean(
        self, outgoing: Sequence[Any], rows: Sequence[Row], *, members: Sequence[int], round_index: int, steps: int
    ) -> MeanMovement:
        """Scatter shards, merge them, gather their means."""
        exact = self._exact if len(members) == self._transport.size else None
        arrived, bits = self._transport.scatter(outgoing, position=steps, exact=exact)
        failure: Exception | None = None
        means: list[Message | int] = []
        for owner, messages in zip(self.senders, arrived, strict=True):
            try:
                means.append(owner.merge(messages, members, round_index))
            except Exception as error:  # the other ranks must hear of it, whatever it is
                means.append(FAILED)
                failure = error
        try:
            merged, sent = self._payload.gathered(self._transport, means, rows, steps, self._exact_means)
        except Refusal as refusal:
            raise MeanRefused(refusal.rank, failure) from failure
        owners = [merged[rank] for rank in range(self._transport.size)]
        mean = self.senders[0].mean(owners, round_index).numpy()
        decoded = self._own(outgoing, round_index) if self._keeps else {}
        return MeanMovement(mean, bits, sent, decoded, tuple(message.bits for message in owners))

    def _own(self, outgoing: Sequence[Any], round_index: int) -> dict[int, np.ndarray]:
        """Return what the owners have made of the shards of the ranks hosted here, by rank."""
        hosted = zip(self._transport.ranks, self.senders, outgoing, strict=True)
        return {rank: ends.own(sent, round_index).numpy() for rank, ends, sent in hosted if sent is not None}


def exact_bits(operator: Operator | Feedback | None, sizes: Sequence[int]) -> list[int] | None:
    """Return the lengths of messages where the operator declares them exactly, None where it does not.

    Parameters
    ----------
    operator : Operator or Feedback or None
        Compresses.
    sizes : sequence of int
        Entries of every vector; of none, an empty message is sent.
    """
    if operator is None:
        return None
    declared = [operator.bits(d).exact if d else 0 for d in sizes]
    exact = [bits for bits in declared if bits is not None]
    return exact if len(exact) == len(declared) else None
