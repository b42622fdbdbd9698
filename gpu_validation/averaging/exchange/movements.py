"""Exchanges that average compressed movements: gathered, in two shots, or summed on the way.

Behind a model follow the step check and one slot of numbers per rank.  Before a message stand the numbers of its
sender.  A separate collective would cost as much as the models' where latency dominates.  Every number is sent as the
four bytes of its binary32: integers below 256, which even bfloat16 represents exactly.  With models every member fills
its slot in a vector of zeros.  The mean over members then holds all bytes, each divided by the number of members.

A rank without a message sends the number of a refusal in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch

from operators import Feedback, Key, Message, Operator
from operators.ddp.bucket import first_not_finite
from operators.ddp.collectives import Refusal, Undeclared
from operators.exchange import TwoShot
from operators.exchange.choice import lengths
from operators.exchange.ordered_mean import ordered_mean
from operators.summed import SumEnd

from ...processes import step_check
from ...processes.transport import Transport
from ...records.round import Error
from . import parts
from .parts import Gather, Sum

CHANGED, FAILED, NOT_FINITE = 0, 1, 2  # reasons of a rank without a message; NOT_FINITE + index of the entry


class MeanRefused(RuntimeError):  # noqa: N818  the caller explains it
    """Raised if the owner of a shard could not form its mean.

    Parameters
    ----------
    rank : int
        Rank of the owner.
    failure : Exception or None
        Exception of a rank hosted here, None if the failure is elsewhere.
    """

    reason = FAILED

    def __init__(self, rank: int, failure: Exception | None) -> None:
        super().__init__(f"rank {rank} could not form the mean of its shard")
        self.rank, self.failure = rank, failure


def in_words(refusal: Refusal, averaging: str, name_of: Callable[[int], str], failure: BaseException | None) -> str:
    """Return the error sentence of a refusal, the same on every rank except for the text of its own ``failure``.

    ``name_of`` returns the name of an entry of the movement.
    """
    who = f"the movement of rank {refusal.rank} in {averaging},"
    if refusal.reason == FAILED:
        why = f": {type(failure).__name__}: {failure}" if failure else "; the error of that rank says why"
        return f"{who} could not be compressed{why}"
    return (
        f"{who} is not finite in binary32: {name_of(refusal.reason - NOT_FINITE)}; look for an overflow in the loss, "
        "lower the learning rate, or clip the gradients"
    )


def overflow_in_words(averaging: str, entry: str) -> str:
    """Return the error sentence of an overflowing mean of finite movements."""
    return f"the mean of {averaging}, overflows: {entry}; lower the learning rate, or clip the gradients"


def outer_in_words(averaging: str, entry: str) -> str:
    """Return the error sentence of a non-finite outer step."""
    return f"the outer step of {averaging}, is not finite: {entry}; lower the outer learning rate"


def mean_in_words(rank: int, averaging: str, failure: BaseException | None) -> str:
    """Return the error sentence of a missing mean in two shots, equal on all ranks except for the own ``failure``."""
    why = f": {type(failure).__name__}: {failure}" if failure else "; the error of that rank says why"
    return f"the mean of the shard of rank {rank} in {averaging}, could not be formed{why}"


def explanation(refusal: Refusal | MeanRefused, averaging: str, name_of: Callable[[int], str]) -> ValueError:
    """Return the ValueError of a refusal, the same on every rank except for the text of its own failure."""
    if isinstance(refusal, MeanRefused):
        return ValueError(mean_in_words(refusal.rank, averaging, refusal.failure))
    return ValueError(in_words(refusal, averaging, name_of, refusal.__cause__))


Row = Sequence[float]
WORD = np.dtype(">f4")


@dataclass(frozen=True)
class Payload:
    """Data sent besides the parameters.

    Parameters
    ----------
    numbers : int
        Length of every rank's row; 0 where the schedule needs none.
    world_size : int
        Number of ranks.
    """

    numbers: int
    world_size: int

    @property
    def tail_values(self) -> int:
        """Number of values behind a model."""
        return step_check.VALUES + WORD.itemsize * self.numbers * self.world_size

    @property
    def front_bits(self) -> int:
        """Number of bits before a message."""
        return 8 * WORD.itemsize * self.numbers

    # -- with models -----------------------------------------------------------------------------------------
    def tail(self, row: Row, *, rank: int, steps: int, changed: bool) -> torch.Tensor:
        """Pack the values behind a model: shape (tail_values,), float32, to be averaged and not written to.

        ``changed`` says that the model has other parameters than at the last synchronisation.
        """
        check = step_check.encode(steps, changed)
        return torch.cat([check, scatter_row(row, rank=rank, world_size=self.world_size)]) if self.numbers else check

    def open_tail(
        self, averaged: torch.Tensor, *, members: Sequence[int], steps: int, changed: bool
    ) -> list[list[float]]:
        """Unpack the members' mean of ``tail`` and return their rows, in order of ``members``.

        Raises
        ------
        UnevenModels
            Unless all ranks' models have the same parameters.
        UnevenSteps
            Unless all ranks have made the same number of steps.
        """
        self.check(averaged, steps=steps, changed=changed)
        if not self.numbers:
            return []
        return gather_rows(averaged[step_check.VALUES :], members=members, world_size=self.world_size)

    @staticmethod
    def check(averaged: torch.Tensor, *, steps: int, changed: bool) -> None:
        """Raise UnevenModels or UnevenSteps unless all ranks have packed the same step check."""
        step_check.require(averaged[: step_check.VALUES], steps, changed)

    # -- with messages ---------------------------------------------------------------------------------------
    def attach(self, row: Row, message: Message) -> Message:
        """Return the message with the row before it."""
        if not self.numbers:
            return message
        front = torch.frombuffer(bytearray(_bytes(row)), dtype=torch.uint8)
        return Message(torch.cat([front.to(message.payload.device), message.payload]), 8 * front.numel() + message.bits)

    def gathered(
        self,
        transport: Transport,
        own: Sequence[Message | int | None],
        rows: Sequence[Row],
        steps: int,
        exact: Sequence[int] | None = None,
    ) -> tuple[dict[int, Message], dict[int, list[float]]]:
        """Gather the messages of all ranks with their rows; return both by rank.

        A rank without a message sends no row.  ``exact`` are the lengths of all messages in bits, where all ranks know
        them.

        Raises
        ------
        Refusal
            On every rank, if one has a number in place of a message.
        """
        if not self.numbers:
            return transport.gather(own, position=steps, exact=exact), {}
        packed = [
            self.attach(row, message) if isinstance(message, Message) else message
            for row, message in zip(rows, own, strict=True)
        ]
        framed = None if exact is None else [self.front_bits + bits for bits in exact]
        messages = transport.gather(packed, position=steps, exact=framed)
        opened = {rank: self.detach(message) for rank, message in messages.items() if message.bits}
        return (
            {rank: opened[rank][1] if rank in opened else message for rank, message in messages.items()},
            {rank: row for rank, (row, _) in opened.items()},
        )

    def detach(self, message: Message) -> tuple[list[float], Message]:
        """Split a message into its row and the message behind it."""
        n = WORD.itemsize * self.numbers
        if not n:
            return [], message
        row = np.frombuffer(bytes(message.payload[:n].tolist()), WORD).astype(float).tolist()
        return row, Message(message.payload[n:], message.bits - 8 * n)


def scatter_row(row: Row, *, rank: int, world_size: int) -> torch.Tensor:
    """Return the row's bytes in this rank's slot among zeros, shape (4 world_size len(row),), float32."""
    places = np.zeros((world_size, WORD.itemsize * len(row)), np.float32)
    places[rank] = np.frombuffer(_bytes(row), np.uint8)
    return torch.from_numpy(places).flatten()


def gather_rows(averaged: torch.Tensor, *, members: Sequence[int], world_size: int) -> list[list[float]]:
    """Return the members' rows from their mean of ``scatter_row``, which is in float32 or better."""
    parts = averaged.detach().cpu().numpy()
    rows = np.rint(parts * len(members)).astype(np.uint8).view(WORD).astype(float).reshape(world_size, -1).tolist()
    return [rows[rank] for rank in members]


