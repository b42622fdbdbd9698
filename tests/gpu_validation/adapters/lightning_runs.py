"""Runs of Lightning's Trainer; importing it takes seconds, which only the process that runs them should spend."""

import logging

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader

from gpu_validation.adapters.lightning import AveragingCallback

from .runs import LR, RANKS, STEPS, TAU, Network, batches, outcome

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Module(LightningModule):
    def __init__(self):
        super().__init__()
        self.network = Network()

    def training_step(self, batch, batch_idx):
        loss = self.network(**batch)["loss"]
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=LR, momentum=0.5)


def trainer_of(callback, wrapped=True, **arguments):
    strategy = DDPStrategy(cluster_environment=LightningEnvironment(), process_group_backend="gloo")
    return Trainer(
        accelerator="cpu",
        devices=RANKS if wrapped else 1,
        strategy=strategy if wrapped else "auto",
        max_steps=STEPS,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        callbacks=[callback],
        **arguments,
    )


def adapted(place, settings, schedule=TAU, wrapped=True, module=None, **arguments):
    module, callback = module or Module(), AveragingCallback(schedule=schedule, **settings)
    trainer = trainer_of(callback, wrapped, **arguments)
    trainer.fit(module, DataLoader(batches(place.rank), batch_size=None))
    assert trainer.world_size == (RANKS if wrapped else 1)
    return outcome(callback.averaging)
