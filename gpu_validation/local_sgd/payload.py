"""Payload of a synchronisation: parameters, step check and the schedule's numbers, packed and unpacked here.

Behind a model follow the step check and one slot of numbers per rank.  Before a message stand the numbers of its
sender.  A separate collective would cost as much as the models' where latency dominates.  Every number is sent as the
four bytes of its binary32: integers below 256, which even bfloat16 represents exactly.  With models every member fills
its slot in a vector of zeros.  The mean over members then holds all bytes, each divided by the number of members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from operators import Message

from ..distributed import step_check
from ..distributed.transport import Transport

Row = Sequence[float]
WORD = np.dtype(">f4")


@dataclass(frozen=True)
class Payload:
    """Data sent besides the parameters.

    Parameters
    ----------
    numbers : int
        Length of every rank's row; 0 where the schedule needs none.
    world_size : int
        Number of ranks.
    """

    numbers: int
    world_size: int

    @property
    def tail_values(self) -> int:
        """Number of values behind a model."""
        return step_check.VALUES + WORD.itemsize * self.numbers * self.world_size

    @property
    def front_bits(self) -> int:
        """Number of bits before a message."""
        return 8 * WORD.itemsize * self.numbers

    # -- with models -----------------------------------------------------------------------------------------
    def tail(self, row: Row, *, rank: int, steps: int, changed: bool) -> torch.Tensor:
        """Pack the values behind a model: shape (tail_values,), float32, to be averaged and not written to.

        ``changed`` says that the model has other parameters than at the last synchronisation.
        """
        check = step_check.encode(steps, changed)
        return torch.cat([check, scatter_row(row, rank=rank, world_size=self.world_size)]) if self.numbers else check

    def open_tail(
        self, averaged: torch.Tensor, *, members: Sequence[int], steps: int, changed: bool
    ) -> list[list[float]]:
        """Unpack the members' mean of ``tail`` and return their rows, in order of ``members``.

        Raises
        ------
        UnevenModels
            Unless all ranks' models have the same parameters.
        UnevenSteps
            Unless all ranks have made the same number of steps.
        """
        self.check(averaged, steps=steps, changed=changed)
        if not self.numbers:
            return []
        return gather_rows(averaged[step_check.VALUES :], members=members, world_size=self.world_size)

    @staticmethod
    def check(averaged: torch.Tensor, *, steps: int, changed: bool) -> None:
        """Raise UnevenModels or UnevenSteps unless all ranks have packed the same step check."""
        step_check.require(averaged[: step_check.VALUES], steps, changed)

    # -- with messages ---------------------------------------------------------------------------------------
    def attach(self, row: Row, message: Message) -> Message:
        """Return the message with the row before it."""
        if not self.numbers:
            return message
        front = torch.frombuffer(bytearray(_bytes(row)), dtype=torch.uint8)
        return Message(torch.cat([front.to(message.payload.device), message.payload]), 8 * front.numel() + message.bits)

    def gathered(
        self,
        transport: Transport,
        own: Sequence[Message | int | None],
        rows: Sequence[Row],
        steps: int,
        exact: Sequence[int] | None = None,
    ) -> tuple[dict[int, Message], dict[int, list[float]]]:
        """Gather the messages of all ranks with their rows; return both by rank.

        A rank without a message sends no row.  ``exact`` are the lengths of all messages in bits, where all ranks know
        them.

        Raises
        ------
        Refusal
            On every rank, if one has a number in place of a message.
        """
        if not self.numbers:
            return transport.gather(own, position=steps, exact=exact), {}
        packed = [
            self.attach(row, message) if isinstance(message, Message) else message
            for row, message in zip(rows, own, strict=True)
        ]
        framed = None if exact is None else [self.front_bits + bits for bits in exact]
        messages = transport.gather(packed, position=steps, exact=framed)
        opened = {rank: self.detach(message) for rank, message in messages.items() if message.bits}
        return (
            {rank: opened[rank][1] if rank in opened else message for rank, message in messages.items()},
            {rank: row for rank, (row, _) in opened.items()},
        )

    def detach(self, message: Message) -> tuple[list[float], Message]:
        """Split a message into its row and the message behind it."""
        n = WORD.itemsize * self.numbers
        if not n:
            return [], message
        return _row(bytes(message.payload[:n].tolist())), Message(message.payload[n:], message.bits - 8 * n)


def scatter_row(row: Row, *, rank: int, world_size: int) -> torch.Tensor:
    """Return the row's bytes in this rank's slot among zeros, shape (4 world_size len(row),), float32."""
    places = np.zeros((world_size, WORD.itemsize * len(row)), np.float32)
    places[rank] = np.frombuffer(_bytes(row), np.uint8)
    return torch.from_numpy(places).flatten()


def gather_rows(averaged: torch.Tensor, *, members: Sequence[int], world_size: int) -> list[list[float]]:
    """Return the members' rows from their mean of ``scatter_row``, which is in float32 or better."""
    parts = averaged.detach().cpu().numpy()
    rows = np.rint(parts * len(members)).astype(np.uint8).view(WORD).astype(float).reshape(world_size, -1).tolist()
    return [rows[rank] for rank in members]


def _bytes(row: Row) -> bytes:
    return np.asarray(row, WORD).tobytes()


def _row(data: bytes) -> list[float]:
    return np.frombuffer(data, WORD).astype(float).tolist()
