"""Periodic averaging in the Trainer of Lightning. ::

    trainer = Trainer(strategy="ddp", callbacks=[AveragingCallback(schedule=8, operator=QSGD(levels=16))])
    trainer.fit(module, batches)

Gradients are not averaged, although Lightning has wrapped the model in DistributedDataParallel.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Literal, Unpack

import torch

from bounds.extras import missing_extra
from bounds.schedules import Schedule

from ..averaging.periodic_averaging import PeriodicAveraging
from ..averaging.settings import Pacing, name_parts
from .keywords import AveragingKeywords, finish, local_gradients

try:
    from lightning import Callback, LightningModule, Trainer
except ImportError as error:
    raise missing_extra(error, __name__) or error from None

Batch = tuple[Any, int]  # a batch and its index in the epoch


class AveragingCallback(Callback):
    """Callback that counts every batch with an optimizer step as a local step and averages at the end of each round.

    Parameters
    ----------
    schedule : int or Schedule or Pacing or {"auto"}, optional
        Local steps per round (>= 1), or a rule of ``PeriodicAveraging``.  With "auto" the last step's ``training_step``
        is called again when a measurement is due, without logging.
    **settings
        Keywords of ``PeriodicAveraging``: operator, exchange, merge, outer and others.

    Attributes
    ----------
    averaging
        The ``PeriodicAveraging`` of the training, whose transport counts bytes; None before the training.

    Raises
    ------
    ValueError
        At the start of the training: for a sharded model, "auto" with manual optimization or float16's gradient scaler,
        and settings that ``PeriodicAveraging`` refuses.

    Notes
    -----
    With ``strategy="ddp"`` Lightning splits the data, and DistributedDataParallel averages no gradients.  With one
    device per process the script creates the process group and splits the data itself.  The averaging follows the steps
    of optimizer and learning rate.  The last round ends with the training, after the last validation.  Within a round
    this rank's model is validated and saved.  A resumed training starts a new round, without states of feedback and
    outer momentum.  The same holds after a training that failed or was interrupted.  With several optimizers, settings
    that need one are refused.
    """

    @name_parts(AveragingKeywords)
    def __init__(
        self, *, schedule: int | Schedule | Literal["auto"] | Pacing = 1, **settings: Unpack[AveragingKeywords]
    ) -> None:
        self._pacing, self._settings = Pacing.of(schedule), settings
        self.averaging: PeriodicAveraging | None = None
        self._losses: list[torch.Tensor] = []
        self._batches: list[Batch] = []
        self._local = ExitStack()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start all ranks with rank 0's model, and stop the averaging of gradients."""
        self._leave()  # of a training that did not end
        scaled = getattr(trainer.precision_plugin, "scaler", None) is not None
        if self._pacing.schedule == "auto" and (scaled or not pl_module.automatic_optimization):
            raise ValueError(
                'schedule="auto" recomputes gradients, which needs automatic optimization and no gradient '
                'scaler: give precision="bf16-mixed" or "32-true", or another schedule'
            )
        local = local_gradients(
            trainer.strategy.model, pl_module, 'give the Trainer strategy="ddp", or one device in every process'
        )
        optimizer = trainer.optimizers[0] if len(trainer.optimizers) == 1 else None
        self.averaging = PeriodicAveraging(pl_module, optimizer, schedule=self._pacing, **self._settings)
        self._local.enter_context(local)
        self._optimizer_steps = trainer.global_step

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count a local step, unless the batch was only accumulated."""
        assert self.averaging is not None
        if outputs:
            self._losses.append(outputs["loss"].detach())
        if self._pacing.schedule == "auto":
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
        """Restore the model's wrapper."""
        self._leave()

    def _leave(self) -> None:
        self._local.close()
        self._losses.clear()
        self._batches.clear()


def _gradient_again(trainer: Trainer, pl_module: LightningModule, batches: tuple[Batch, ...]) -> torch.Tensor:
    """Recompute the gradient of a step as Lightning does, without the logs of ``training_step``."""
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
