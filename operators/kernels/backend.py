"""Which of a primitive's three equal implementations runs: chosen by the tensor's device, or forced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Literal, get_args

import numpy as np
import torch

Backend = Literal["reference", "cpu", "cuda"]
_forced: ContextVar[Backend | None] = ContextVar("operators.kernels.backend.forced", default=None)


@contextmanager
def use(backend: Backend) -> Iterator[None]:
    """Force a back end inside the block: "reference" (torch, any device), "cpu" (numba) or "cuda" (Triton).

    Only this context is affected.  The kernels raise on tensors that their back end cannot reach.

    Raises
    ------
    ValueError
        For another name.
    """
    if backend not in get_args(Backend):
        raise ValueError(f"the back end must be one of {', '.join(get_args(Backend))}; got {backend!r}")
    token = _forced.set(backend)
    try:
        yield
    finally:
        _forced.reset(token)


def backend_of(x: torch.Tensor) -> Backend:
    """Return the forced back end, else "cpu" for CPU tensors, "cuda" for CUDA ones ("reference" if Triton
    is missing).
    """
    forced = _forced.get()
    if forced is not None:
        return forced
    if x.device.type == "cpu":
        return "cpu"
    return "cuda" if x.device.type == "cuda" and _has_triton() else "reference"


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return find_spec("triton") is not None


def zeros(n: int, device: torch.device) -> torch.Tensor:
    """Return n float32 zeros; on the CPU numpy's, whose pages the system hands out when they are first written."""
    return torch.from_numpy(np.zeros(n, np.float32)) if device.type == "cpu" else torch.zeros(n, device=device)


def implementation(primitive: str, x: torch.Tensor) -> ModuleType:
    """Return the module of a primitive that works on x: ``kernels.<primitive>.<back end>``."""
    return _module(primitive, backend_of(x))


@lru_cache(maxsize=64)
def _module(primitive: str, backend: Backend) -> ModuleType:
    return import_module(f".{primitive}.{backend}", __package__)
