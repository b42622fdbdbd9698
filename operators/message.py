"""The message of one worker: a packed payload and its exact length in bits."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import torch

from bounds.fields import whole

MAGIC = b"RDm"
VERSION = 1
_HEAD = struct.Struct(">3sBQQ")  # magic, version, d, bits
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

    def to_bytes(self, *, d: int = 0) -> bytes:
        """Return the framed form for storage and untrusted transports.

        The frame holds magic, version, d, bits, payload and CRC-32.

        Parameters
        ----------
        d : int, optional
            Number of coordinates.
        """
        body = _HEAD.pack(MAGIC, VERSION, d, self.bits) + self.payload.cpu().numpy().tobytes()
        return body + _CRC.pack(zlib.crc32(body))

    @classmethod
    def from_bytes(cls, data: bytes, *, d: int | None = None) -> Message:
        """Read a frame of ``to_bytes``.

        Parameters
        ----------
        data : bytes
            A frame of ``to_bytes``.
        d : int or None, optional
            If given, the frame must state the same d.

        Raises
        ------
        CorruptMessage
            If the frame is damaged, truncated, extended or for another d.
        """
        if len(data) < _HEAD.size + _CRC.size:
            raise CorruptMessage(f"a frame has at least {_HEAD.size + _CRC.size} bytes; got {len(data)}")
        body, (crc,) = data[: -_CRC.size], _CRC.unpack(data[-_CRC.size :])
        if zlib.crc32(body) != crc:
            raise CorruptMessage("the frame's CRC-32 does not match its content; request it again")
        magic, version, stated_d, bits = _HEAD.unpack_from(body)
        if magic != MAGIC or version != VERSION:
            raise CorruptMessage(f"not a message frame of version {VERSION}: it starts with {body[:4]!r}")
        if d is not None and d != stated_d:
            raise CorruptMessage(f"the frame is for d = {stated_d}; expected d = {d}")
        raw = bytearray(body[_HEAD.size :])
        if len(raw) != (bits + 7) // 8:
            raise CorruptMessage(f"the frame announces {bits} bits but carries {len(raw)} bytes")
        return cls(torch.frombuffer(raw, dtype=torch.uint8) if raw else torch.empty(0, dtype=torch.uint8), bits)
