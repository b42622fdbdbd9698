"""Periodic averaging inside the Trainer of transformers. ::

    trainer = Trainer(model=model, args=arguments, train_dataset=dataset)
    trainer.add_callback(AveragingCallback(trainer, schedule=8, operator=QSGD(levels=16)))
    trainer.train()

Gradients stay on their rank, although the Trainer has put the model in DistributedDataParallel.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Unpack

import torch

from bounds.extras import missing_extra
from bounds.schedules import Schedule

from ..local_sgd.periodic_averaging import PeriodicAveraging
from .keywords import AveragingKeywords, finish
from .wrapping import innermost, local_gradients

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise missing_extra(error, __name__) or error from None

if TYPE_CHECKING:
    from transformers import Trainer

Batch = tuple[Any, Any]  # the arguments of Trainer.training_step behind the model


class AveragingCallback(TrainerCallback):
    """Every step of the Trainer's optimizer is a local step; the ranks average at the end of every round.

    Parameters
    ----------
    trainer : Trainer
        To which it is added; the Trainer's own DistributedDataParallel averages no gradients then.
    schedule : int or Schedule or {"auto"}, optional
        Local steps a round, or a rule, as ``PeriodicAveraging`` takes it.  For "auto" the Trainer computes the last
        step's loss once more where a measurement is due.
    **settings
        Of ``PeriodicAveraging``: operator, exchange, overlap, outer and the others.

    Attributes
    ----------
    averaging
        The ``PeriodicAveraging`` of the training, whose transport counts bytes; None before it.

    Raises
    ------
    ValueError
        When the training begins: for a sharded model, "auto" with float16's gradient scaler, and what
        ``PeriodicAveraging`` refuses.

    Notes
    -----
    The averaging comes after the optimizer's step and before the learning rate's.  When the training stops, the round
    is ended before the Trainer evaluates and saves for the last time; what it evaluates and saves within a round is
    the model of rank 0 there.  A training that is resumed begins a new round, without feedback and outer momentum.  So
    does one after a training that failed or was interrupted, and one that the Trainer restarts itself.
    """

    def __init__(
        self, trainer: Trainer, *, schedule: int | Schedule | Literal["auto"] = 1, **settings: Unpack[AveragingKeywords]
    ) -> None:
        self._trainer, self._schedule, self._settings = trainer, schedule, settings
        self.averaging: PeriodicAveraging | None = None
        self._losses: list[torch.Tensor] = []
        self._batches: list[Batch] = []
        self._finished = True
        self._wrapped = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **event: Any) -> None:
        """Let all ranks begin with rank 0's model, and gradients stay where they are."""
        trainer = self._trainer
        self._leave()  # of a training that did not end
        if self._schedule == "auto" and trainer.accelerator.scaler is not None:
            raise ValueError(
                'schedule="auto" computes a gradient again, which the gradient scaler of fp16=True does not allow: '
                "give bf16=True, or another schedule"
            )
        model = innermost(trainer.model_wrapped)
        self._local_gradients()  # refuses a sharded model
        self.averaging = PeriodicAveraging(
            model, trainer.optimizer.optimizer, schedule=self._schedule, **self._settings
        )
        self._training_step, trainer.training_step = trainer.training_step, self._step_of_batch
        self._wrapped, self._finished = True, False

    def _local_gradients(self) -> AbstractContextManager[Any]:
        wrapped = self._trainer.model_wrapped
        return local_gradients(wrapped, innermost(wrapped), "leave fsdp and deepspeed out of TrainingArguments")

    def _leave(self) -> None:
        """Restore the Trainer's own step, and forget the losses of an unfinished optimizer step."""
        if self._wrapped and self._trainer.training_step == self._step_of_batch:
            self._trainer.training_step = self._training_step
        self._wrapped = False
        self._losses.clear()
        self._batches.clear()

    def _step_of_batch(self, model: torch.nn.Module, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        """Make the Trainer's step of one batch, and remember its loss until the optimizer's."""
        if self not in self._trainer.callback_handler.callbacks:  # removed after a training that did not end
            self._leave()
            return self._training_step(model, inputs, num_items_in_batch)
        with self._local_gradients():
            loss: torch.Tensor = self._training_step(model, inputs, num_items_in_batch)
        self._losses.append(loss)
        if self._schedule == "auto":
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
        """Compute the gradient of a step again, as the Trainer has."""
        model, largest = self._trainer.model_wrapped, self._trainer.args.max_grad_norm
        with self._local_gradients():
            loss = torch.stack([self._training_step(model, *batch) for batch in batches]).sum()
        if largest > 0:
            self._trainer.accelerator.clip_grad_norm_(model.parameters(), largest)
        return loss

    def on_step_end(self, args: Any, state: Any, control: Any, **event: Any) -> None:
        """End the round with the training."""
        self._finish(control.should_training_stop)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **event: Any) -> None:
        """End the round with the training, if it was stopped early."""
        self._finish(control.should_training_stop)

    def on_train_end(self, args: Any, state: Any, control: Any, **event: Any) -> None:
        """Leave the Trainer as it was."""
        self._finish(True)
        self._leave()

    def _finish(self, stops: bool) -> None:
        if stops and not self._finished and self.averaging is not None:
            finish(self.averaging)
            self._finished = True
