"""The decoder of sparse vectors, on the CPU for payloads on any device: codes of varying length follow one another."""

from __future__ import annotations

import numpy as np
import torch

from ...bits.bitstream import padded, peek, read_field
from ...compilation import jit
from ...message import CorruptMessage
from . import PARAMETER_BITS, VALUE_BITS
from .cpu import best_parameter, gaps_of


@jit
def _read(padded, bits, r, d, stop, state, index):
    """Fill ``index`` with increasing positions below d up to the first that is not below ``stop``.

    ``state`` is (bit position, latest coordinate), changed unless the stream is corrupt; returns how many positions, -1
    then.
    """
    position, last, j = state[0], state[1], 0
    while j < index.size and last < stop:
        quotient = 0
        while True:
            if position >= bits:
                return -1
            if not peek(padded, position) >> np.uint64(63):
                break
            quotient += 1
            position += 1
            if (quotient << r) >= d:
                return -1
        position += 1
        if position + r > bits:
            return -1
        low = np.int64(peek(padded, position) >> np.uint64(64 - r)) if r > 0 else 0
        position += r
        last += (quotient << r) + low + 1
        if last >= d:
            return -1
        index[j] = last
        j += 1
    state[0], state[1] = position, last
    return j


@jit
def _read_values(padded, position, patterns):
    for j in range(patterns.size):
        patterns[j] = np.uint32(peek(padded, position) >> np.uint64(32))
        position += VALUE_BITS


def unpack(payload: torch.Tensor, bits: int, k: int, d: int, position: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (index, values) of ``pack`` after a head that ends at ``position``, on the payload's device.

    Parameters
    ----------
    payload : tensor
        uint8, what ``pack`` gave.
    bits : int
        Its length.
    k : int
        Number of values.
    d : int
        Number of coordinates.
    position : int, optional
        Where the support begins, in bits.

    Raises
    ------
    CorruptMessage
        For anything that ``pack`` does not write.
    """
    support_at = position + (PARAMETER_BITS if k < d else 0)
    if bits < support_at + VALUE_BITS * k:
        raise CorruptMessage(f"{k} values need {VALUE_BITS * k} bits; got {bits}")
    buffer, index = padded(payload.cpu().numpy()), np.arange(k)
    if k < d:
        r = int(read_field(buffer, position, PARAMETER_BITS))
        state = np.array([support_at, -1])
        if _read(buffer, bits, r, d, d, state, index) < 0:
            raise CorruptMessage(f"the support is not {k} increasing positions below {d}")
        position = int(state[0])
        if best_parameter(gaps_of(index), d)[0] != r:
            raise CorruptMessage(f"Rice parameter {r} is not the one an encoder chooses for this support")
    if bits != position + VALUE_BITS * k:
        raise CorruptMessage(f"{k} values need {VALUE_BITS * k} bits; {bits - position} remain")
    values = read_values(buffer, position, k)
    return torch.from_numpy(index).to(payload.device), torch.from_numpy(values).to(payload.device)


def read_run(window: np.ndarray, there: int, r: int, d: int, stop: int, state: np.ndarray, index: np.ndarray) -> int:
    """Fill ``index`` from a window on the gaps up to the first position that is not below ``stop``; returns how many.

    Parameters
    ----------
    window : ndarray
        uint8.
    there : int
        How many of its bits may be read.
    r : int
        The parameter.
    d : int
        Number of coordinates.
    stop : int
        End of the run.
    state : ndarray
        int64: bit position in the window and latest coordinate, -1 at first; changed unless the result is -1, for a
        stream that is corrupt or goes on behind the window.
    index : ndarray
        int64, room for as many positions as may come.
    """
    return int(_read(padded(window), there, r, d, stop, state, index))


def read_values(window: np.ndarray, position: int, count: int) -> np.ndarray:
    """Return values from a bit position on: float32, shape (count,).

    Parameters
    ----------
    window : ndarray
        uint8, a message or a part of it that holds them.
    position : int
        Bit position.
    count : int
        How many.

    Raises
    ------
    CorruptMessage
        If one is NaN or infinite.
    """
    patterns = np.empty(count, np.uint32)
    _read_values(padded(window), position, patterns)
    values = patterns.view(np.float32)
    if not np.isfinite(values).all():
        raise CorruptMessage("a value is NaN or infinite")
    return values
