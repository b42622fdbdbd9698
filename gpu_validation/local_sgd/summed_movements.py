"""Movements averaged by a Summed: owners of shards sum the messages, round after round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from operators import Key, Message
from operators.ddp.collectives import Refusal
from operators.summed import SumEnd

from ..distributed.transport import Transport
from .delta_codec import encoded
from .movements import Deltas, MeanMovement, SendersRemember
from .parts import Sum
from .payload import Payload, Row
from .refusals import FAILED, MeanRefused


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
                self._follow(outgoing, round_index)
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

    def _follow(self, outgoing: Sequence[Any], round_index: int) -> None:
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
