"""Groups of ranks on the same machine: exact sums inside a node, compressed exchanges between nodes.

Every rank of a node sums one shard of the node's gradients, in binary32; the ranks with the same place in their nodes
exchange the means of that shard, compressed, as nodes; then the ranks of a node give each other what has come.  So
compressed bits alone cross the slow links, and a node of p ranks sends as much as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from ..exchange.choice import lengths
from ..exchange.nodes import FLOAT_BITS, mean_of, numbers, raw
from ..message import Message
from .bucket import Bucket, first_not_finite, joined
from .collectives import Counters, Gather, Refusal, Scatter
from .failures import Spare, is_lost, spare_group
from .phases import READ, WHAT, Ends, Link, Phases, RankFailed, exchanged

STAGES = len(WHAT)


@dataclass(frozen=True)
class Nodes:
    """The groups of one rank.

    Parameters
    ----------
    inside : ProcessGroup
        The ranks of its node.
    between : ProcessGroup
        The ranks with its place, of all nodes.
    place : int
        Its place in the node.
    ranks : int
        Ranks of a node.
    spares : (Spare, Spare)
        Entries of the two groups.
    """

    inside: Any
    between: Any
    place: int
    ranks: int
    spares: tuple[Spare, Spare]

    @classmethod
    def of(cls, group: Any, ranks_per_node: int, user: object, *, device: torch.device) -> Nodes:
        """Return the groups of this rank, where consecutive ranks are on the same node, as torchrun numbers them.

        Parameters
        ----------
        group : ProcessGroup
            All ranks; each must call it.
        ranks_per_node : int
            Ranks of a node.
        user : object
            The groups are reused after it has been deleted.
        device : device
            Device that the back end needs.
        """
        rank, size = dist.get_rank(group), dist.get_world_size(group)
        node, place = divmod(rank, ranks_per_node)
        members = {"inside": range(node * ranks_per_node, (node + 1) * ranks_per_node)}
        members["between"] = range(place, size, ranks_per_node)
        (inside, spare), (between, other) = (
            spare_group(group, user, device=device, ranks=ranks, use=f"{use} nodes of {ranks_per_node}")
            for use, ranks in members.items()
        )
        return cls(inside, between, place, ranks_per_node, (spare, other))


class NodeShard:
    """What a rank exchanges for its node: the node's mean of its shard of every parameter, or a refusal.

    Parameters
    ----------
    bucket : Bucket
        Of this rank.
    nodes : Nodes
        Its groups.
    """

    def __init__(self, bucket: Bucket, nodes: Nodes) -> None:
        self.step, self.names, self._bucket, self._nodes = bucket.step, bucket.names, bucket, nodes
        self._cut = [lengths(size, nodes.ranks) for size in bucket.sizes]
        self.sizes = [cut[nodes.place] for cut in self._cut]
        self._entries = sum(bucket.sizes)
        self._mean: torch.Tensor | None = None
        self._refusal: Refusal | None = None

    @property
    def exact(self) -> list[int]:
        """The lengths of what the ranks of the node send each other, in bits."""
        return [FLOAT_BITS * sum(cut[place] for cut in self._cut) for place in range(self._nodes.ranks)]

    def outgoing(self) -> list[Message] | int:
        """Return the gradients by shards, one message for every rank of the node; or the first entry not finite."""
        x = self._bucket.flat()
        entry = first_not_finite(x)
        if entry < x.numel():
            return entry
        pieces = [part.split(cut) for part, cut in zip(x.split(self._bucket.sizes), self._cut, strict=True)]
        return [raw(joined([piece[place] for piece in pieces])) for place in range(self._nodes.ranks)]

    def take(self, messages: Sequence[Message]) -> None:
        """Sum what the ranks of the node have sent, in rank order in float64.

        Parameters
        ----------
        messages : sequence of Message
            In their order.
        """
        self._mean = mean_of(messages)

    def refuse(self, refusal: Refusal) -> None:
        """Let the other nodes hear that a rank of this one had nothing to send.

        Parameters
        ----------
        refusal : Refusal
            Of that rank, counted in its node.
        """
        self._refusal = refusal

    def flat(self) -> torch.Tensor:
        """Return the node's mean, float32; raises the refusal if there is one."""
        if self._mean is None:
            assert self._refusal is not None  # one or the other has come
            raise self._refusal
        return self._mean

    def reason(self) -> int:
        """Return place and entry of the refusal as one number; the next one if this rank alone has failed."""
        if self._refusal is None:
            return self._nodes.ranks * (self._entries + 1)
        return self._refusal.rank * (self._entries + 1) + self._refusal.reason

    def words(self, refusal: Refusal) -> str:
        """Say in one sentence what a node's refusal means.

        Parameters
        ----------
        refusal : Refusal
            Of a node.
        """
        place, entry = divmod(refusal.reason, self._entries + 1)
        if place == self._nodes.ranks:
            place, entry = self._nodes.place, self._entries
        return self._bucket.words(Refusal(refusal.rank * self._nodes.ranks + place, entry))

    def rank_of(self, member: int) -> int:
        """Return the rank with this rank's place in a node.

        Parameters
        ----------
        member : int
            The node.
        """
        return member * self._nodes.ranks + self._nodes.place

    def whole(self, messages: Sequence[Message]) -> list[torch.Tensor]:
        """Return the mean of every parameter from the shards of the node's ranks.

        Parameters
        ----------
        messages : sequence of Message
            In their order.
        """
        shards = [numbers(message).split([cut[place] for cut in self._cut]) for place, message in enumerate(messages)]
        return [joined([shard[i] for shard in shards]) for i in range(len(self.names))]


def in_nodes(bucket: Bucket, ends: Ends, link: Link, nodes: Nodes, inside: Counters) -> Phases:
    """Sum inside the node, exchange between nodes, share the result inside; returns the means to come.

    Parameters
    ----------
    bucket : Bucket
        What is exchanged.
    ends : GatherEnds or TwoShotEnds
        Of this rank's node, for its shard.
    link : Link
        To the other nodes.
    nodes : Nodes
        The groups of this rank.
    inside : Counters
        What counts the bytes that stay inside the node.

    Raises
    ------
    ValueError
        On every rank, if one cannot go on.
    """
    shard = NodeShard(bucket, nodes)
    scatter = Scatter(shard.outgoing(), note=bucket.step, group=nodes.inside, device=link.device, exact=shard.exact)
    yield
    try:
        scatter.send()
        shard.take(scatter.wait())
        inside.count(scatter, coded=False)
    except Refusal as refusal:
        shard.refuse(refusal)
    outgoing: Message | int
    failed: Exception | None = None
    try:
        means = yield from exchanged(shard, ends, link)
        yield
        outgoing = raw(joined([mean.float() for mean in means.wait()]))
    except RankFailed as failure:
        outgoing, failed = STAGES * failure.rank + failure.stage, failure
    except RuntimeError as damaged:  # the other ranks of the node must hear that it cannot be read
        if is_lost(damaged):
            raise
        node = dist.get_rank(link.group)
        outgoing = STAGES * node + READ
        failed = RankFailed.of(shard.rank_of(node), READ, bucket.step, f": {damaged}")
        failed.__cause__ = damaged
    gather = Gather(outgoing, group=nodes.inside, device=link.device, exact=shard.exact)
    yield
    try:
        gather.send()
    except Refusal as refusal:
        if failed is not None:
            raise failed from failed.__cause__
        node, stage = divmod(refusal.reason, STAGES)
        raise RankFailed.of(node * nodes.ranks + refusal.rank, stage, bucket.step) from refusal
    inside.count(gather, coded=False)
    return gather.then(shard.whole)
