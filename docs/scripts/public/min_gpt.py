"""Train a small language model of characters by DistributedDataParallel, in the form of an example of PyTorch.

Written anew with the classes, methods and calls of ``distributed/minGPT-ddp`` in pytorch/examples, for the CPU and in
one file, with a text that is drawn here.  ``torchrun --nproc-per-node=2 min_gpt.py``
"""

import os
import random
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, random_split
from torch.utils.data.distributed import DistributedSampler


@dataclass
class DataConfig:
    characters: int = 1000
    block_size: int = 16
    train_split: float = 0.9


class CharDataset(Dataset):
    """Windows of a text, each with the same window one character later."""

    def __init__(self, config: DataConfig) -> None:
        words = ["few", "bits", "and", "rounds", "are", "enough", "for", "many", "workers"]
        text = " ".join(random.Random(0).choices(words, k=config.characters))[: config.characters]
        letters = sorted(set(text))
        self.block_size, self.vocab_size = config.block_size, len(letters)
        self.tokens = torch.tensor([letters.index(letter) for letter in text])

    def __len__(self) -> int:
        return len(self.tokens) - self.block_size

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        window = self.tokens[index : index + self.block_size + 1]
        return window[:-1], window[1:]


@dataclass
class GPTConfig:
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 32
    vocab_size: int = 0
    block_size: int = 0
    dropout: float = 0.1


class Block(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.attn = nn.MultiheadAttention(config.n_embd, config.n_head, dropout=config.dropout, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 4 * config.n_embd),
            nn.GELU(),
            nn.Linear(4 * config.n_embd, config.n_embd),
            nn.Dropout(config.dropout),
        )
        future = torch.ones(config.block_size, config.block_size, dtype=torch.bool).triu(1)
        self.register_buffer("future", future)

    def forward(self, x):
        size = x.shape[1]
        normed = self.ln1(x)
        x = x + self.attn(normed, normed, normed, attn_mask=self.future[:size, :size], need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.tok_emb = nn.Embedding(config.vocab_size, config.n_embd)
        self.pos_emb = nn.Parameter(torch.zeros(1, config.block_size, config.n_embd))
        self.drop = nn.Dropout(config.dropout)
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.n_layer)))
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx, targets=None):
        x = self.drop(self.tok_emb(idx) + self.pos_emb[:, : idx.shape[1]])
        logits = self.head(self.ln_f(self.blocks(x)))
        loss = None if targets is None else cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss


@dataclass
class OptimizerConfig:
    learning_rate: float = 3e-3
    weight_decay: float = 0.1


def create_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.95))


@dataclass
class TrainerConfig:
    max_epochs: int = 2
    batch_size: int = 32
    grad_norm_clip: float = 1.0
    snapshot_path: str = "snapshot.pt"
    save_every: int = 1


@dataclass
class Snapshot:
    model_state: dict[str, torch.Tensor]
    optimizer_state: dict[str, Any]
    finished_epoch: int


class Trainer:
    def __init__(self, config: TrainerConfig, model, optimizer, train_dataset, test_dataset=None):
        self.config = config
        self.global_rank = int(os.environ["RANK"])
        self.train_loader = self._prepare_dataloader(train_dataset)
        self.test_loader = self._prepare_dataloader(test_dataset) if test_dataset else None
        self.epochs_run = 0
        self.model = model
        self.optimizer = optimizer
        self._load_snapshot()
        self.model = DistributedDataParallel(self.model)

    def _prepare_dataloader(self, dataset):
        return DataLoader(dataset, batch_size=self.config.batch_size, sampler=DistributedSampler(dataset))

    def _load_snapshot(self):
        if not os.path.exists(self.config.snapshot_path):
            return
        snapshot = Snapshot(**torch.load(self.config.snapshot_path))
        self.model.load_state_dict(snapshot.model_state)
        self.optimizer.load_state_dict(snapshot.optimizer_state)
        self.epochs_run = snapshot.finished_epoch

    def _run_batch(self, source, targets, train=True):
        with torch.set_grad_enabled(train):
            _, loss = self.model(source, targets)
        if train:
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.grad_norm_clip)
            self.optimizer.step()
        return loss.item()

    def _run_epoch(self, epoch, dataloader, train=True):
        dataloader.sampler.set_epoch(epoch)
        losses = [self._run_batch(source, targets, train) for source, targets in dataloader]
        kind = "train" if train else "test"
        print(f"rank {self.global_rank}, epoch {epoch}: {kind} loss {sum(losses) / len(losses):.4f}")

    def _save_snapshot(self, epoch):
        raw_model = self.model.module if hasattr(self.model, "module") else self.model
        snapshot = Snapshot(raw_model.state_dict(), self.optimizer.state_dict(), epoch)
        torch.save(asdict(snapshot), self.config.snapshot_path)

    def train(self):
        for epoch in range(self.epochs_run + 1, self.config.max_epochs + 1):
            self._run_epoch(epoch, self.train_loader)
            if self.global_rank == 0 and epoch % self.config.save_every == 0:
                self._save_snapshot(epoch)
            if self.test_loader:
                self._run_epoch(epoch, self.test_loader, train=False)


def get_train_objs(gpt_config: GPTConfig, optimizer_config: OptimizerConfig, data_config: DataConfig):
    dataset = CharDataset(data_config)
    train_size = int(len(dataset) * data_config.train_split)
    train_set, test_set = random_split(dataset, [train_size, len(dataset) - train_size])
    gpt_config.vocab_size, gpt_config.block_size = dataset.vocab_size, dataset.block_size
    model = GPT(gpt_config)
    return model, create_optimizer(model, optimizer_config), train_set, test_set


def main():
    init_process_group("gloo")
    torch.manual_seed(0)  # all ranks split the text alike
    model, optimizer, train_set, test_set = get_train_objs(GPTConfig(), OptimizerConfig(), DataConfig())
    trainer = Trainer(TrainerConfig(), model, optimizer, train_set, test_set)
    trainer.train()
    del trainer  # DDP that outlives its group may wait for a thread of gloo for ever (PyTorch 2.13)
    destroy_process_group()


if __name__ == "__main__":
    main()
