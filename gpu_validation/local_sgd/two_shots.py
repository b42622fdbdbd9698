"""Movements in two shots: every rank sends shards to their owners, which send the means of their shards to all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from operators import Key, Message
from operators.ddp.collectives import Refusal, Undeclared
from operators.exchange import TwoShot
from operators.exchange.choice import lengths

from ..distributed.transport import Transport
from . import parts
from .delta_codec import decoding_errors, encoded
from .movements import Deltas, MeanMovement, SendersRemember, exact_bits
from .payload import Payload, Row
from .refusals import FAILED, MeanRefused


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
        """Scatter shards, average them, gather the means."""
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
