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

Inside ``with`` gradients stay on their rank, although accelerate has put the model in DistributedDataParallel.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Unpack

import torch

from bounds.schedules import Schedule

from ..local_sgd.config import whole_number
from ..local_sgd.gradient_probe import Closure
from ..local_sgd.periodic_averaging import PeriodicAveraging
from ..records.round import Round
from .keywords import AveragingKeywords, finish
from .wrapping import innermost, local_gradients

if TYPE_CHECKING:
    from accelerate import Accelerator


class LocalSGD:
    """Local steps inside ``with``, averaged every ``local_sgd_steps`` and at its end.

    Parameters
    ----------
    accelerator : Accelerator
        Prepared for one process, or several with a model each; with one process alone nothing is averaged.
    model : Module
        As ``accelerator.prepare`` returned it.
    local_sgd_steps : int or Schedule or {"auto"}
        Steps of the optimizer a round, or a rule; "auto" needs a closure in ``step``.
    enabled : bool, optional
        Whether anything is done at all; without it gradients are averaged as accelerate does.
    optimizer : Optimizer or None, optional
        Prepared or not; needed by what ``PeriodicAveraging`` needs one for.
    **settings
        Of ``PeriodicAveraging``: operator, exchange, overlap, outer and the others.

    Attributes
    ----------
    averaging
        The ``PeriodicAveraging``, whose transport counts bytes; None where nothing is averaged.

    Raises
    ------
    ValueError
        For a model that is sharded or pipelined over the ranks, and what ``PeriodicAveraging`` refuses.

    Notes
    -----
    A batch whose gradients are only accumulated is no local step here; accelerate's own class counts every call.  An
    error inside ``with`` is raised at once, without an averaging, for which the other ranks may not come.  The next
    ``with`` of the same object then begins as the first did: from rank 0's model, without feedback and outer momentum.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        model: torch.nn.Module,
        local_sgd_steps: int | Schedule | Literal["auto"],
        enabled: bool = True,
        *,
        optimizer: torch.optim.Optimizer | None = None,
        **settings: Unpack[AveragingKeywords],
    ) -> None:
        if not isinstance(local_sgd_steps, Schedule | str):
            local_sgd_steps = whole_number("local_sgd_steps", local_sgd_steps)
        self._accelerator = accelerator
        self.averaging: PeriodicAveraging | None = None
        self._local: Callable[[], AbstractContextManager[Any]] = nullcontext
        self._entered, self._failed = ExitStack(), False
        if enabled and accelerator.num_processes > 1:
            inner = innermost(model)
            remedy = "configure accelerate for several processes without DeepSpeed, FSDP or Megatron-LM"
            self._local = partial(local_gradients, model, inner, remedy)
            self._local()  # refuses a sharded model
            unwrapped = getattr(optimizer, "optimizer", optimizer)  # inside AcceleratedOptimizer
            self._make = partial(PeriodicAveraging, inner, unwrapped, schedule=local_sgd_steps, **settings)
            self.averaging = self._make()

    def __enter__(self) -> LocalSGD:
        if self.averaging is not None and self._failed:
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

    def step(self, loss: torch.Tensor | float | None = None, closure: Closure | None = None) -> Round | None:
        """Count one local step, unless gradients are still accumulated; average at the end of a round.

        Parameters
        ----------
        loss : tensor or float or None, optional
            Of this step, on this rank; needed by schedules that look at it.
        closure : Closure or None, optional
            As ``PeriodicAveraging.step`` takes it; "auto" needs it, and ``step`` is then called before ``zero_grad``.

        Returns
        -------
        Round or None
            The round's account, or None.

        Raises
        ------
        ValueError
            As ``PeriodicAveraging.step`` does.
        """
        if self.averaging is None or not self._accelerator.sync_gradients:
            return None
        return self.averaging.step(loss, closure)
