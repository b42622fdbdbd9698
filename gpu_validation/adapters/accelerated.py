"""Periodic averaging in place of ``accelerate.local_sgd.LocalSGD``. ::

    model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
    with LocalSGD(accelerator=accelerator, model=model, local_sgd_steps=8, operator=QSGD(levels=16)) as local_sgd:
        for batch in batches:
            with accelerator.accumulate(model):
                loss = loss_of(model, batch)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                local_sgd.step()

Inside ``with`` gradients are not averaged, although accelerate has wrapped the model in DistributedDataParallel.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

import torch

from bounds.schedules import Schedule

from ..averaging.pacing.inputs import Closure
from ..averaging.periodic_averaging import PeriodicAveraging
from ..averaging.settings import Pacing, name_parts
from ..records.numbers import whole_number
from ..records.round import Round
from .keywords import AveragedSteps, AveragingKeywords, innermost, local_gradients

if TYPE_CHECKING:
    from accelerate import Accelerator


class LocalSGD(AveragedSteps):
    """Context of local steps, averaged every ``local_sgd_steps`` steps and at its end.

    Parameters
    ----------
    accelerator : Accelerator
        Accelerator for one process, or for several with one model each.  With a single process nothing is averaged.
    model : Module
        Model returned by ``accelerator.prepare``.
    local_sgd_steps : int or Schedule or Pacing or {"auto"}
        Optimizer steps per round (>= 1), or a rule; "auto" needs a closure in ``step``.
    enabled : bool, optional
        Whether to average periodically; if False, gradients are averaged as accelerate does.
    optimizer : Optimizer or None, optional
        The optimizer, prepared or not; needed where ``PeriodicAveraging`` needs one.
    **settings
        Keywords of ``PeriodicAveraging``: operator, exchange, merge, outer and others.

    Attributes
    ----------
    averaging
        The ``PeriodicAveraging``, whose transport counts bytes; None where nothing is averaged.

    Raises
    ------
    ValueError
        For a model that is sharded or pipelined over the ranks, and for settings that ``PeriodicAveraging`` refuses.

    Notes
    -----
    A batch whose gradients are only accumulated is not a local step here; accelerate's own class counts every call.  An
    error inside ``with`` is raised immediately, without an averaging, because other ranks may not reach one.  The next
    ``with`` of the same object starts again: from rank 0's model, without states of feedback and outer momentum.
    """

    @name_parts(AveragingKeywords, schedule="local_sgd_steps")
    def __init__(
        self,
        accelerator: Accelerator,
        model: torch.nn.Module,
        local_sgd_steps: int | Schedule | Literal["auto"] | Pacing,
        enabled: bool = True,
        *,
        optimizer: torch.optim.Optimizer | None = None,
        **settings: Unpack[AveragingKeywords],
    ) -> None:
        if not isinstance(local_sgd_steps, Schedule | Pacing | str):
            local_sgd_steps = whole_number("local_sgd_steps", local_sgd_steps)
        self._accelerator = accelerator
        local: Callable[[], AbstractContextManager[Any]] = nullcontext
        make: Callable[[], PeriodicAveraging] | None = None
        if enabled and accelerator.num_processes > 1:
            inner = innermost(model)
            remedy = "configure accelerate for several processes without DeepSpeed, FSDP or Megatron-LM"
            local = partial(local_gradients, model, inner, remedy)
            local()  # refuses a sharded model
            unwrapped = getattr(optimizer, "optimizer", optimizer)  # unwraps AcceleratedOptimizer
            make = partial(PeriodicAveraging, inner, unwrapped, schedule=local_sgd_steps, **settings)
        super().__init__(local, make)

    def step(self, loss: torch.Tensor | float | None = None, closure: Closure | None = None) -> Round | None:
        """Count one local step, unless gradients are still accumulated; average at the end of a round.

        Parameters
        ----------
        loss : tensor or float or None, optional
            Loss of this step on this rank.  Schedules that use the loss need it.
        closure : Closure or None, optional
            Closure of ``PeriodicAveraging.step``.  "auto" needs it, and ``step`` must then precede ``zero_grad``.

        Returns
        -------
        Round or None
            The record of the round if it ended, else None.

        Raises
        ------
        ValueError
            As ``PeriodicAveraging.step`` does.
        """
        if self.averaging is None or not self._accelerator.sync_gradients:
            return None
        return self.averaging.step(loss, closure)
