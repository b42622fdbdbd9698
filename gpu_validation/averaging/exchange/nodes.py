"""Movements of ranks in nodes: exact means of shards inside a node, compressed exchange of them between nodes.

Every rank of a node averages one shard of the node's movements, in float64 in rank order.  Ranks with the same place in
all nodes exchange these means as nodes do, gathered or in two shots.  The ranks of a node then share the results.  A
refusal is forwarded inside the node, to all other nodes, and inside those, so that all ranks raise the same error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import torch

from operators import Key, Message
from operators.ddp.bucket import first_not_finite
from operators.ddp.collectives import Refusal
from operators.exchange.choice import lengths
from operators.exchange.nodes import FLOAT_BITS, mean_of, numbers, raw

from ...processes.step_check import UnevenSteps
from ...processes.transport import NodeLinks, Transport
from .movements import (
    CHANGED,
    FAILED,
    NOT_FINITE,
    Deltas,
    Gathered,
    InSums,
    InTwoShots,
    MeanMovement,
    MeanRefused,
    Movements,
    Payload,
    Row,
)
from .parts import Gather, Sum, TwoShot

COUNT_BITS = 64  # of a length that travels with a shard of the mean
MOVEMENT, MEAN = 0, 1  # what a rank failed to form


class InNodes:
    """Exact means inside nodes and an exchange of their shards between nodes."""

    def __init__(self, places: Mapping[int, Movements], links: NodeLinks, transport: Transport, d: int) -> None:
        self._places, self._links, self._transport, self._d = places, links, transport, d
        between = next(iter(links.between.values()))
        self._nodes, self._per_node = between.size, transport.size // between.size
        self._sizes = lengths(d, self._per_node)
        self._uneven = NOT_FINITE + d  # number of the reason, after those of entries
        self._first_forwarded = NOT_FINITE + max(self._sizes)  # after the reasons of an exchange between nodes
        self._failures: dict[int, BaseException | None] = {}  # of ranks hosted here, in this round

    @property
    def senders(self) -> list[Any]:
        """Senders between nodes of the ranks hosted here."""
        return [self._sender(*divmod(rank, self._per_node)) for rank in self._transport.ranks]

    def _sender(self, node: int, place: int) -> Any:
        return self._places[place].senders[list(self._links.between[place].ranks).index(node)]

    @property
    def states(self) -> list[Any]:
        """States of the receivers of every place hosted here."""
        return [exchange.states for exchange in self._places.values()]

    @states.setter
    def states(self, states: list[Any]) -> None:
        for exchange, of_place in zip(self._places.values(), states, strict=True):
            exchange.states = of_place

    def mean(
        self, deltas: Deltas, rows: Sequence[Row], *, members: Sequence[int], round_index: int, steps: int
    ) -> MeanMovement:
        """Average inside nodes, exchange between them, share the results inside."""
        self._failures = {}
        sums = {node: self._sums(node, inside, deltas, steps) for node, inside in self._links.inside.items()}
        outcomes = {}
        for place in self._places:
            shards = {node: of_places[place] for node, of_places in sums.items()}
            outcomes[place] = self._exchanged(place, shards, round_index, steps)
        parts = self._shared(outcomes, steps)
        of_all = dict(enumerate(self._transport.all_gather_floats(rows))) if rows else {}
        means = {place: result for place, result in outcomes.items() if isinstance(result, MeanMovement)}
        errors = {
            node * self._per_node + place: error
            for place, result in means.items()
            for node, error in result.errors.items()
        }
        bits = [part.bits[node] for node in range(self._nodes) for part in parts]
        mean_bits = tuple(part.mean_bits[node] for node in range(self._nodes) for part in parts)
        in_two = any(result.mean_bits for result in means.values())
        movement = torch.cat([part.movement for part in parts])
        return MeanMovement(movement, bits, of_all, errors=errors, mean_bits=mean_bits if in_two else ())

    # -- inside ------------------------------------------------------------------------------------------
    def _sums(self, node: int, inside: Transport, deltas: Deltas, steps: int) -> dict[int, torch.Tensor | int]:
        """Return the node's mean shard of every place hosted here, or the number of a refusal."""
        outgoing = [self._cut(deltas, node * self._per_node + place) for place in inside.ranks]
        try:
            arrived, _ = inside.scatter(outgoing, position=steps, exact=[FLOAT_BITS * size for size in self._sizes])
        except (Refusal, UnevenSteps) as refusal:
            place, reason = (refusal.rank, refusal.reason) if isinstance(refusal, Refusal) else (0, self._uneven)
            forwarded = self._first_forwarded + place * (self._uneven + 1) + reason
            return dict.fromkeys(inside.ranks, forwarded)
        ranks = range(self._per_node)
        return {
            place: mean_of([messages[rank] for rank in ranks])
            for place, messages in zip(inside.ranks, arrived, strict=True)
        }

    def _cut(self, deltas: Deltas, rank: int) -> list[Message] | int:
        """Return the shards of a rank's movement, one per place, or the number of a refusal."""
        delta = CHANGED if deltas is None else deltas[rank]
        if isinstance(delta, int):
            return delta
        entry = first_not_finite(delta)
        if entry < self._d:
            return NOT_FINITE + entry
        return [raw(part) for part in delta.split(self._sizes)]

    def _shared(self, outcomes: Mapping[int, MeanMovement | int], steps: int) -> list[MeanMovement]:
        """Return the mean of every place's shard, shared inside a node; simulated nodes all receive the same."""
        inside = next(iter(self._links.inside.values()))
        exact = [2 * self._nodes * COUNT_BITS + FLOAT_BITS * size for size in self._sizes]
        outgoing = [result if isinstance(result, int) else self._packed(result) for result in outcomes.values()]
        try:
            messages = inside.gather(outgoing, position=steps, exact=exact)
        except Refusal as refusal:
            self._raise(refusal.reason)
        return [self._opened(messages[place]) for place in range(self._per_node)]

    def _packed(self, mean: MeanMovement) -> Message:
        """Pack the message lengths of every node and a place's shard of the mean."""
        counts = torch.tensor([*mean.bits, *(mean.mean_bits or [0] * self._nodes)], dtype=torch.int64)
        shard = mean.movement.float()
        front = raw(counts.to(shard.device))
        return raw(torch.cat([front.payload, raw(shard).payload]))

    def _opened(self, message: Message) -> MeanMovement:
        """Unpack a message of ``_packed``."""
        end = 2 * self._nodes * COUNT_BITS // 8
        counts = numbers(Message(message.payload[:end], 8 * end), torch.int64).tolist()
        shard = numbers(Message(message.payload[end:], message.bits - 8 * end))
        return MeanMovement(shard, counts[: self._nodes], {}, mean_bits=tuple(counts[self._nodes :]))

    # -- between -----------------------------------------------------------------------------------------
    def _exchanged(
        self, place: int, shards: Mapping[int, torch.Tensor | int], round_index: int, steps: int
    ) -> MeanMovement | int:
        """Return the mean of a place's shard over the nodes, or the number of a refusal."""
        exchange, nodes = self._places[place], range(self._nodes)
        try:
            return exchange.mean(shards, (), members=nodes, round_index=round_index, steps=steps)
        except Refusal as refusal:
            rank, reason = self._origin(refusal, place)
            return self._refusal(MOVEMENT, rank, reason, refusal.__cause__)
        except MeanRefused as refusal:
            return self._refusal(MEAN, refusal.rank * self._per_node + place, FAILED, refusal.failure)
        except ValueError as damaged:  # a received message is invalid
            return self._refusal(MEAN, self._hosted(place), FAILED, damaged)

    def _hosted(self, place: int) -> int:
        """Return the first rank with this place that is hosted here."""
        return next(rank for rank in self._transport.ranks if rank % self._per_node == place)

    def _origin(self, refusal: Refusal, place: int) -> tuple[int, int]:
        """Return the rank that has refused and its reason."""
        if refusal.reason >= self._first_forwarded:
            refusing, reason = divmod(refusal.reason - self._first_forwarded, self._uneven + 1)
            return refusal.rank * self._per_node + refusing, reason
        return refusal.rank * self._per_node + place, refusal.reason  # a mean of finite movements is finite

    # -- refusals ----------------------------------------------------------------------------------------
    def _refusal(self, what: int, rank: int, reason: int, failure: BaseException | None) -> int:
        """Return the number of a refusal for the node's other places, and store the exception of a rank hosted here."""
        if rank in self._transport.ranks:
            self._failures[rank] = failure
        return (rank * (self._uneven + 1) + reason) * 2 + what

    def _raise(self, number: int) -> NoReturn:
        """Raise the error that a number stands for, as an exchange without nodes does."""
        rest, what = divmod(number, 2)
        rank, reason = divmod(rest, self._uneven + 1)
        failure = self._failures.get(rank)
        if reason == self._uneven:
            last = rank + self._per_node - 1
            raise UnevenSteps(f"the ranks {rank} to {last} have made unequal numbers of local steps")
        if what == MEAN:
            raise MeanRefused(rank, failure if isinstance(failure, Exception) else None) from failure
        raise Refusal(rank, reason) from failure


def movements_of(
    exchange: Gather | TwoShot | Sum,
    key: Key,
    transport: Transport,
    payload: Payload,
    d: int,
    ranks_per_node: int = 1,
) -> Movements:
    """Return the exchange of d coordinates, between nodes where ranks form nodes; ``key`` is the one of all ranks.

    Raises
    ------
    ValueError
        For fewer coordinates than ranks per node.
    """
    if ranks_per_node > 1:
        if d < ranks_per_node:
            raise ValueError(
                f"ranks_per_node must be at most the number of averaged parameters, {d}; got {ranks_per_node}: "
                "reduce it, for each rank of a node exchanges a shard"
            )
        links, sizes = transport.in_nodes(ranks_per_node), lengths(d, ranks_per_node)
        places = {  # every shard has its own random streams
            place: movements_of(exchange, key.fold_in(place), between, Payload(0, between.size), sizes[place])
            for place, between in links.between.items()
        }
        return InNodes(places, links, transport, d)
    if isinstance(exchange, Gather):
        return Gathered(exchange, key, transport, payload, d)
    if isinstance(exchange, TwoShot):
        return InTwoShots(exchange, key, transport, payload, d)
    return InSums(exchange, key, transport, payload, d)
