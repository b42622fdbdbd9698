"""Periodic averaging in the Trainer of transformers. ::

    trainer = Trainer(model=model, args=arguments, train_dataset=dataset)
    trainer.add_callback(AveragingCallback(trainer, schedule=8, operator=QSGD(levels=16)))
    trainer.train()

Gradients are not averaged, although the Trainer has wrapped the model in DistributedDataParallel.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Unpack

import torch

from bounds.extras import missing_extra
from bounds.schedules import Schedule

from ..averaging.periodic_averaging import PeriodicAveraging
from ..averaging.settings import Pacing, name_parts
from .keywords import AveragingKeywords, finish, innermost, local_gradients

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise missing_extra(error, __name__) or error from None

if TYPE_CHECKING:
    from transformers import Trainer

Batch = tuple[Any, Any]  # arguments of Trainer.training_step after the model


class AveragingCallback(TrainerCallback):
    """Callback that counts every step of the Trainer's optimizer as a local step and averages at the end of each round.

    Parameters
    ----------
    trainer : Trainer
        Trainer of the callback; its DistributedDataParallel then averages no gradients.
    schedule : int or Schedule or Pacing or {"auto"}, optional
        Local steps per round (>= 1), or a rule of ``PeriodicAveraging``.  With "auto" the Trainer recomputes the last
        step's loss when a measurement is due.
    **settings
        Keywords of ``PeriodicAveraging``: operator, exchange, merge, outer and others.

    Attributes
    ----------
    averaging
        The ``PeriodicAveraging`` of the training, whose transport counts bytes; None before the training.

    Raises
    ------
    ValueError
        At the start of the training: for a sharded model, "auto" with float16's gradient scaler, and settings that
        ``PeriodicAveraging`` refuses.

    Notes
    -----
    The averaging follows the optimizer's step and precedes the learning rate's.  When the training stops, the round is
    ended before the last evaluation and save.  Within a round the Trainer evaluates and saves rank 0's model.  A
    resumed training starts a new round, without states of feedback and outer momentum.  The same holds after a training
    that failed, was interrupted, or was restarted by the Trainer.
    """

    @name_parts(AveragingKeywords)
    def __init__(
        self,
        trainer: Trainer,
        *,
        schedule: int | Schedule | Literal["auto"] | Pacing = 1,
        **settings: Unpack[AveragingKeywords],
    ) -> None:
        self._trainer, self._pacing, self._settings = trainer, Pacing.of(schedule), settings
        self.averaging: PeriodicAveraging | None = None
        self._losses: list[torch.Tensor] = []
        self._batches: list[Batch] = []
        self._finished = True
        self._wrapped = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **event: Any) -> None:
        """Start all ranks with rank 0's model, and stop the averaging of gradients."""
        trainer = self._trainer
        self._leave()  # of a training that did not end
        if self._pacing.schedule == "auto" and trainer.accelerator.scaler is not None:
            raise ValueError(
                'schedule="auto" recomputes gradients, which the gradient scaler of fp16=True does not allow: '
                "give bf16=True, or another schedule"
            )
        model = innermost(trainer.model_wrapped)
        self._local_gradients()  # refuses a sharded model
        self.averaging = PeriodicAveraging(model, trainer.optimizer.optimizer, schedule=self._pacing, **self._settings)
        self._training_step, trainer.training_step = trainer.training_step, self._step_of_batch
        self._wrapped, self._finished = True, False

    def _local_gradients(self) -> AbstractContextManager[Any]:
        wrapped = self._trainer.model_wrapped
        return local_gradients(wrapped, innermost(wrapped), "leave fsdp and deepspeed out of TrainingArguments")

    def _leave(self) -> None:
        """Restore the Trainer's own step, and clear the losses of an unfinished optimizer step."""
        if self._wrapped and self._trainer.training_step == self._step_of_batch:
            self._trainer.training_step = self._training_step
        self._wrapped = False
        self._losses.clear()
        self._batches.clear()

    def _step_of_batch(self, model: torch.nn.Module, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        """Run the Trainer's step of one batch, and store its loss until the optimizer's step."""
        if self not in self._trainer.callback_handler.callbacks:  # removed after a training that did not end
            self._leave()
            return self._training_step(model, inputs, num_items_in_batch)
        with self._local_gradients():
            loss: torch.Tensor = self._training_step(model, inputs, num_items_in_batch)
        self._losses.append(loss)
        if self._pacing.schedule == "auto":
            self._batches.append((inputs, num_items_in_batch))
        return loss

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **event: Any) -> None:
        """Count a local step."""
        assert self.averaging is not None
        batches = tuple(self._batches)
        self.averaging.step(torch.stack(self._losses).sum(), lambda: self._again(batches))
        self._losses.clear()
        self._batches.clear()

    def _again(self, batches: tuple[Batch, ...]) -> torch.Tensor:
        """Recompute the gradient of a step as the Trainer does."""
        model, largest = self._trainer.model_wrapped, self._trainer.args.max_grad_norm
        with self._local_gradients():
            loss = torch.stack([self._training_step(model, *batch) for batch in batches]).sum()
        if largest > 0:
            self._trainer.accelerator.clip_grad_norm_(model.parameters(), largest)
        return loss

    def on_step_end(self, args: Any, state: Any, control: Any, **event: Any) -> None:
        """End the round if the training stops."""
        self._finish(control.should_training_stop)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **event: Any) -> None:
        """End the round if the training was stopped early."""
        self._finish(control.should_training_stop)

    def on_train_end(self, args: Any, state: Any, control: Any, **event: Any) -> None:
        """End the round and restore the Trainer."""
        self._finish(True)
        self._leave()

    def _finish(self, stops: bool) -> None:
        if stops and not self._finished and self.averaging is not None:
            finish(self.averaging)
            self._finished = True
