"""A rank's ends where every rank sends its message to all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..exchange.channel import GATHERED
from ..exchange.ordered_mean import ordered_mean
from ..message import Message
from .layout import Layout, joined
from .parameter_end import ParameterEnd


class GatherEnds:
    """This rank's ends where every rank sends its message to all.

    Parameters
    ----------
    layout : Layout
        How gradients are compressed.
    sizes : mapping of str to int
        Entries of every parameter.
    rank : int
        This one.
    m : int
        Number of ranks.
    """

    def __init__(self, layout: Layout, sizes: Mapping[str, int], *, rank: int, m: int) -> None:
        def end(sender: int, receives: bool) -> ParameterEnd:
            return ParameterEnd(layout, sizes, stage=GATHERED, rank=sender, shard=0, receives=receives)

        self._sender, self._receivers = end(rank, False), [end(sender, True) for sender in range(m)]

    def encode(self, names: Sequence[str], parts: Sequence[torch.Tensor], step: int) -> Message:
        """Return this rank's message of a bucket.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        parts : sequence of tensor
            Their gradients, flat, float32 and finite.
        step : int
            Number of the exchange.
        """
        return self._sender.of(names).encode(joined(parts), step)

    def exact_bits(self, names: Sequence[str]) -> list[int] | None:
        """Return the lengths of all ranks' messages of a bucket, None where nobody knows them beforehand.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        """
        bits = self._sender.of(names).exact_bits
        return None if bits is None else [bits] * len(self._receivers)

    def carried_bits(self, names: Sequence[str]) -> int:
        """Return how many bits of this rank's message of a bucket do not count.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        """
        return self._sender.of(names).carried_bits

    def mean(self, messages: Sequence[Message], names: Sequence[str], step: int) -> list[torch.Tensor]:
        """Return the mean gradient of each parameter, flat, summed in rank order in float64.

        Parameters
        ----------
        messages : sequence of Message
            One of every rank, in rank order.
        names : sequence of str
            Of the bucket's parameters.
        step : int
            Number of the exchange.
        """
        if not names:
            return []
        arrived = zip(self._receivers, messages, strict=True)
        mean = ordered_mean(receiver.of(names).decode(message, step) for receiver, message in arrived)
        return list(mean.split([self._sender.sizes.get(name, 0) for name in names]))

    def kept(self) -> list[dict[str, Any]]:
        """Return what is remembered, for ``put_back``; nothing is copied."""
        return [end.states.kept() for end in (self._sender, *self._receivers)]

    def put_back(self, kept: Sequence[dict[str, Any]]) -> None:
        """Remember what ``kept`` gave.

        Parameters
        ----------
        kept : sequence of dict
            What it gave.
        """
        for end, states in zip((self._sender, *self._receivers), kept, strict=True):
            end.states.put_back(states)

    def to_dict(self) -> dict[str, Any]:
        """Return what is remembered: tensors only."""
        return {"sender": self._sender.states.to_dict(), "receivers": [r.states.to_dict() for r in self._receivers]}

    def load_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``to_dict`` was taken.

        Parameters
        ----------
        state : mapping
            What it gave.
        """
        self._sender.states.load_dict(state["sender"])
        for receiver, saved in zip(self._receivers, state["receivers"], strict=True):
            receiver.states.load_dict(saved)
