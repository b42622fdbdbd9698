"""Encode and decode where a vector lies (see ``compressors/tcdq.py``), and draw what low rates send.

On a GPU the long format is worked on where it lies: one program for each segment, its 16 lanes side by side.  The
choice of a model is the CPU's, from a sample of at most 2^18 symbols that is copied there, and so are the tables.  With
more than 64 states the search is the CPU's too: the vector is copied there, and its symbols back.
The short format, below 2^17 coordinates, is one chain of coder states: such vectors are copied to the CPU, and so is
every vector on a device without Triton.

Each of the three long kernels (forward, back, coder) is a chain of the rows of a segment, 8192 to 16383, whatever d
is: what bounds the speed is the latency of a row until there are several segments for each multiprocessor.
"""

from __future__ import annotations

from types import ModuleType

import torch

from ..kernels import kernels_for
from ..key import Key
from . import codec, subset
from .model import Plan

KEPT = 1 << 28  # symbols that the CPU keeps; of longer vectors they are computed twice, for the model and the message


def _gpu(x: torch.Tensor) -> ModuleType | None:
    """Return the implementation in Triton if it is to work on this tensor."""
    if kernels_for(x).backend != "cuda":
        return None
    from . import cuda

    return cuda


def encode(x: torch.Tensor, plan: Plan, seeds: tuple) -> torch.Tensor:
    """Return the payload: uint8, on the device of x.

    Parameters
    ----------
    x : tensor of float32, shape (plan.d,)
        Contiguous and finite.
    plan : Plan
        What both ends know.
    seeds : pair of uint32
        Seeds of the dither's stream.
    """
    gpu = _gpu(x)
    if gpu is not None and plan.form.streams > 1:
        return gpu.encode(x, plan, seeds)
    if plan.d > KEPT:
        whole = x.cpu().numpy()
        payload = codec.encode_in_pieces(lambda: (whole[s] for s in plan.segments), plan, seeds)
        return torch.from_numpy(payload).to(x.device)
    return torch.from_numpy(codec.encode(x.cpu().numpy(), plan, seeds)).to(x.device)


def decode(payload: torch.Tensor, bits: int, plan: Plan, seeds: tuple) -> torch.Tensor:
    """Return the vector: float32, shape (plan.d,).

    Raises CorruptMessage for a payload that no encoder can have produced.

    Parameters
    ----------
    payload : tensor of uint8
        What ``encode`` returned.
    bits : int
        Length of the message.
    plan : Plan
        What both ends know.
    seeds : pair of uint32
        Seeds of the dither's stream.
    """
    gpu = _gpu(payload)
    if gpu is not None and plan.form.streams > 1:
        return gpu.decode(payload, bits, plan, seeds)
    return torch.from_numpy(codec.decode(payload.cpu().numpy(), bits, plan, seeds)).to(payload.device)


def gather(x: torch.Tensor, k: int, key: Key) -> torch.Tensor:
    """Return the k coordinates of least hash, in order: shape (k,).

    Parameters
    ----------
    x : tensor of float32, shape (d,)
        Contiguous.
    k : int
        1 <= k <= d.
    key : Key
        Stream from which the subset is drawn.
    """
    gpu = _gpu(x)
    if gpu is not None:
        return gpu.gather(x, k, key)
    return torch.from_numpy(subset.gather(x.cpu().numpy(), k, key)).to(x.device)


def scatter(part: torch.Tensor, d: int, key: Key, factor: float) -> torch.Tensor:
    """Return the vector that has ``factor`` times ``part`` where ``gather`` reads, and 0 elsewhere: shape (d,).

    Parameters
    ----------
    part : tensor of float32, shape (k,)
        Values at the drawn coordinates.
    d : int
        Length of the vector.
    key : Key
        Stream from which the subset is drawn.
    factor : float
        Multiplies the part.
    """
    gpu = _gpu(part)
    if gpu is not None:
        return gpu.scatter(part, d, key, factor)
    return torch.from_numpy(subset.scatter(part.cpu().numpy(), d, key, factor)).to(part.device)
