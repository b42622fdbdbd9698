"""A few numbers of every rank that travel with an averaging, behind the model or before the message.

A collective of their own would cost as much as the models' where latency dominates.  Every number goes as the four
bytes of its binary32: integers below 256, which even bfloat16 holds exactly.  With models every member fills a place of
its own in a vector of zeros, so that the mean over members holds all bytes, each divided by their number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from operators import Message

Row = Sequence[float]
WORD = np.dtype(">f4")


def _bytes(row: Row) -> bytes:
    return np.asarray(row, WORD).tobytes()


def _row(data: bytes) -> list[float]:
    return np.frombuffer(data, WORD).astype(float).tolist()


def values(numbers: int, *, size: int) -> int:
    """How many values a row of so many numbers takes behind a model, among so many ranks."""
    return WORD.itemsize * numbers * size


def bits(numbers: int) -> int:
    """How many bits a row of so many numbers takes before a message."""
    return 8 * WORD.itemsize * numbers


# -- with models ---------------------------------------------------------------------------------------------
def spread(row: Row, *, rank: int, size: int) -> torch.Tensor:
    """The row's bytes at this rank's place among zeros, to be averaged; shape (4 size len(row),), float32."""
    note = np.zeros((size, WORD.itemsize * len(row)), np.float32)
    note[rank] = np.frombuffer(_bytes(row), np.uint8)
    return torch.from_numpy(note).flatten()


def collect(averaged: torch.Tensor, *, members: Sequence[int], size: int) -> list[list[float]]:
    """The members' rows, in their order, from the members' mean of what ``spread`` gave, in float32 or better."""
    parts = averaged.detach().cpu().double().numpy().reshape(size, -1)
    whole = np.rint(parts * len(members)).astype(np.uint8)
    return [_row(whole[rank].tobytes()) for rank in members]


# -- with messages -------------------------------------------------------------------------------------------
def attach(row: Row, message: Message) -> Message:
    """The message with the row before it."""
    front = torch.frombuffer(bytearray(_bytes(row)), dtype=torch.uint8)
    return Message(torch.cat([front, message.payload.cpu()]), 8 * front.numel() + message.bits)


def detach(message: Message, *, numbers: int) -> tuple[list[float], Message]:
    """The row of so many numbers, and the message behind it."""
    n = WORD.itemsize * numbers
    return _row(bytes(message.payload[:n].tolist())), Message(message.payload[n:], message.bits - 8 * n)
