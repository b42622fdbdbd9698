"""Interface of the exchanges that average compressed movements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from operators import Feedback, Message, Operator

from .payload import Row

Outgoing = Message | Sequence[Message] | int | None  # a member's message, the number of a refusal, or not a member
Deltas = Mapping[int, torch.Tensor | int] | None  # movements by rank, or numbers of refusals
Error = tuple[float, float, float]  # error2, norm2 and error_along of a Round


@dataclass(frozen=True)
class MeanMovement:
    """Result of an exchange, the same on all ranks except ``decoded`` and ``errors``.

    Parameters
    ----------
    movement : tensor, shape (d,)
        Mean of the movements.
    bits : sequence of int, bits
        Lengths of the ranks' messages in rank order; in two shots, of all shards of each rank.
    rows : mapping of int to list of float
        Numbers that travelled with the messages, by rank.
    decoded : mapping of int to tensor, shape (d,)
        Decoded movements of the members hosted here; empty where errors are not measured.
    errors : mapping of int to Error
        Errors of the decoded movements.
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
    """An exchange of movements with the state of all its ends hosted here.

    Attributes
    ----------
    senders : sequence
        One per rank hosted here, with ``encode(delta, round_index)`` and ``state``.
    states : list
        States of the receivers.
    """

    @property
    def senders(self) -> Sequence[Any]:
        """Senders of the ranks hosted here."""

    states: list[Any]

    def mean(
        self, deltas: Deltas, rows: Sequence[Row], *, members: Sequence[int], round_index: int, steps: int
    ) -> MeanMovement:
        """Return the mean of the members' movements, bitwise equal on all ranks.

        Parameters
        ----------
        deltas : mapping of int to tensor or None
            Movements of the members hosted here by rank, or numbers of refusals; None if the models' parameters have
            changed.
        rows : sequence of sequence of float
            Numbers to send with the messages, per rank hosted here; empty if there are none.
        members : sequence of int
            Ranks whose models count.
        round_index : int
            Index of the round, from 0.
        steps : int
            Local steps so far, by which ranks check that they are at the same step.

        Raises
        ------
        Refusal
            On every rank, if a rank has no message; its cause is this rank's own exception.
        MeanRefused
            On every rank, if a rank has no mean.
        UnevenSteps
            On every rank, if a rank has made a different number of local steps.
        """


def exact_bits(operator: Operator | Feedback | None, sizes: Sequence[int]) -> list[int] | None:
    """Return the declared lengths of messages of these sizes; None if the operator does not declare exact ones.

    Parameters
    ----------
    operator : Operator or Feedback or None
        The compressor.
    sizes : sequence of int
        Numbers of coordinates; an empty vector has an empty message.
    """
    if operator is None:
        return None
    declared = [operator.bits(d).exact if d else 0 for d in sizes]
    exact = [bits for bits in declared if bits is not None]
    return exact if len(exact) == len(declared) else None


class SendersRemember:
    """An exchange in which only senders have state."""

    @property
    def states(self) -> list[Any]:
        """An empty list, because the senders hold all state."""
        return []

    @states.setter
    def states(self, states: list[Any]) -> None:
        assert not states  # checked with the settings
