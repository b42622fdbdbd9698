"""Fields of one width compiled for the CPU; 1, 2, 4, 8 and 16 bits have vector loops of their own."""

from __future__ import annotations

import numpy as np
import torch

from ...compilation import jit
from ..threads import shared


@jit
def _pack_parts(values, width, out):
    """Width 1, 2 or 4: a byte holds whole fields."""
    parts = 8 // width
    whole = values.size // parts
    if width == 4:
        for j in range(whole):
            out[j] = np.uint8((values[2 * j] << 4) | values[2 * j + 1])
    elif width == 2:
        for j in range(whole):
            high = (values[4 * j] << 2) | values[4 * j + 1]
            out[j] = np.uint8((high << 4) | (values[4 * j + 2] << 2) | values[4 * j + 3])
    else:
        for j in range(whole):
            byte = 0
            for i in range(8):
                byte |= values[8 * j + i] << (7 - i)
            out[j] = np.uint8(byte)
    if whole < out.size:
        byte = 0
        for i in range(whole * parts, values.size):
            byte |= values[i] << (8 - width * (i - whole * parts + 1))
        out[whole] = np.uint8(byte)


@jit
def _pack_any(values, width, out):
    """Any width: an accumulator that holds fewer than 32 bits between fields."""
    acc, filled, next_byte = np.uint64(0), 0, 0
    for i in range(values.size):
        acc = (acc << np.uint64(width)) | np.uint64(values[i])
        filled += width
        if filled >= 32:
            filled -= 32
            word = acc >> np.uint64(filled)
            out[next_byte] = np.uint8(word >> np.uint64(24))
            out[next_byte + 1] = np.uint8(word >> np.uint64(16))
            out[next_byte + 2] = np.uint8(word >> np.uint64(8))
            out[next_byte + 3] = np.uint8(word)
            next_byte += 4
    word = acc << np.uint64(32 - filled)
    for shift in range(24, 24 - filled, -8):
        out[next_byte] = np.uint8(word >> np.uint64(shift))
        next_byte += 1


@jit
def pack_fields(values, width, out):
    """Fill ``out`` (uint8, shape (ceil(n width/8),)) with the fields of ``values`` (int32, below 2^width)."""
    if width == 8:
        for i in range(values.size):
            out[i] = np.uint8(values[i])
    elif width == 16:
        for i in range(values.size):
            out[2 * i] = np.uint8(values[i] >> 8)
            out[2 * i + 1] = np.uint8(values[i])
    elif width == 4 or width == 2 or width == 1:
        _pack_parts(values, width, out)
    else:
        _pack_any(values, width, out)


@jit
def _unpack_any(payload, width, out):
    acc, filled, next_byte = np.uint64(0), 0, 0
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for i in range(out.size):
        while filled < width:
            acc = (acc << np.uint64(8)) | np.uint64(payload[next_byte])
            filled += 8
            next_byte += 1
        filled -= width
        out[i] = np.int32((acc >> np.uint64(filled)) & mask)


@jit
def unpack_fields(payload, width, out):
    """Fill ``out`` (int32) from a payload that begins with its first field."""
    if width == 8:
        for i in range(out.size):
            out[i] = np.int32(payload[i])
    elif width == 16:
        for i in range(out.size):
            out[i] = (np.int32(payload[2 * i]) << 8) | np.int32(payload[2 * i + 1])
    elif width == 4:
        for j in range(out.size // 2):
            out[2 * j], out[2 * j + 1] = np.int32(payload[j] >> 4), np.int32(payload[j] & 15)
        if out.size & 1:
            out[out.size - 1] = np.int32(payload[out.size // 2] >> 4)
    else:
        _unpack_any(payload, width, out)


def pack(values: torch.Tensor, width: int) -> torch.Tensor:
    """Write field by field, or byte by byte where widths allow it."""
    numbers, out = values.numpy(), np.empty((values.numel() * width + 7) // 8, np.uint8)

    def work(start: int, stop: int) -> None:
        pack_fields(numbers[start:stop], width, out[start * width >> 3 : (stop * width + 7) >> 3])

    shared(numbers.size, 8, work)
    return torch.from_numpy(out)


def unpack(payload: torch.Tensor, n: int, width: int) -> torch.Tensor:
    """Read field by field, or byte by byte where widths allow it."""
    packed, out = payload.numpy(), np.empty(n, np.int32)
    shared(n, 8, lambda start, stop: unpack_fields(packed[start * width >> 3 :], width, out[start:stop]))
    return torch.from_numpy(out)
