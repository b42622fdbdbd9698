"""Unsigned numbers of one width, most significant bit first, without gaps: ``kernels.fields`` for numpy arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..kernels.fields.cpu import pack_fields, unpack_fields

PIECE = 1 << 16  # numbers that are worked on together, in the cache; a multiple of 8, so that a piece begins a byte


def pieces(n: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Yield the numbers and the bytes of each run of ``PIECE`` numbers; the last run may be shorter.

    Parameters
    ----------
    n : int
        How many numbers.
    width : int
        Bits of each.
    """
    for start in range(0, n, PIECE):
        stop = min(start + PIECE, n)
        yield slice(start, stop), slice(start * width // 8, (stop * width + 7) // 8)


def pack_fixed(values: np.ndarray, width: int) -> np.ndarray:
    """Return ceil(n width / 8) bytes, zero-padded.

    Parameters
    ----------
    values : ndarray
        uint32, shape (n,), each below 2^width.
    width : int
        1 .. 32.
    """
    out = np.empty((values.size * width + 7) // 8, np.uint8)
    pack_fields(values, width, out)
    return out


def unpack_fixed(payload: np.ndarray, width: int, n: int) -> np.ndarray:
    """Return uint32 array, shape (n,); the payload has at least n width bits, width 1 .. 32."""
    out = np.empty(n, np.uint32)
    unpack_fields(payload, width, out)
    return out
