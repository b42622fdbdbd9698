"""Gathered movements: every rank encodes its movement for all others and decodes the messages of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from operators import Feedback, Key, Message, Operator
from operators.ddp.bucket import first_not_finite
from operators.ddp.collectives import Refusal, Undeclared
from operators.exchange.ordered_mean import ordered_mean

from ..distributed.transport import Transport
from .movements import Deltas, Error, MeanMovement, Outgoing, exact_bits
from .parts import Gather
from .payload import Payload, Row
from .refusals import CHANGED, FAILED, NOT_FINITE


class Sender:
    """One rank's encoder; a Feedback keeps its state from round to round."""

    def __init__(self, operator: Operator | Feedback | None, *, d: int) -> None:
        self.operator = operator
        self.key: Key | None = None  # of the last message
        self.state: Any = operator.init(d) if isinstance(operator, Feedback) else None

    def encode(self, delta: torch.Tensor, key: Key) -> Message:
        """Return the message of a round.

        ``delta`` is the rank's movement in float32, shape (d,).  ``key`` is the rank's stream in this round.  The
        operator raises ValueError for a movement that is not finite.
        """
        self.key = key
        if isinstance(self.operator, Feedback):
            self.state, message = self.operator.encode(self.state, delta, key=key)
            return message
        assert self.operator is not None  # whole models are not encoded
        return self.operator.encode(delta, key=key)


class Receiver:
    """Decoder of the messages of all m ranks; every rank keeps the same one."""

    def __init__(self, operator: Operator | Feedback | None, *, m: int, d: int) -> None:
        self.operator, self.d = operator, d
        self.states: list[Any] = [operator.init_receiver(d) if isinstance(operator, Feedback) else None] * m

    def mean(
        self, messages: Mapping[int, Message], members: Sequence[int], keys: Sequence[Key], keep: Sequence[int]
    ) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
        """Return the mean of the members' movements, summed in float64 in rank order, and the decoded ones to keep."""
        kept: dict[int, torch.Tensor] = {}

        def decoded() -> Iterator[torch.Tensor]:
            for rank in members:
                vector = self._decode(rank, messages[rank], keys[rank])
                if rank in keep:
                    kept[rank] = vector
                yield vector

        return ordered_mean(decoded()), kept

    def _decode(self, rank: int, message: Message, key: Key) -> torch.Tensor:
        if isinstance(self.operator, Feedback):
            self.states[rank], decoded = self.operator.decode(self.states[rank], message, d=self.d, key=key)
            return decoded
        assert self.operator is not None  # whole models are not decoded
        return self.operator.decode(message, d=self.d, key=key)


class Gathered:
    """Exchange in which every rank sends its message to all, and all decode all messages."""

    def __init__(self, exchange: Gather, key: Key, transport: Transport, payload: Payload, d: int) -> None:
        operator = exchange.operator
        self.senders = [Sender(operator, d=d) for _ in transport.ranks]
        self.receiver = Receiver(operator, m=transport.size, d=d)
        self._kept = transport.ranks if exchange.errors else ()
        self._exact = exact_bits(operator, [d] * transport.size)
        self._transport, self._payload, self._key = transport, payload, key

    @property
    def states(self) -> list[Any]:
        """States of the receivers."""
        return list(self.receiver.states)

    @states.setter
    def states(self, states: list[Any]) -> None:
        self.receiver.states = list(states)

    def mean(
        self, deltas: Deltas, rows: Sequence[Row], *, members: Sequence[int], round_index: int, steps: int
    ) -> MeanMovement:
        """Encode, gather, decode and average in rank order; see ``Movements.mean``."""
        transport = self._transport
        exact = self._exact if len(members) == transport.size else None
        keys = self._key.of_ranks(range(transport.size), step=round_index)
        outgoing, failure = encoded(transport.ranks, self.senders, deltas, [keys[rank] for rank in transport.ranks])
        try:
            try:
                messages, sent = self._gathered(outgoing, rows, steps, exact)
            except Undeclared:  # on every rank: the declared size is wrong, so lengths are sent first from now on
                self._exact = None
                messages, sent = self._gathered(outgoing, rows, steps, None)
        except Refusal as refusal:
            raise refusal from failure
        assert deltas is not None  # a rank whose model has changed refuses
        mean, decoded = self.receiver.mean(messages, members, keys, keep=self._kept)
        bits = [messages[rank].bits if rank in members else 0 for rank in range(transport.size)]
        return MeanMovement(mean, bits, sent, decoded, decoding_errors(decoded, deltas))

    def _gathered(
        self, outgoing: Sequence[Any], rows: Sequence[Row], steps: int, exact: Sequence[int] | None
    ) -> tuple[dict[int, Message], dict[int, list[float]]]:
        if rows:
            return self._payload.gathered(self._transport, outgoing, rows, steps, exact)
        return self._transport.gather(outgoing, position=steps, exact=exact), {}


def encoded(
    ranks: Sequence[int], senders: Sequence[Any], deltas: Deltas, addresses: Sequence[Any]
) -> tuple[list[Any], Exception | None]:
    """Return the outgoing messages of the ranks hosted here (``Outgoing``), and the last exception of an encoder.

    A sender that fails keeps its previous state.  ``addresses`` are the second argument of each ``encode``.
    """
    if deltas is None:
        return [CHANGED] * len(senders), None
    outgoing: list[Outgoing] = []
    failure: Exception | None = None
    for rank, sender, address in zip(ranks, senders, addresses, strict=True):
        delta = deltas.get(rank)
        if delta is None or isinstance(delta, int):
            outgoing.append(delta)
            continue
        before = sender.state
        try:
            outgoing.append(sender.encode(delta, address))
        except Exception as error:  # report any failure to the other ranks
            sender.state, failure = before, error
            entry = first_not_finite(delta)
            outgoing.append(FAILED if entry == delta.numel() else NOT_FINITE + entry)
    return outgoing, failure


def decoding_errors(decoded: Mapping[int, torch.Tensor], deltas: Deltas) -> dict[int, Error]:
    """Return ``decoding_error`` of every rank that has both a decoded and an exact movement."""
    pairs = {rank: (read, (deltas or {}).get(rank)) for rank, read in decoded.items()}
    return {rank: decoding_error(read, x) for rank, (read, x) in pairs.items() if isinstance(x, torch.Tensor)}


def decoding_error(decoded: torch.Tensor, delta: torch.Tensor) -> Error:
    """Return squared error, squared norm of ``delta`` and inner product of both, accumulated in float64."""
    exact = delta.double()
    error = decoded - exact
    return float(error @ error), float(exact @ exact), float(error @ exact)
