"""Batches of short vectors, one per row: packed by the same kernels as one long vector.

Every row is filled up to a multiple of eight coordinates.  Its fields then end with a byte, and one call of a kernel
for long vectors packs the whole matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.functional import pad

from .coding.fixed_width import pack_fixed, unpack_fixed
from .kernels import kernels_for
from .message import Messages


def filled(x: np.ndarray, multiple: int, value: int = 0) -> np.ndarray:
    """Return the matrix with more columns, up to a multiple of their number; itself if there are enough.

    Parameters
    ----------
    x : ndarray, shape (m, d)
        The rows.
    multiple : int
        The number of columns becomes a multiple of it.
    value : int, optional
        What the new columns hold.
    """
    missing = -x.shape[1] % multiple
    return np.pad(x, ((0, 0), (0, missing)), constant_values=value) if missing else x


def pack_signs(x: torch.Tensor, magnitudes: Sequence[float]) -> torch.Tensor:
    """Return the sign bits of a vector or of every row: uint8, shape (ceil(d/8),) or (m, ceil(d/8)).

    Parameters
    ----------
    x : tensor, shape (d,) or (m, d)
        Contiguous float32 numbers.
    magnitudes : sequence of float
        One number per vector, or one for all; a vector with magnitude 0 gets the bits 0.
    """
    missing = -x.shape[1] % 8 if x.dim() > 1 else 0
    packed = kernels_for(x).signs.pack((pad(x, (0, missing)) if missing else x).view(-1))
    if not all(magnitudes):
        packed.view(len(magnitudes), -1)[[magnitude == 0 for magnitude in magnitudes]] = 0
    return packed if x.dim() == 1 else packed.view(len(x), -1)


def unpack_signs(fields: torch.Tensor, d: int, magnitudes: Sequence[float]) -> torch.Tensor:
    """Return numbers of one magnitude per vector with the signs of ``pack_signs``: float32, shape (d,) or (m, d).

    Parameters
    ----------
    fields : tensor, uint8
        Packed signs of a vector or of every row.
    d : int
        Number of coordinates of a vector.
    magnitudes : sequence of float
        One binary32 number per vector, or one for all, not negative.
    """
    signs = kernels_for(fields).signs
    if fields.dim() == 1:
        return signs.unpack(fields, d, magnitudes[0], -magnitudes[0])
    units = signs.unpack(fields.reshape(-1), 8 * fields.numel()).view(len(fields), -1)[:, :d]
    return torch.copysign(torch.tensor(magnitudes, device=units.device).view(-1, 1), units)


def packed(values: np.ndarray, width: int) -> np.ndarray:
    """Return fields of one width of every row: uint8, shape (m, ceil(d width/8)).

    Parameters
    ----------
    values : ndarray, shape (m, d)
        uint32 numbers below 2^width.
    width : int
        Bits of a field.
    """
    m, d = values.shape
    if m == 1:
        return pack_fixed(values[0], width)[None]
    return pack_fixed(filled(values, 8).reshape(-1), width).reshape(m, -1)[:, : (d * width + 7) // 8]


def unpacked(fields: np.ndarray, d: int, width: int) -> np.ndarray:
    """Return the numbers of ``packed``: uint32, shape (m, d).

    Parameters
    ----------
    fields : ndarray, uint8, shape (m, ceil(d width/8))
        Packed rows.
    d : int
        Number of coordinates of a row.
    width : int
        Bits of a field.
    """
    m, whole = len(fields), -(-d // 8) * 8
    if m == 1:
        return unpack_fixed(fields[0], width, d)[None]
    payload = np.pad(fields, ((0, 0), (0, whole * width // 8 - fields.shape[1])))
    return unpack_fixed(payload.reshape(-1), width, m * whole).reshape(m, -1)[:, :d]


def floats(values: np.ndarray) -> np.ndarray:
    """Return binary32 numbers of every row as big-endian bytes: uint8, shape (m, 4 n).

    Parameters
    ----------
    values : ndarray, shape (m, n)
        float32 numbers.
    """
    return np.ascontiguousarray(values.astype(">f4")).view(np.uint8).reshape(len(values), 4 * values.shape[1])


def read_floats(payload: np.ndarray) -> np.ndarray:
    """Return the numbers of ``floats``: float32, shape (m, n).

    Parameters
    ----------
    payload : ndarray, uint8, shape (m, 4 n)
        Bytes of every row.
    """
    return np.ascontiguousarray(payload).view(">f4").astype(np.float32)


def joined(bits: int, *parts: np.ndarray) -> Messages:
    """Return messages of one length, whose payloads are the parts of every row side by side.

    Parameters
    ----------
    bits : int, bits
        Length of every message.
    parts : ndarray, uint8, shape (m, ...)
        Bytes of every row.
    """
    payload = np.concatenate(parts, axis=1) if len(parts) > 1 else np.ascontiguousarray(parts[0])
    return Messages(torch.from_numpy(payload.reshape(-1)), np.full(payload.shape[0], bits, np.int64))
