"""What carries the compressed movements of a round to their mean, whatever the exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from operators import Feedback, Message, Operator

from .payload import Row

Outgoing = Message | Sequence[Message] | int | None  # of a member; or why it has none; or it has nothing to say
Deltas = Mapping[int, torch.Tensor | int] | None  # or the number of a reason why there is none
Error = tuple[float, float, float]  # error2, norm2 and error_along of a Round


@dataclass(frozen=True)
class MeanMovement:
    """What all ranks have after an exchange.

    Parameters
    ----------
    movement : tensor, shape (d,)
        The mean.
    bits : sequence of int, bits
        Lengths of the ranks' messages, in rank order; in two shots of all shards of each.
    rows : mapping of int to list of float
        The numbers that travelled with the messages, by rank.
    decoded : mapping of int to tensor, shape (d,)
        What became of the movements of the members hosted here; empty where no errors are kept.
    errors : mapping of int to Error
        How far that is from the movements, likewise.
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
    """One exchange with the memory of all its ends hosted here.

    Attributes
    ----------
    senders : sequence
        With ``encode(delta, round_index)`` and ``state``, one for each rank hosted here.
    states : list
        What the receivers remember beside them.
    """

    @property
    def senders(self) -> Sequence[Any]:
        """One for each rank hosted here."""

    states: list[Any]

    def mean(
        self, deltas: Deltas, rows: Sequence[Row], *, members: Sequence[int], round_index: int, steps: int
    ) -> MeanMovement:
        """Return the mean of the members' movements, the same bits on all ranks.

        Parameters
        ----------
        deltas : mapping of int to tensor or None
            The movements of the members hosted here, by rank, or numbers of reasons why there is none; None if their
            models have other parameters than before.
        rows : sequence of sequence of float
            Numbers that travel with the messages, of the ranks hosted here; empty if there are none.
        members : sequence of int
            The ranks whose models count.
        round_index : int
            Number of the round, counted from 0.
        steps : int
            Local steps so far.

        Raises
        ------
        Refusal
            On every rank, if one has no message, from what this rank raised; MeanRefused if one has no mean.
        UnevenSteps
            On every rank, if one has made another number of local steps.
        """


def exact_bits(operator: Operator | Feedback | None, sizes: Sequence[int]) -> list[int] | None:
    """Return the lengths of messages where the operator declares them exactly, None where it does not.

    Parameters
    ----------
    operator : Operator or Feedback or None
        Compresses.
    sizes : sequence of int
        Entries of every vector; of none, an empty message is sent.
    """
    if operator is None:
        return None
    declared = [operator.bits(d).exact if d else 0 for d in sizes]
    exact = [bits for bits in declared if bits is not None]
    return exact if len(exact) == len(declared) else None


class SendersRemember:
    """An exchange of which nothing is remembered but by its senders."""

    @property
    def states(self) -> list[Any]:
        """An empty list, for a rank's ends are all with its sender."""
        return []

    @states.setter
    def states(self, states: list[Any]) -> None:
        assert not states  # checked with the settings
