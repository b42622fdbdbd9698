"""The exchange of a bucket, phase after phase: at every ``yield`` its messages are on their way.

All ranks go through the phases of all buckets in the same order, so that their collectives meet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

import torch
import torch.distributed as dist

from ..inputs import canonical_tensor
from ..message import Message
from .collectives import Counters, Gather, Refusal, Scatter, Transfer, Undeclared
from .ends import GatherEnds, SumEnds, TwoShotEnds

log = logging.getLogger("operators")

Means = torch.futures.Future[list[torch.Tensor]]
Phases = Generator[None, None, Means]
Ends = GatherEnds | TwoShotEnds | SumEnds
COMPRESS, MERGE, READ, ADD = 0, 1, 2, 3  # what a rank could not do
WHAT = (
    "compress its gradient",
    "form the mean of its shard",
    "read what the other nodes sent for its shard",
    "form the sum of its shard",
)
T = TypeVar("T")
Sent = TypeVar("Sent", bound=Transfer)


class RankFailed(ValueError):  # noqa: N818  on all ranks, most of which have not
    """Failure that all ranks of a group know: a rank could not continue.

    Parameters
    ----------
    words : str
        The sentence.
    rank : int
        The rank in the group.
    stage : int
        ``COMPRESS``, ``MERGE``, ``READ`` or ``ADD``.
    """

    def __init__(self, words: str, rank: int, stage: int) -> None:
        super().__init__(words)
        self.rank, self.stage = rank, stage

    @classmethod
    def of(cls, rank: int, stage: int, step: int, why: str = "; its error says why") -> RankFailed:
        """Return the sentence for a rank whose reason has no words of its own.

        Parameters
        ----------
        rank : int
            As said.
        stage : int
            ``COMPRESS``, ``MERGE``, ``READ`` or ``ADD``.
        step : int
            Number of the exchange.
        why : str, optional
            How the sentence ends.
        """
        return cls(f"rank {rank} could not {WHAT[stage]} at step {step}{why}", rank, stage)


class Exchanged(Protocol):
    """What goes through the phases: a bucket, or a node's shard of one."""

    step: int

    @property
    def names(self) -> list[str]:
        """Names of the parameters."""

    @property
    def sizes(self) -> list[int]:
        """Entries of each."""

    def flat(self) -> torch.Tensor:
        """Return the entries one after the other, float32."""

    def reason(self) -> int:
        """Return a number for why there is nothing to send."""

    def words(self, refusal: Refusal) -> str:
        """Say it in one sentence."""

    def rank_of(self, member: int) -> int:
        """Return the rank that is called so in words."""


def exchanged(bucket: Exchanged, ends: Ends, link: Link) -> Phases:
    """Return the phases of the exchange that the ends are for.

    Parameters
    ----------
    bucket : Exchanged
        What is exchanged.
    ends : GatherEnds or TwoShotEnds or SumEnds
        This rank's.
    link : Link
        To the other ranks.

    Raises
    ------
    RankFailed
        On every rank, if one has no message, or cannot merge those of its shard.
    """
    if isinstance(ends, SumEnds):
        return _sums(bucket, ends, link)
    return _gathered(bucket, ends, link) if isinstance(ends, GatherEnds) else _two_shots(bucket, ends, link)


@dataclass(frozen=True)
class Link:
    """What the collectives of a hook have in common.

    Parameters
    ----------
    group : ProcessGroup
        The ranks that exchange.
    device : device
        Where the back end needs its tensors.
    counters : Counters
        What counts the bytes.
    lengths_first : set of int, optional
        Stages at which a declared length has turned out to be false: lengths travel first from then on.
    """

    group: Any
    device: torch.device
    counters: Counters
    lengths_first: set[int] = field(default_factory=set)

    def transfer(
        self, stage: int, make: Callable[..., Sent], declared: Sequence[int] | None
    ) -> Generator[None, None, Sent]:
        """Return what has been sent, once again with the lengths first if one is not as declared, as on every rank.

        Parameters
        ----------
        stage : int
            ``COMPRESS``, ``MERGE`` or ``ADD``.
        make : callable
            Makes a Gather or a Scatter from ``exact``, ``group`` and ``device``.
        declared : sequence of int or None, bits
            Lengths as operators declare them.

        Raises
        ------
        Refusal
            On every rank, if one has nothing to send.
        """
        make = partial(make, group=self.group, device=self.device)
        first = make(exact=None if stage in self.lengths_first else declared)
        yield
        try:
            first.send()
            return first
        except Undeclared as false:
            log.warning("%s; until then lengths travel first", false)
        self.lengths_first.add(stage)
        self.counters.count_refused(first)
        second = make()
        second.send()
        return second


