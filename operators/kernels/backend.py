"""Whose implementations of the primitives run on a tensor: those for its device, or forced ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch

from ..compilation import jit
from .threads import is_long, shared

if TYPE_CHECKING:
    from .codewords import Codewords
    from .elias import Elias
    from .fields import Fields
    from .hadamard import Hadamard
    from .levels import Levels
    from .norms import Norms
    from .philox import Philox
    from .rice import Rice
    from .selection import Selection
    from .signs import Signs
    from .trits import Trits

Backend = Literal["reference", "cpu", "cuda"]


class Kernels:
    """All primitives on one back end; each is imported when it is first asked for.

    Parameters
    ----------
    backend : str
        "reference", "cpu" or "cuda".
    """

    codewords: Codewords
    elias: Elias
    fields: Fields
    hadamard: Hadamard
    levels: Levels
    norms: Norms
    philox: Philox
    rice: Rice
    selection: Selection
    signs: Signs
    trits: Trits

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def __getattr__(self, primitive: str) -> Any:
        if primitive not in Kernels.__annotations__:
            raise AttributeError(f"there is no primitive {primitive}")
        module = import_module(f".{primitive}.{self.backend}", __package__)
        setattr(self, primitive, module)
        return module


_KERNELS: dict[Backend, Kernels] = {backend: Kernels(backend) for backend in get_args(Backend)}
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


def is_forced() -> bool:
    """Return whether a back end is forced here, so that loops of one back end must not be chosen beforehand."""
    return _forced.get() is not None


def kernels_for(x: torch.Tensor) -> Kernels:
    """Return the primitives that work on x: the forced ones, else "cpu" for CPU tensors and "cuda" for CUDA ones.

    "reference" serves other devices, and CUDA if Triton is missing.
    """
    forced = _forced.get()
    if forced is not None:
        return _KERNELS[forced]
    if x.is_cpu:
        return _KERNELS["cpu"]
    return _KERNELS["cuda" if x.is_cuda and _has_triton() else "reference"]


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return find_spec("triton") is not None


def zeros(n: int, device: torch.device) -> torch.Tensor:
    """Return n float32 zeros; on the CPU numpy's, whose pages the system hands out when they are first written."""
    return torch.from_numpy(np.zeros(n, np.float32)) if device.type == "cpu" else torch.zeros(n, device=device)


def scattered(d: int, index: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return a float32 vector with values at increasing positions and zeros elsewhere, on their device.

    On the CPU several threads write parts of a long vector, whose pages the system hands out when they are written.
    """
    out = zeros(d, values.device)
    if not values.is_cpu or not is_long(d):
        out[index] = values
        return out
    numbers, places = values.numpy(), index.numpy()

    def write(start: int, stop: int) -> None:
        first, last = np.searchsorted(places, [start, stop])
        _scatter(places[first:last], numbers[first:last], out.numpy())

    shared(d, 1, write)
    return out


@jit
def _scatter(index, values, out):
    for i in range(index.size):
        out[index[i]] = values[i]
