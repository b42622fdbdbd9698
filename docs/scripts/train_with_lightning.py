import torch
from lightning import LightningModule, Trainer
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from gpu_validation.adapters.lightning import AveragingCallback
from gpu_validation.workloads.digits import digits
from operators import QSGD


class Digits(LightningModule):
    def __init__(self):
        super().__init__()
        self.network = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))

    def training_step(self, batch, batch_idx):
        return cross_entropy(self.network(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


torch.manual_seed(0)
images, labels = digits()
module, callback = Digits(), AveragingCallback(schedule=8, operator=QSGD(levels=16))
trainer = Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, callbacks=[callback], logger=False)
trainer.fit(module, DataLoader(TensorDataset(images[:1280], labels[:1280]), batch_size=32))

sent = callback.averaging.transport.payload_bytes
torch.save((module.network.state_dict(), sent), f"rank-{trainer.global_rank}.pt")
