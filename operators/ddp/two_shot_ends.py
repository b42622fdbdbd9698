"""A rank's ends of an exchange of gradients in two shots.

A shard is cut out of every parameter, so that an entry has the same owner whatever bucket it travels in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..exchange.channel import FROM_OWNER, TO_OWNER
from ..exchange.shards import lengths
from ..exchange.two_shot import from_owners, merge, to_owners
from ..message import Message
from .layout import Layout, joined
from .parameter_end import BucketEnd, ParameterEnd


class TwoShotEnds:
    """This rank's ends of an exchange in two shots.

    Parameters
    ----------
    first : Layout
        How shards are compressed for their owners.
    second : Layout
        How their means are compressed for all.
    sizes : mapping of str to int
        Entries of every parameter.
    rank : int
        This one.
    m : int
        Number of ranks.
    """

    def __init__(self, first: Layout, second: Layout, sizes: Mapping[str, int], *, rank: int, m: int) -> None:
        cut = {name: lengths(size, m) for name, size in sizes.items()}

        def end(stage: int, sender: int, owner: int, receives: bool) -> ParameterEnd:
            shard = {name: pieces[owner] for name, pieces in cut.items()}
            layout = first if stage == TO_OWNER else second
            return ParameterEnd(layout, shard, stage=stage, rank=sender, shard=owner, receives=receives)

        self._cut, self._m = cut, m
        self._ends = {
            "senders": [end(TO_OWNER, rank, owner, False) for owner in range(m)],
            "receivers": [end(TO_OWNER, sender, rank, True) for sender in range(m)],
            "owner": [end(FROM_OWNER, rank, rank, False)],
            "means": [end(FROM_OWNER, owner, owner, True) for owner in range(m)],
        }

    def encode(self, names: Sequence[str], parts: Sequence[torch.Tensor], step: int) -> list[Message]:
        """Return this rank's messages of a bucket, one for every owner.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        parts : sequence of tensor
            Their gradients, flat, float32 and finite.
        step : int
            Number of the exchange.
        """
        pieces = [part.split(self._cut[name]) for name, part in zip(names, parts, strict=True)]
        laid = [piece[owner] for owner in range(self._m) for piece in pieces]
        return to_owners(self._of("senders", names), parts[0] if len(parts) == 1 else joined(laid), step)

    def exact_bits(self, names: Sequence[str], kind: str = "senders") -> list[int] | None:
        """Return the lengths of a bucket's messages by owner, None where nobody knows them beforehand.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        kind : {"senders", "means"}, optional
            Which shot.
        """
        bits = [end.exact_bits for end in self._of(kind, names)]
        exact = [length for length in bits if length is not None]
        return exact if len(exact) == len(bits) else None

    def carried_bits(self, names: Sequence[str], kind: str = "senders") -> int:
        """Return how many bits of this rank's messages of a bucket do not count.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        kind : {"senders", "owner"}, optional
            Of its messages to the owners, or of that with the mean of its shard.
        """
        return sum(end.carried_bits for end in self._of(kind, names))

    def merge(self, messages: Sequence[Message], names: Sequence[str], step: int) -> Message:
        """Return the message with the mean of this rank's shard, for all.

        Parameters
        ----------
        messages : sequence of Message
            That have come for this rank, in rank order.
        names : sequence of str
            Of the bucket's parameters.
        step : int
            Number of the exchange.
        """
        (out,) = self._of("owner", names)
        return merge(self._of("receivers", names), out, dict(enumerate(messages)), range(self._m), step)

    def mean(self, messages: Sequence[Message], names: Sequence[str], step: int) -> list[torch.Tensor]:
        """Return the mean gradient of each parameter, flat, as the owners have encoded it.

        Parameters
        ----------
        messages : sequence of Message
            Of the owners, in rank order.
        names : sequence of str
            Of the bucket's parameters.
        step : int
            Number of the exchange.
        """
        x = from_owners(self._of("means", names), messages, step)
        if len(names) == 1:
            return [x]
        pieces = x.split([self._cut[name][owner] for owner in range(self._m) for name in names]) if names else ()
        return [torch.cat(list(pieces[i :: len(names)])) for i in range(len(names))]

    def kept(self) -> list[dict[str, Any]]:
        """Return what is remembered, for ``put_back``; nothing is copied."""
        return [end.states.kept() for ends in self._ends.values() for end in ends]

    def put_back(self, kept: Sequence[dict[str, Any]]) -> None:
        """Remember what ``kept`` gave.

        Parameters
        ----------
        kept : sequence of dict
            What it gave.
        """
        for end, states in zip((end for ends in self._ends.values() for end in ends), kept, strict=True):
            end.states.put_back(states)

    def to_dict(self) -> dict[str, Any]:
        """Return what is remembered: tensors only."""
        return {kind: [end.states.to_dict() for end in ends] for kind, ends in self._ends.items()}

    def load_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``to_dict`` was taken.

        Parameters
        ----------
        state : mapping
            What it gave.
        """
        for kind, ends in self._ends.items():
            for end, saved in zip(ends, state[kind], strict=True):
                end.states.load_dict(saved)

    def _of(self, kind: str, names: Sequence[str]) -> list[BucketEnd]:
        return [end.of(names) for end in self._ends[kind]]