def _bytes(row: Row) -> bytes:
    return np.asarray(row, WORD).tobytes()


Outgoing = Message | Sequence[Message] | int | None  # a member's message, the number of a refusal, or not a member
Deltas = Mapping[int, torch.Tensor | int] | None  # movements by rank, or numbers of refusals


@dataclass(frozen=True)
class MeanMovement:
    """Result of an exchange, the same on all ranks except ``decoded`` and ``errors``.

    Parameters
    ----------
    movement : tensor, shape (d,)
        Mean of the movements.
    bits : sequence of int, bits
        Lengths of the ranks' messages in rank order; in two shots, of all shards of each rank.
    rows : mapping of int to list of float
        Numbers that travelled with the messages, by rank.
    decoded : mapping of int to tensor, shape (d,)
        Decoded movements of the members hosted here; empty where errors are not measured.
    errors : mapping of int to Error
        Errors of the decoded movements.
    mean_bits : tuple of int, bits
        Lengths of the owners' messages in two shots, in rank order.
    """

    movement: torch.Tensor
    bits: Sequence[int]
    rows: Mapping[int, list[float]]
    decoded: Mapping[int, torch.Tensor] = field(default_factory=dict)
    errors: Mapping[int, Error] = field(default_factory=dict)
    mean_bits: tuple[int, ...] = ()


