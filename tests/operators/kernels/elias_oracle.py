"""The decoder of levels in plain Python, one number after the other."""

from __future__ import annotations

import math

import torch

from operators import CorruptMessage
from operators.bits.bitstream import BitReader


def decode(payload: torch.Tensor, bits: int, d: int, step: int, code: str, most: int, full: bool) -> torch.Tensor:
    """The levels read one by one; see ``operators.kernels.elias.decode``."""
    reader, out = BitReader(payload.numpy(), bits), torch.zeros(d)
    for start in range(0, d, step):
        norm = reader.read_float()
        if not norm:
            continue
        levels = _read_bucket(reader, code, min(step, d - start), most)
        if full and max(map(abs, levels)) != most:
            raise CorruptMessage(f"no level of the bucket at coordinate {start} reaches {most}")
        out[start : start + len(levels)] = torch.tensor([norm / most * n for n in levels], dtype=torch.float64).float()
    reader.finish()
    return out


def _number(reader: BitReader) -> int:
    n = 1
    while reader.read(1):
        if n > 40:
            raise CorruptMessage("a number is longer than any that is sent")
        n = (1 << n) | reader.read(n)
    return n


def _read_bucket(reader: BitReader, code: str, length: int, most: int) -> list[int]:
    levels, i = [0] * length, -1
    while True:
        i += _number(reader) if code == "sparse" else 1
        if i >= length:
            break
        if code == "flag" and not reader.read(1):
            continue
        sign = 1 if code == "dense" else 1 - 2 * reader.read(1)
        n = _number(reader) - (code == "dense")
        if code == "dense" and n:
            sign = 1 - 2 * reader.read(1)
        if n > most:
            raise CorruptMessage(f"level {n} is beyond {most}")
        levels[i] = int(math.copysign(n, sign))
    if i > length:
        raise CorruptMessage("a gap leads beyond the end of the bucket")
    return levels
