"""The message of one worker: a packed payload and its exact length in bits."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch

from bounds.fields import whole

MAGIC = b"RDm"
VERSION = 2
_HEADS = {1: struct.Struct(">3sBQQ"), VERSION: struct.Struct(">3sBQQI")}  # magic, version, d, bits, format id
_CRC = struct.Struct(">I")


class CorruptMessage(ValueError):  # noqa: N818  a name users are told to catch
    """A payload that no encoder can have produced: bytes missing, left over, or out of range."""


@dataclass(frozen=True, eq=False)
class Message:
    """A bit string, most significant bit first, zero-padded to whole bytes.

    Parameters
    ----------
    payload : tensor
        uint8 tensor, shape (ceil(bits/8),), on the CPU or the encoder's device.
    bits : int, bits
        Exact length, the number that counts as codec bits.

    Raises
    ------
    ValueError
        If the payload does not have exactly ceil(bits/8) bytes.
    """

    payload: torch.Tensor
    bits: int

    def __post_init__(self) -> None:
        if not isinstance(self.payload, torch.Tensor):
            raise ValueError(f"payload must be a 1-d uint8 tensor; got a {type(self.payload).__name__}: convert it")
        if self.payload.dtype != torch.uint8 or self.payload.ndim != 1:
            raise ValueError(
                f"payload must be a 1-d uint8 tensor; got {self.payload.dtype}, shape {tuple(self.payload.shape)}"
            )
        if type(self.bits) is not int:
            object.__setattr__(self, "bits", whole("bits", self.bits))
        if self.bits < 0 or not 0 <= 8 * self.payload.numel() - self.bits < 8:
            raise ValueError(f"{self.payload.numel()} payload bytes cannot hold exactly {self.bits} bits")

    @property
    def nbytes(self) -> int:
        """Length of the payload in bytes, ceil(bits / 8)."""
        return self.payload.numel()

    def to_bytes(self, *, d: int = 0, format_id: int = 0) -> bytes:
        """Return the framed form for storage and untrusted transports.

        The frame holds magic, version, d, bits, format id, payload and CRC-32.

        Parameters
        ----------
        d : int, optional
            Number of coordinates.
        format_id : int, optional
            ``Operator.format_id`` of the encoder, so that a decoder with other settings refuses the frame; 0: none.
        """
        body = _HEADS[VERSION].pack(MAGIC, VERSION, d, self.bits, format_id) + self.payload.cpu().numpy().tobytes()
        return body + _CRC.pack(zlib.crc32(body))

    @classmethod
    def from_bytes(cls, data: bytes, *, d: int | None = None, format_id: int = 0) -> Message:
        """Read a frame of ``to_bytes``, of this or an earlier version.

        Parameters
        ----------
        data : bytes
            A frame of ``to_bytes``.
        d : int or None, optional
            If given, the frame must state the same d.
        format_id : int, optional
            If not 0, a frame that states a format must state this one.  Frames of version 1 state none.

        Raises
        ------
        CorruptMessage
            If the frame is damaged, truncated, extended, for another d or of another format.
        """
        least = _HEADS[1].size + _CRC.size
        if len(data) < least:
            raise CorruptMessage(f"a frame has at least {least} bytes; got {len(data)}")
        body, (crc,) = data[: -_CRC.size], _CRC.unpack(data[-_CRC.size :])
        if zlib.crc32(body) != crc:
            raise CorruptMessage("the frame's CRC-32 does not match its content; request it again")
        head = _HEADS.get(body[len(MAGIC)])
        if not body.startswith(MAGIC) or head is None or len(body) < head.size:
            raise CorruptMessage(f"not a message frame of version 1 or {VERSION}: it starts with {body[:4]!r}")
        _, _, stated_d, bits, *stated_format = head.unpack_from(body)
        if d is not None and d != stated_d:
            raise CorruptMessage(f"the frame is for d = {stated_d}; expected d = {d}")
        if format_id and stated_format and stated_format[0] not in (0, format_id):
            raise CorruptMessage(
                f"the frame has format {stated_format[0]:#010x}; expected {format_id:#010x}: "
                "decode it with the operator that encoded it"
            )
        raw = bytearray(body[head.size :])
        if len(raw) != (bits + 7) // 8:
            raise CorruptMessage(f"the frame announces {bits} bits but carries {len(raw)} bytes")
        return cls(torch.frombuffer(raw, dtype=torch.uint8) if raw else torch.empty(0, dtype=torch.uint8), bits)


@dataclass(frozen=True, eq=False)
class Messages(Sequence[Message]):
    """The messages of a batch of vectors, one after the other in one tensor.

    It is a sequence of ``Message``: indexing and iteration give views of the payload.  One tensor for the batch costs
    less than an object per message, of which an exchange between a thousand workers has a million.

    Parameters
    ----------
    payload : tensor
        uint8 tensor, the payloads in order, each from a whole byte on.
    bits : ndarray, bits
        int64, shape (m,): the length of every message.

    Raises
    ------
    ValueError
        If the payload does not have as many bytes as the messages.
    """

    payload: torch.Tensor
    bits: np.ndarray

    def __post_init__(self) -> None:
        if int(self.ends[-1] if len(self) else 0) != self.payload.numel():
            raise ValueError(f"messages of {int(self.ends[-1])} bytes cannot fill {self.payload.numel()} payload bytes")

    @classmethod
    def of(cls, messages: Iterable[Message]) -> Self:
        """Return the batch of some messages, whose payloads it copies.

        Parameters
        ----------
        messages : iterable of Message
            Messages on one device, in their order.
        """
        if isinstance(messages, cls):
            return messages
        listed = list(messages)
        payload = torch.cat([message.payload for message in listed]) if listed else torch.empty(0, dtype=torch.uint8)
        return cls(payload, np.array([message.bits for message in listed], np.int64))

    @cached_property
    def ends(self) -> np.ndarray:
        """Index of the first byte behind each message, an int64 array of shape (m,)."""
        return np.cumsum(self.nbytes)

    @property
    def nbytes(self) -> np.ndarray:
        """Length of each payload in bytes, an int64 array of shape (m,)."""
        return (self.bits + 7) // 8

    def __len__(self) -> int:
        return self.bits.size

    def __getitem__(self, index: Any) -> Any:
        """Return one message, or the batch of a slice's messages."""
        if isinstance(index, slice):
            return Messages.of([self[i] for i in range(*index.indices(len(self)))])
        place = range(len(self))[index]
        end = int(self.ends[place])
        return Message(self.payload[end - int(self.nbytes[place]) : end], int(self.bits[place]))

    def have_clean_padding(self) -> bool:
        """Return whether all bits behind the last bit of every message are zero."""
        some = self.bits > 0
        pad = -self.bits[some] % 8
        return not (self.payload.cpu().numpy()[self.ends[some] - 1] & ((1 << pad) - 1)).any()

    def rows(self, bits: int) -> np.ndarray:
        """Return the payloads of messages of one length as a matrix: uint8, shape (m, ceil(bits/8)).

        Parameters
        ----------
        bits : int, bits
            The length that every message must have.

        Raises
        ------
        CorruptMessage
            If a message has another length.
        """
        if (self.bits != bits).any():
            raise CorruptMessage(f"every message must have {bits} bits")
        return self.payload.numpy().reshape(len(self), (bits + 7) // 8)
