"""The exchange of a bucket, phase after phase: at every ``yield`` its messages are on their way.

All ranks go through the phases of all buckets in the same order, so that their collectives meet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import torch

from ..inputs import canonical_tensor
from ..message import Message
from .collectives import Counters, Gather, Refusal, Scatter, Undeclared
from .ends import GatherEnds, TwoShotEnds

log = logging.getLogger("operators")

Means = torch.futures.Future[list[torch.Tensor]]
Phases = Generator[None, None, Means]
Ends = GatherEnds | TwoShotEnds
COMPRESS, MERGE, READ = 0, 1, 2  # what a rank could not do
WHAT = "compress its gradient", "form the mean of its shard", "read what the other nodes sent for its shard"
Sent = TypeVar("Sent", Gather, Scatter)


class RankFailed(ValueError):  # noqa: N818  on all ranks, most of which have not
    """Failure that all ranks of a group know: a rank could not continue.

    Parameters
    ----------
    words : str
        The sentence.
    rank : int
        The rank in the group.
    stage : int
        ``COMPRESS``, ``MERGE`` or ``READ``.
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
            ``COMPRESS``, ``MERGE`` or ``READ``.
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
    ends : GatherEnds or TwoShotEnds
        This rank's.
    link : Link
        To the other ranks.
    """
    return gathered(bucket, ends, link) if isinstance(ends, GatherEnds) else two_shots(bucket, ends, link)


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

    def exact(self, stage: int, declared: Sequence[int] | None) -> Sequence[int] | None:
        """Return the declared lengths, None where they are not to be believed.

        Parameters
        ----------
        stage : int
            ``COMPRESS`` or ``MERGE``.
        declared : sequence of int or None, bits
            As operators declare them.
        """
        return None if stage in self.lengths_first else declared

    def send(self, stage: int, first: Sent, again: Callable[[], Sent]) -> Sent:
        """Send, and again with the lengths first if one is not as declared; every rank of the group does the same.

        Parameters
        ----------
        stage : int
            ``COMPRESS`` or ``MERGE``.
        first : Gather or Scatter
            What has been begun.
        again : callable
            Begins the same without declared lengths.

        Raises
        ------
        Refusal
            On every rank, if one has nothing to send.
        """
        try:
            first.send()
            return first
        except Undeclared as false:
            log.warning("%s; until then lengths travel first", false)
        self.lengths_first.add(stage)
        self.counters.count_refused(first)
        second = again()
        second.send()
        return second


def gathered(bucket: Exchanged, ends: GatherEnds, link: Link) -> Phases:
    """Send this rank's message to all; returns the means to come of the parameters.

    Parameters
    ----------
    bucket : Exchanged
        What is exchanged.
    ends : GatherEnds
        This rank's.
    link : Link
        To the other ranks.

    Raises
    ------
    ValueError
        On every rank, if one has no message.
    """
    outgoing, failure = _encoded(bucket, ends)
    assert not isinstance(outgoing, list)
    exact = link.exact(COMPRESS, ends.exact_bits(bucket.names))
    gather = Gather(outgoing, group=link.group, device=link.device, exact=exact)
    yield
    try:
        gather = link.send(COMPRESS, gather, lambda: Gather(outgoing, group=link.group, device=link.device))
    except Refusal as refusal:
        raise RankFailed(bucket.words(refusal), refusal.rank, COMPRESS) from failure
    return _received(gather, bucket, ends, link, ends.carried_bits(bucket.names))


def two_shots(bucket: Exchanged, ends: TwoShotEnds, link: Link) -> Phases:
    """Send shards to their owners, and the compressed means of theirs to all; returns the means to come.

    Parameters
    ----------
    bucket : Exchanged
        What is exchanged.
    ends : TwoShotEnds
        This rank's.
    link : Link
        To the other ranks.

    Raises
    ------
    ValueError
        On every rank, if one has no message, or cannot form the mean of its shard.
    """
    outgoing, failure = _encoded(bucket, ends)
    assert not isinstance(outgoing, Message)
    settings: dict[str, Any] = {"note": bucket.step, "group": link.group, "device": link.device}
    scatter = Scatter(outgoing, exact=link.exact(COMPRESS, ends.exact_bits(bucket.names)), **settings)
    yield
    try:
        scatter = link.send(COMPRESS, scatter, lambda: Scatter(outgoing, **settings))
    except Refusal as refusal:
        raise RankFailed(bucket.words(refusal), refusal.rank, COMPRESS) from failure
    yield
    merged, failure = _merged(scatter.wait(), bucket, ends)
    link.counters.count(scatter, carried_bits=ends.carried_bits(bucket.names))
    exact = link.exact(MERGE, ends.exact_bits(bucket.names, "means"))
    gather = Gather(merged, group=link.group, device=link.device, exact=exact)
    yield
    try:
        gather = link.send(MERGE, gather, lambda: Gather(merged, group=link.group, device=link.device))
    except Refusal as refusal:
        why = f": {failure}" if refusal.rank == gather.rank else "; its error says why"
        failed = RankFailed.of(bucket.rank_of(refusal.rank), MERGE, bucket.step, why)
        failed.rank = refusal.rank
        raise failed from failure
    return _received(gather, bucket, ends, link, ends.carried_bits(bucket.names, "owner"))


def _encoded(bucket: Exchanged, ends: Ends) -> tuple[Message | list[Message] | int, Exception | None]:
    """Return this rank's messages of a bucket, or the number of the first entry that is not finite, and its error."""
    try:
        x = bucket.flat()
        finite = canonical_tensor(x) if x.numel() else x
        return ends.encode(bucket.names, finite.split(bucket.sizes) if bucket.sizes else (), bucket.step), None
    except Exception as error:  # the other ranks must hear of it, whatever it is
        return bucket.reason(), error


def _merged(
    messages: Sequence[Message], bucket: Exchanged, ends: TwoShotEnds
) -> tuple[Message | int, Exception | None]:
    """Return the message with the mean of this rank's shard; or a refusal, and its error."""
    try:
        return ends.merge(messages, bucket.names, bucket.step), None
    except Exception as error:  # the other ranks must hear of it, whatever it is
        return 0, error


def _received(gather: Gather, bucket: Exchanged, ends: Ends, link: Link, carried_bits: int) -> Means:
    """Count what a gather has sent; its messages are decoded in the background."""
    link.counters.count(gather, carried_bits=carried_bits)
    return gather.then(lambda messages: ends.mean(messages, bucket.names, bucket.step))
