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
def _read(padded, position, bits, r, d, index):
    """Fill ``index`` with increasing positions below d; returns the next bit position, or -1 if corrupt."""
    last = -1
    for j in range(index.size):
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
    return position


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
        position = int(_read(buffer, support_at, bits, r, d, index))
        if position < 0:
            raise CorruptMessage(f"the support is not {k} increasing positions below {d}")
        if best_parameter(gaps_of(index), d)[0] != r:
            raise CorruptMessage(f"Rice parameter {r} is not the one an encoder chooses for this support")
    if bits != position + VALUE_BITS * k:
        raise CorruptMessage(f"{k} values need {VALUE_BITS * k} bits; {bits - position} remain")
    patterns = np.empty(k, np.uint32)
    _read_values(buffer, position, patterns)
    values = patterns.view(np.float32)
    if not np.isfinite(values).all():
        raise CorruptMessage("a value is NaN or infinite")
    return torch.from_numpy(index).to(payload.device), torch.from_numpy(values).to(payload.device)