class Movements(Protocol):
    """An exchange of movements with the state of all its ends hosted here.

    Attributes
    ----------
    senders : sequence
        One per rank hosted here, with ``encode(delta, round_index)`` and ``state``.
    states : list
        States of the receivers.
    """

    @property
    def senders(self) -> Sequence[Any]:
        """Senders of the ranks hosted here."""

    states: list[Any]

    def mean(
        self, deltas: Deltas, rows: Sequence[Row], *, members: Sequence[int], round_index: int, steps: int
    ) -> MeanMovement:
        """Return the mean of the members' movements, bitwise equal on all ranks.

        Parameters
        ----------
        deltas : mapping of int to tensor or None
            Movements of the members hosted here by rank, or numbers of refusals; None if the models' parameters have
            changed.
        rows : sequence of sequence of float
            Numbers to send with the messages, per rank hosted here; empty if there are none.
        members : sequence of int
            Ranks whose models count.
        round_index : int
            Index of the round, from 0.
        steps : int
            Local steps so far, by which ranks check that they are at the same step.

        Raises
        ------
        Refusal
            On every rank, if a rank has no message; its cause is this rank's own exception.
        MeanRefused
            On every rank, if a rank has no mean.
        UnevenSteps
            On every rank, if a rank has made a different number of local steps.
        """


def exact_bits(operator: Operator | Feedback | None, sizes: Sequence[int]) -> list[int] | None:
    """Return the declared lengths of messages of these sizes; None if the operator does not declare exact ones.

    Parameters
    ----------
    operator : Operator or Feedback or None
        The compressor.
    sizes : sequence of int
        Numbers of coordinates; an empty vector has an empty message.
    """
    if operator is None:
        return None
    declared = [operator.bits(d).exact if d else 0 for d in sizes]
    exact = [bits for bits in declared if bits is not None]
    return exact if len(exact) == len(declared) else None


class SendersRemember:
    """An exchange in which only senders have state."""

    @property
    def states(self) -> list[Any]:
        """An empty list, because the senders hold all state."""
        return []

    @states.setter
    def states(self, states: list[Any]) -> None:
        assert not states  # checked with the settings


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


