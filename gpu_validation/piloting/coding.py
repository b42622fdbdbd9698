"""Coding time of all ranks at once, in wall-clock seconds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
import torch.distributed as dist

from operators import Operator
from ratedist.cluster.codec import measure_codec
from ratedist.pilots.timings import Codec

WINDOW_S = 0.02
WINDOWS = 5
LEAST_S = 1e-9


def codec_of_ranks(
    operator: Operator, gradient: torch.Tensor, *, device: str, group: dist.ProcessGroup | None
) -> Codec:
    """Return the encoding and decoding time of a gradient; every rank must call it.

    ``gradient`` is float32 of shape (d,), of which 2^20 coordinates are used.

    Notes
    -----
    A single rank is measured by ``measure_codec``, in processor time.  Ranks on one machine compete for its processors,
    which processor time does not show.  Therefore all ranks code at once, and the slowest rank counts, as in an
    averaging.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size(group) == 1:
        return measure_codec(operator, d=gradient.numel(), device=device)
    seconds_of = partial(_slowest_s, device=gradient.device, group=group)
    codec = measure_codec(operator, device=device, x=gradient, seconds_of=seconds_of)
    return replace(codec, source=f"{codec.source}, {dist.get_world_size(group)} ranks at once")


def _slowest_s(call: Callable[[], object], device: torch.device, group: dist.ProcessGroup | None) -> float:
    """Return the time of a call on all ranks until the last one has finished; the median of some windows."""
    call()
    once_s = _until_all_s(call, 1, device, group)
    runs = max(1, math.ceil(WINDOW_S / once_s))
    windows_s = torch.tensor([_until_all_s(call, runs, device, group) for _ in range(WINDOWS)])
    return float(windows_s.median()) / runs


def _until_all_s(call: Callable[[], object], runs: int, device: torch.device, group: dist.ProcessGroup | None) -> float:
    """Return the slowest rank's time since the common start."""
    _wait(device)
    dist.barrier(group)
    begun = time.perf_counter()
    for _ in range(runs):
        call()
    _wait(device)
    dist.barrier(group)  # ranks may share a processor: wait until the work of all of them is done
    elapsed_s = torch.tensor([time.perf_counter() - begun], device=device, dtype=torch.float64)
    dist.all_reduce(elapsed_s, dist.ReduceOp.MAX, group)
    return max(float(elapsed_s), LEAST_S)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
