"""TCDQ's codec (see ``compressors/tcdq.py``), and the random subset of coordinates that low rates send.

On a GPU the long format is worked on where it lies: one program for each segment, its 16 lanes side by side.  The
choice of a model is the CPU's, from a sample of at most 2^18 symbols that is copied there, and so are the tables.
The short format, below 2^17 coordinates, is one chain of coder states: such vectors are copied to the CPU.

Each of the three long kernels (forward, back, coder) is a chain of the rows of a segment, 8192 to 16383, whatever d
is: what bounds the speed is the latency of a row until there are several segments for each multiprocessor.
"""

from __future__ import annotations

import torch

from ...key import Key
from ...tcdq.plan import Plan
from ..backend import implementation


def encode(x: torch.Tensor, plan: Plan, seeds: tuple) -> torch.Tensor:
    """The payload: uint8, on the device of x.

    x : contiguous float32, shape (plan.d,), finite.  seeds : of the dither, two uint32.
    """
    return implementation("tcdq", x).encode(x, plan, seeds)


def decode(payload: torch.Tensor, bits: int, plan: Plan, seeds: tuple) -> torch.Tensor:
    """The vector: float32, shape (plan.d,).  Raises CorruptMessage for a payload that no encoder can have produced."""
    return implementation("tcdq", payload).decode(payload, bits, plan, seeds)


def gather(x: torch.Tensor, k: int, key: Key) -> torch.Tensor:
    """The k coordinates of least hash, in order: shape (k,).  x : contiguous float32, shape (d,), 1 <= k <= d."""
    return implementation("tcdq", x).gather(x, k, key)


def scatter(part: torch.Tensor, d: int, key: Key, factor: float) -> torch.Tensor:
    """The vector of d coordinates that has ``factor`` times ``part`` where ``gather`` reads, and 0 elsewhere."""
    return implementation("tcdq", part).scatter(part, d, key, factor)
