"""Periodic averaging inside the Trainer of Lightning. ::

    trainer = Trainer(strategy="ddp", callbacks=[AveragingCallback(schedule=8, operator=QSGD(levels=16))])
    trainer.fit(module, batches)

Gradients stay on their rank, although Lightning has put the model in DistributedDataParallel.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Literal, Unpack

import torch

from bounds.extras import missing_extra
from bounds.schedules import Schedule

from ..local_sgd.periodic_averaging import PeriodicAveraging
from .keywords import AveragingKeywords, finish
from .wrapping import local_gradients

try:
    from lightning import Callback, LightningModule, Trainer
except ImportError as error:
    raise missing_extra(error, __name__) or error from None

Batch = tuple[Any, int]  # and its number in the epoch


class AveragingCallback(Callback):
    """Every batch after which an optimizer has stepped is a local step; the ranks average at the end of every round.

    Parameters
    ----------
    schedule : int or Schedule or {"auto"}, optional
        Local steps a round, or a rule, as ``PeriodicAveraging`` takes it.  For "auto" the last step's ``training_step``
        is called once more where a measurement is due, and logs nothing then.
    **settings
        Of ``PeriodicAveraging``: operator, exchange, overlap, outer and the others.

    Attributes
    ----------
    averaging
        The ``PeriodicAveraging`` of the training, whose transport counts bytes; None before it.

    Raises
    ------
    ValueError
        When the training begins: for a sharded model, "auto" with manual optimization or float16's gradient scaler, and
        what ``PeriodicAveraging`` refuses.

    Notes
    -----
    With ``strategy="ddp"`` Lightning divides the data, and DistributedDataParallel averages no gradients; with one
    device a process the script makes the process group and divides the data itself.  The averaging comes after the
    steps of the optimizer and of the learning rate.  The last round ends with the training, after the last validation;
    what is validated and saved within a round is this rank's model.  A training that is resumed begins a new round,
    without feedback and outer momentum; so does one after a training that failed or was interrupted.  Several
    optimizers are left as they are: settings that need one are refused.
    """

    def __init__(
        self, *, schedule: int | Schedule | Literal["auto"] = 1, **settings: Unpack[AveragingKeywords]
    ) -> None:
        self._schedule, self._settings = schedule, settings
        self.averaging: PeriodicAveraging | None = None
        self._losses: list[torch.Tensor] = []
        self._batches: list[Batch] = []
        self._local = ExitStack()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Let all ranks begin with rank 0's model, and gradients stay where they are."""
        self._leave()  # of a training that did not end
        scaled = getattr(trainer.precision_plugin, "scaler", None) is not None
        if self._schedule == "auto" and (scaled or not pl_module.automatic_optimization):
            raise ValueError(
                'schedule="auto" computes a gradient again, for which it needs automatic optimization and no gradient '
                'scaler: give precision="bf16-mixed" or "32-true", or another schedule'
            )
        local = local_gradients(
            trainer.strategy.model, pl_module, 'give the Trainer strategy="ddp", or one device in every process'
        )
        optimizer = trainer.optimizers[0] if len(trainer.optimizers) == 1 else None
        self.averaging = PeriodicAveraging(pl_module, optimizer, schedule=self._schedule, **self._settings)
        self._local.enter_context(local)
        self._optimizer_steps = trainer.global_step

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count a local step, unless the batch was only accumulated."""
        assert self.averaging is not None
        if outputs:
            self._losses.append(outputs["loss"].detach())
        if self._schedule == "auto":
            self._batches.append((batch, batch_idx))
        if trainer.global_step == self._optimizer_steps:
            return
        self._optimizer_steps = trainer.global_step
        loss = torch.stack(self._losses).sum() if self._losses else None
        batches = tuple(self._batches)
        self.averaging.step(loss, lambda: _gradient_again(trainer, pl_module, batches))
        self._losses.clear()
        self._batches.clear()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End the round with the training."""
        assert self.averaging is not None
        finish(self.averaging)
        self._leave()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Leave the model's wrapper as it was."""
        self._leave()

    def _leave(self) -> None:
        self._local.close()
        self._losses.clear()
        self._batches.clear()


def _gradient_again(trainer: Trainer, pl_module: LightningModule, batches: tuple[Batch, ...]) -> torch.Tensor:
    """Compute the gradient of a step again, as Lightning has, but for what ``training_step`` logs."""
    numbered = "batch_idx" in inspect.signature(pl_module.training_step).parameters
    losses = []
    pl_module.log = lambda *arguments, **keywords: None
    try:
        for batch, number in batches:
            output = trainer.strategy.training_step(*((batch, number) if numbered else (batch,)))
            loss = (output["loss"] if isinstance(output, Mapping) else output) / trainer.accumulate_grad_batches
            loss.backward()
            losses.append(loss.detach())
    finally:
        del pl_module.log
    pl_module.configure_gradient_clipping(
        trainer.optimizers[0], trainer.gradient_clip_val, trainer.gradient_clip_algorithm
    )
    return torch.stack(losses).sum()
