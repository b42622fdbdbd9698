"""Models in wrappers of other libraries, whose averaging of gradients must be stopped."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel


def innermost(wrapped: torch.nn.Module) -> torch.nn.Module:
    """Return the model inside DistributedDataParallel and torch.compile."""
    inner = _uncompiled(wrapped)
    return _uncompiled(inner.module) if isinstance(inner, DistributedDataParallel) else inner


def local_gradients(wrapped: torch.nn.Module, model: torch.nn.Module, remedy: str) -> AbstractContextManager[Any]:
    """Return a context in which gradients are not averaged between ranks.

    ``wrapped`` is the module that the library trains, and ``model`` the module inside.  ``remedy`` ends the error
    sentence.

    Raises
    ------
    ValueError
        For any wrapper except DistributedDataParallel: averaging needs the whole model on every rank.
    """
    inner = _uncompiled(wrapped)
    if isinstance(inner, DistributedDataParallel) and innermost(inner) is innermost(model):
        return inner.no_sync()
    if inner is innermost(model):
        return nullcontext()
    raise ValueError(
        f"the model is wrapped in {type(inner).__name__}, and periodic averaging needs the whole model on every rank, "
        f"alone or in DistributedDataParallel: {remedy}"
    )


def _uncompiled(model: torch.nn.Module) -> torch.nn.Module:
    inner = getattr(model, "_orig_mod", model)  # of torch.compile
    assert isinstance(inner, torch.nn.Module)
    return inner
