"""Several bit strings in one, without padding between them, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..message import CorruptMessage
from . import elias
from .bitstream import copy_bits, flush, padded, peek, write_string


def concatenate(fields: Sequence[tuple[np.ndarray, int]]) -> tuple[np.ndarray, int]:
    """Return one bit string from several, without padding between them."""
    bits = sum(width for _, width in fields)
    out, state = np.zeros((bits + 7) // 8, np.uint8), (np.uint64(0), 0, 0)
    for payload, width in fields:
        acc, filled, next_byte = write_string(out, state, payload, width)
        state = (np.uint64(acc), filled, next_byte)
    flush(out, state)
    return out, bits


def join_messages(messages: Sequence[tuple[np.ndarray, int]], exact: Sequence[int | None]) -> tuple[np.ndarray, int]:
    """Return one bit string of several messages; a message whose length is not known beforehand is preceded by it.

    Parameters
    ----------
    exact : sequence of int or None
        The length of each message where the receiver knows it, in bits.
    """
    fields: list[tuple[np.ndarray, int]] = []
    for (payload, bits), length in zip(messages, exact, strict=True):
        if length is None:
            code, width = elias.build(bits + 1)
            fields.append((np.array([code << (64 - width)], ">u8").view(np.uint8), int(width)))
        fields.append((payload, bits))
    return concatenate(fields)


def split_messages(payload: np.ndarray, bits: int, exact: Sequence[int | None]) -> list[tuple[np.ndarray, int]]:
    """Return the messages that ``join_messages`` has joined, each with its length in bits.

    Raises
    ------
    CorruptMessage
        Unless they use up all bits.
    """
    buffer, position, messages = padded(payload), 0, []
    for number, length in enumerate(exact):
        if length is None:
            n, used = elias.parse(np.uint64(peek(buffer, position))) if position < bits else (0, 0)
            if used == 0:
                raise CorruptMessage(f"the length of part {number} is missing at bit {position}")
            position, length = position + used, n - 1
        if position + length > bits:
            raise CorruptMessage(f"part {number} of {length} bits is cut off at bit {bits}")
        messages.append((extract(buffer, position, length), length))
        position += length
    if position != bits:
        raise CorruptMessage(f"{bits - position} bits are left over after the last part")
    return messages


def extract(buffer: np.ndarray, position: int, bits: int) -> np.ndarray:
    """Return bits position .. position + bits of a padded payload as bytes of their own, zero-padded."""
    out = np.zeros((bits + 7) // 8, np.uint8)
    copy_bits(buffer, position, bits, out)
    return out
