"""What all adapters share: settings of ``PeriodicAveraging``, and models in wrappers of other libraries."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from types import TracebackType
from typing import Any, Self

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ..averaging.pacing.probing import MeasuredInputs
from ..averaging.periodic_averaging import PeriodicAveraging
from ..averaging.settings import Parts
from ..processes.collectives import ProcessTransport


class AveragingKeywords(Parts, total=False):
    """Keywords of ``PeriodicAveraging`` with the same meaning in every adapter; see there.

    ``schedule`` is missing because every adapter uses its library's word for it.
    """

    process_group: dist.ProcessGroup | ProcessTransport | None
    telemetry: bool | str | os.PathLike[str]


def finish(averaging: PeriodicAveraging) -> None:
    """End the current round and merge averages in flight, so that all ranks hold the same model.

    Every rank must call it after the same step.
    """
    engine = averaging.engine
    if isinstance(engine.inputs, MeasuredInputs):  # no period follows, and gradients may have been deleted
        engine.inputs.record_step([None], [None], (), engine.clock)
    if engine.periods.local_steps or engine.overlapped is not None:  # else outer momentum would move the model
        averaging.average()


class AveragedSteps:
    """Context of local steps; the entry after an error inside makes a new averaging."""

    averaging: PeriodicAveraging | None

    def __init__(
        self, local: Callable[[], AbstractContextManager[Any]], make: Callable[[], PeriodicAveraging] | None
    ) -> None:
        self._local, self._make = local, make
        self.averaging = None if make is None else make()
        self._entered, self._failed = ExitStack(), False

    def __enter__(self) -> Self:
        if self._failed and self._make is not None:
            self.averaging = self._make()
        self._entered.enter_context(self._local())
        self._failed = True  # until it ends
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.close()
        if error is None:
            if self.averaging is not None:
                finish(self.averaging)
            self._failed = False


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
