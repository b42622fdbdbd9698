"""Train a linear model by DistributedDataParallel under torchrun, in the form of a tutorial of PyTorch.

Written anew with the methods and calls of ``distributed/ddp-tutorial-series/multigpu_torchrun.py`` in pytorch/examples,
for the CPU, with other data and another loss.  ``torchrun --nproc-per-node=2 ddp_tutorial.py 3 1``
"""

import argparse
import os

import torch
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class LinearDataset(Dataset):
    """Noisy values of a linear function at random points."""

    def __init__(self, size: int) -> None:
        draw = torch.Generator().manual_seed(0)
        self.points = torch.randn(size, 20, generator=draw)
        noise = torch.randn(size, 1, generator=draw)
        self.values = self.points @ torch.linspace(-1, 1, 20)[:, None] + 0.1 * noise

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.points[index], self.values[index]


class Trainer:
    def __init__(self, model, train_data, optimizer, save_every, snapshot_path):
        self.rank = int(os.environ["RANK"])
        self.model = model
        self.train_data = train_data
        self.optimizer = optimizer
        self.save_every = save_every
        self.snapshot_path = snapshot_path
        self.epochs_run = 0
        if os.path.exists(snapshot_path):
            self._load_snapshot()
        self.model = DistributedDataParallel(self.model)

    def _load_snapshot(self):
        snapshot = torch.load(self.snapshot_path)
        self.model.load_state_dict(snapshot["MODEL_STATE"])
        self.epochs_run = snapshot["EPOCHS_RUN"]
        print(f"rank {self.rank} resumes at epoch {self.epochs_run}")

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        loss = mse_loss(self.model(source), targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def _run_epoch(self, epoch):
        self.train_data.sampler.set_epoch(epoch)
        losses = [self._run_batch(source, targets) for source, targets in self.train_data]
        print(f"rank {self.rank}, epoch {epoch}: {len(losses)} steps, mean loss {sum(losses) / len(losses):.4f}")

    def _save_snapshot(self, epoch):
        snapshot = {"MODEL_STATE": self.model.module.state_dict(), "EPOCHS_RUN": epoch + 1}
        torch.save(snapshot, self.snapshot_path)

    def train(self, max_epochs):
        for epoch in range(self.epochs_run, max_epochs):
            self._run_epoch(epoch)
            if self.rank == 0 and epoch % self.save_every == 0:
                self._save_snapshot(epoch)


def load_train_objs():
    torch.manual_seed(0)
    train_set = LinearDataset(1200)
    model = torch.nn.Linear(20, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    return train_set, model, optimizer


def prepare_dataloader(dataset, batch_size):
    return DataLoader(dataset, batch_size=batch_size, shuffle=False, sampler=DistributedSampler(dataset))


def main(total_epochs, save_every, batch_size, snapshot_path="snapshot.pt"):
    init_process_group(backend="gloo")
    dataset, model, optimizer = load_train_objs()
    train_data = prepare_dataloader(dataset, batch_size)
    trainer = Trainer(model, train_data, optimizer, save_every, snapshot_path)
    trainer.train(total_epochs)
    del trainer  # DDP that outlives its group may wait for a thread of gloo for ever (PyTorch 2.13)
    destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("total_epochs", type=int)
    parser.add_argument("save_every", type=int)
    parser.add_argument("--batch_size", type=int, default=32)
    args = parser.parse_args()
    main(args.total_epochs, args.save_every, args.batch_size)
