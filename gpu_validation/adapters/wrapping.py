"""Models in the wrappers of other libraries, which must leave gradients where they are."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel


def innermost(wrapped: torch.nn.Module) -> torch.nn.Module:
    """Return the model inside DistributedDataParallel and torch.compile.

    Parameters
    ----------
    wrapped : Module
        The model, or a wrapper around it.
    """
    inner = _uncompiled(wrapped)
    return _uncompiled(inner.module) if isinstance(inner, DistributedDataParallel) else inner


def local_gradients(wrapped: torch.nn.Module, model: torch.nn.Module, remedy: str) -> AbstractContextManager[Any]:
    """Return a context in which no rank's gradients are averaged with those of the others.

    Parameters
    ----------
    wrapped : Module
        What the library trains: the model, or DistributedDataParallel around it, whose ``no_sync`` it is then.
    model : Module
        The model inside.
    remedy : str
        What to set otherwise, as the end of a sentence.

    Raises
    ------
    ValueError
        For another wrapper: an averaging needs the whole model on every rank, trained by itself.
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