class InTwoShots(SendersRemember):
    """Exchange in which every rank sends shards to their owners, which send the compressed means to all."""

    def __init__(self, exchange: parts.TwoShot, key: Key, transport: Transport, payload: Payload, d: int) -> None:
        first, second, m = exchange.operator, exchange.means or exchange.operator, transport.size
        self._transport, self._payload, self._keeps = transport, payload, exchange.errors
        sizes = lengths(d, m)
        self._exact, self._exact_means = exact_bits(first, sizes), exact_bits(second, sizes)
        self.senders = [TwoShot(first, second, key, rank=r, m=m, d=d, reads_own=self._keeps) for r in transport.ranks]

    def mean(
        self, deltas: Deltas, rows: Sequence[Row], *, members: Sequence[int], round_index: int, steps: int
    ) -> MeanMovement:
        """Scatter shards, average them, gather the means.

        Raises MeanRefused if the owner of a shard could not form its mean.
        """
        ranks = self._transport.ranks
        exact = self._exact if len(members) == self._transport.size else None
        outgoing, failure = encoded(ranks, self.senders, deltas, [round_index] * len(ranks))
        try:
            try:
                arrived, bits = self._transport.scatter(outgoing, position=steps, exact=exact)
            except Undeclared:  # on every rank: the declared size is wrong, so lengths are sent first from now on
                self._exact = None
                arrived, bits = self._transport.scatter(outgoing, position=steps, exact=None)
        except Refusal as refusal:
            raise refusal from failure
        means: list[Message | int] = []
        for owner, messages in zip(self.senders, arrived, strict=True):
            try:
                means.append(owner.merge(messages, members, round_index))
            except Exception as error:  # report any failure to the other ranks
                means.append(FAILED)
                failure = error
        try:
            try:
                merged, sent = self._payload.gathered(self._transport, means, rows, steps, self._exact_means)
            except Undeclared:
                self._exact_means = None
                merged, sent = self._payload.gathered(self._transport, means, rows, steps)
        except Refusal as refusal:
            raise MeanRefused(refusal.rank, failure) from failure
        owners = [merged[rank] for rank in range(self._transport.size)]
        mean = self.senders[0].mean(owners, round_index)
        decoded = self._own(outgoing, round_index) if self._keeps else {}
        errors = decoding_errors(decoded, deltas)
        return MeanMovement(mean, bits, sent, decoded, errors, tuple(message.bits for message in owners))

    def _own(self, outgoing: Sequence[Any], round_index: int) -> dict[int, torch.Tensor]:
        """Return the owners' decoded shards of the ranks hosted here, by rank."""
        hosted = zip(self._transport.ranks, self.senders, outgoing, strict=True)
        return {rank: ends.own(sent, round_index) for rank, ends, sent in hosted if sent is not None}


class InSums(SendersRemember):
    """Exchange in which every rank sends its terms by shards to their owners, which send the sums to all."""

    def __init__(self, exchange: Sum, key: Key, transport: Transport, payload: Payload, d: int) -> None:
        method, m = exchange.operator, transport.size
        self.senders = [SumEnd(method, key, rank=rank, m=m, d=d) for rank in transport.ranks]
        self._transport, self._payload = transport, payload

    def mean(
        self, deltas: Deltas, rows: Sequence[Row], *, members: Sequence[int], round_index: int, steps: int
    ) -> MeanMovement:
        """Sum the members' terms until the method has its mean."""
        ranks = self._transport.ranks
        outgoing, failure = encoded(ranks, self.senders, deltas, [round_index] * len(ranks))
        sent: Sequence[Any] = outgoing
        size, numbers = self._transport.size, dict[int, list[float]]()
        bits, mean_bits = [0] * size, [0] * size
        first = True
        while True:
            try:
                arrived, lengths = self._transport.scatter(sent, position=steps)
            except Refusal as refusal:
                raise refusal from failure
            if first:
                self._follow_sums(outgoing, round_index)
            owners, row = self._summed(arrived, members, rows, steps, first)
            numbers.update(row)
            for rank in range(size):
                bits[rank] += lengths[rank]
                mean_bits[rank] += owners[rank].bits
            for end in self.senders:
                end.exchange.receive([owners[rank] for rank in range(size)], len(members))
            if self.senders[0].exchange.over:
                means = [end.mean() for end in self.senders]
                return MeanMovement(torch.from_numpy(means[0]), bits, numbers, mean_bits=tuple(mean_bits))
            pairs = zip(self._transport.ranks, self.senders, strict=True)
            sent = [end.exchange.outgoing if rank in members else None for rank, end in pairs]
            first = False

    def _follow_sums(self, outgoing: Sequence[Any], round_index: int) -> None:
        """Let the ranks that send nothing read the sums."""
        for end, messages in zip(self.senders, outgoing, strict=True):
            if messages is None:
                end.follow(round_index)

    def _summed(
        self,
        arrived: Sequence[Mapping[int, Message]],
        members: Sequence[int],
        rows: Sequence[Row],
        steps: int,
        first: bool,
    ) -> tuple[Mapping[int, Message], dict[int, list[float]]]:
        """Return the owners' sums of a round by rank, and the numbers that travelled with those of the first."""
        failure: Exception | None = None
        sums: list[Message | int] = []
        for owner, messages in zip(self.senders, arrived, strict=True):
            try:
                sums.append(owner.exchange.merge(messages, members))
            except Exception as error:  # report any failure to the other ranks
                sums.append(FAILED)
                failure = error
        try:
            if first:
                return self._payload.gathered(self._transport, sums, rows, steps)
            return self._transport.gather(sums, position=steps), {}
        except Refusal as refusal:
            raise MeanRefused(refusal.rank, failure) from failure
