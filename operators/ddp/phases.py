"""The exchange of a bucket, phase after phase: at every ``yield`` its messages are on their way.

All ranks go through the phases of all buckets in the same order, so that their collectives meet.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..message import Message
from ..operator import canonical_tensor
from .bucket import Bucket, first_not_finite
from .counters import Counters
from .gather import Gather, Refusal
from .gather_ends import GatherEnds
from .scatter import Scatter
from .two_shot_ends import TwoShotEnds

Means = torch.futures.Future[list[torch.Tensor]]
Phases = Generator[None, None, Means]


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
    """

    group: Any
    device: torch.device
    counters: Counters


def gathered(bucket: Bucket, ends: GatherEnds, link: Link) -> Phases:
    """Send this rank's message to all; returns the means to come of the parameters.

    Parameters
    ----------
    bucket : Bucket
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
    gather = Gather(outgoing, group=link.group, device=link.device, exact=ends.exact_bits(bucket.names))
    yield
    try:
        gather.send()
    except Refusal as refusal:
        raise ValueError(bucket.words(refusal)) from failure
    return _received(gather, bucket, ends, link)


def two_shots(bucket: Bucket, ends: TwoShotEnds, link: Link) -> Phases:
    """Send shards to their owners, and the compressed means of theirs to all; returns the means to come.

    Parameters
    ----------
    bucket : Bucket
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
    exact = ends.exact_bits(bucket.names)
    scatter = Scatter(outgoing, note=bucket.step, group=link.group, device=link.device, exact=exact)
    yield
    try:
        scatter.send()
    except Refusal as refusal:
        raise ValueError(bucket.words(refusal)) from failure
    yield
    merged, failure = _merged(scatter.wait(), bucket, ends)
    link.counters.count_scatter(scatter)
    exact = ends.exact_bits(bucket.names, "means")
    gather = Gather(merged, group=link.group, device=link.device, exact=exact)
    yield
    try:
        gather.send()
    except Refusal as refusal:
        why = f": {failure}" if refusal.rank == gather.rank else "; its error says why"
        raise ValueError(
            f"rank {refusal.rank} could not form the mean of its shard at step {bucket.step}{why}"
        ) from failure
    return _received(gather, bucket, ends, link)


def _encoded(bucket: Bucket, ends: GatherEnds | TwoShotEnds) -> tuple[Message | list[Message] | int, Exception | None]:
    """Return this rank's messages of a bucket, or the number of the first entry that is not finite, and its error."""
    x = bucket.flat()
    try:
        parts = canonical_tensor(x).split(bucket.sizes) if bucket.sizes else ()
        return ends.encode(bucket.names, parts, bucket.step), None
    except Exception as error:  # the other ranks must hear of it, whatever it is
        return first_not_finite(x), error


def _merged(messages: Sequence[Message], bucket: Bucket, ends: TwoShotEnds) -> tuple[Message | int, Exception | None]:
    """Return the message with the mean of this rank's shard; or a refusal, and its error."""
    try:
        return ends.merge(messages, bucket.names, bucket.step), None
    except Exception as error:  # the other ranks must hear of it, whatever it is
        return 0, error


def _received(gather: Gather, bucket: Bucket, ends: GatherEnds | TwoShotEnds, link: Link) -> Means:
    """Count what a gather has sent; its messages are decoded in the background."""
    link.counters.count_gather(gather)
    return gather.then(lambda messages: ends.mean(messages, bucket.names, bucket.step))
