"""Runs of transformers' Trainer; importing it takes seconds, which only the process that runs them should spend."""

import torch
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainingArguments

from gpu_validation.adapters.hugging_face import AveragingCallback

from .runs import LR, STEPS, TAU, Network, batches, outcome


class OwnBatches(Trainer):
    def get_train_dataloader(self):
        return DataLoader(batches(self.args.process_index), batch_size=None)


def trainer_of(folder, **arguments):
    settings = {"max_steps": STEPS, "max_grad_norm": 0.0, "logging_strategy": "no", **arguments}
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.5)
    constant = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    arguments = TrainingArguments(
        output_dir=str(folder),
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        **settings,
    )
    return OwnBatches(model=model, args=arguments, optimizers=(optimizer, constant))


def adapted(folder, settings, schedule=TAU, **arguments):
    trainer = trainer_of(folder, **arguments)
    callback = AveragingCallback(trainer, schedule=schedule, **settings)
    trainer.add_callback(callback)
    trainer.train()
    if int(trainer.args.world_size) > 1:
        assert type(trainer.model_wrapped).__name__ == "DistributedDataParallel", "the trap is there"
    return outcome(callback.averaging)


class StopAt(TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_log(self, args, state, control, **event):
        control.should_training_stop = state.global_step == self.step