def _gathered(bucket: Exchanged, ends: GatherEnds, link: Link) -> Phases:
    """Send this rank's message to all; return the means to come of the parameters."""
    outgoing, failure = _encoded(bucket, ends.encode)
    try:
        gather = yield from link.transfer(COMPRESS, partial(Gather, outgoing), ends.exact_bits(bucket.names))
    except Refusal as refusal:
        raise RankFailed(bucket.words(refusal), refusal.rank, COMPRESS) from failure
    return _received(gather, bucket, ends, link, ends.carried_bits(bucket.names))


def _two_shots(bucket: Exchanged, ends: TwoShotEnds, link: Link) -> Phases:
    """Send shards to their owners, and the compressed means of theirs to all; return the means to come."""
    outgoing, failure = _encoded(bucket, ends.encode)
    names = bucket.names
    gather = yield from _over_owners(
        bucket,
        link,
        outgoing,
        failure,
        lambda messages: ends.merge(messages, names, bucket.step),
        MERGE,
        declared=(ends.exact_bits(names), ends.exact_bits(names, "means")),
        carried_bits=ends.carried_bits(names),
    )
    return _received(gather, bucket, ends, link, ends.carried_bits(names, "owner"))


def _sums(bucket: Exchanged, ends: SumEnds, link: Link) -> Phases:
    """Add up this rank's terms over owners, round after round; return the means, which are there."""
    begun, failure = _encoded(bucket, ends.begin)
    exchange: Any = begun  # or a number: then this rank refuses in the first round
    yield  # a bucket without entries has no rounds
    while isinstance(begun, int) or not begun.over:
        outgoing = begun if isinstance(begun, int) else begun.outgoing
        gather = yield from _over_owners(bucket, link, outgoing, failure, partial(ends.merge, exchange), ADD)
        yield
        exchange.receive(gather.wait(), gather.size)
        link.counters.count(gather, coded=False)
    means: Means = torch.futures.Future()
    means.set_result(ends.means(exchange, bucket.names))
    return means


def _over_owners(
    bucket: Exchanged,
    link: Link,
    outgoing: Sequence[Message] | int,
    failure: Exception | None,
    merge: Callable[[Sequence[Message]], Message],
    stage: int,
    *,
    declared: tuple[Sequence[int] | None, Sequence[int] | None] = (None, None),
    carried_bits: int = 0,
) -> Generator[None, None, Gather]:
    """Send messages to the owners of shards, and what they make of them to all."""
    try:
        scatter = yield from link.transfer(COMPRESS, partial(Scatter, outgoing, note=bucket.step), declared[0])
    except Refusal as refusal:
        raise RankFailed(bucket.words(refusal), refusal.rank, COMPRESS) from failure
    yield
    merged: Message | int = 0
    try:
        merged = merge(scatter.wait())
    except Exception as error:  # report any failure to the other ranks
        failure = error
    link.counters.count(scatter, carried_bits=carried_bits)
    try:
        return (yield from link.transfer(stage, partial(Gather, merged), declared[1]))
    except Refusal as refusal:
        why = f": {failure}" if refusal.rank == dist.get_rank(link.group) else "; its error says why"
        failed = RankFailed.of(bucket.rank_of(refusal.rank), stage, bucket.step, why)
        failed.rank = refusal.rank
        raise failed from failure


def _encoded(
    bucket: Exchanged, encode: Callable[[Sequence[str], Sequence[torch.Tensor], int], T]
) -> tuple[T | int, Exception | None]:
    """Return what this rank makes of a bucket, or the number of the first entry that is not finite, and its error."""
    try:
        x = bucket.flat()
        finite = canonical_tensor(x) if x.numel() else x
        return encode(bucket.names, finite.split(bucket.sizes) if bucket.sizes else (), bucket.step), None
    except Exception as error:  # report any failure to the other ranks
        return bucket.reason(), error


def _received(
    gather: Gather, bucket: Exchanged, ends: GatherEnds | TwoShotEnds, link: Link, carried_bits: int
) -> Means:
    """Count what a gather has sent; its messages are decoded in the background."""
    link.counters.count(gather, carried_bits=carried_bits)
    return gather.then(lambda messages: ends.mean(messages, bucket.names, bucket.step))
