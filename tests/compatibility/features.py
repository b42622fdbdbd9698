"""Features of PyTorch that training scripts use, each as the small training script that uses it.

A script is the same whether its ranks average their models or exchange gradients; it is told what to call for that.
"""

from __future__ import annotations

import contextlib
from typing import ClassVar

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from gpu_validation.averaging.merge.rules import Blocking

STEPS, BATCH, INPUTS, CLASSES = 12, 8, 6, 3


class Samples(TensorDataset):
    """Of one rank; at module level, for loaders' workers."""

    def __init__(self, rank):
        draw = torch.Generator().manual_seed(100 + rank)
        x = torch.randn(STEPS * BATCH, INPUTS, generator=draw)
        super().__init__(x, (x[:, :CLASSES] + 0.1 * x[:, CLASSES:]).argmax(1))


class Script:
    """A training script without any feature; a feature overrides what it changes."""

    averaging: ClassVar[dict] = {}  # settings of PeriodicAveraging beside the schedule
    wrapping: ClassVar[dict] = {}  # and of DistributedDataParallel

    def __init__(self, rank):
        self.rank = rank
        torch.manual_seed(0)
        self.network = self.built()
        self.model = self.network  # what the loop calls
        self.optimizer = self.optimizer_of(self.network)
        torch.manual_seed(10 + rank)  # dropout, as every rank draws its own

    def built(self):
        return nn.Sequential(nn.Linear(INPUTS, 16), nn.ReLU(), nn.Linear(16, CLASSES))

    def optimizer_of(self, network):
        return torch.optim.SGD(network.parameters(), lr=0.2, momentum=0.9)

    def prepare(self):
        """What is done with the model once it is made ready for several ranks."""

    def loader(self):
        return DataLoader(Samples(self.rank), batch_size=BATCH)

    def loss(self, x, y):
        return cross_entropy(self.model(x), y)

    def step(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def after(self, loss):
        """After the step and, where models are averaged, after ``averaging.step()``."""

    def train(self, communicate):
        """Losses of the run; ``communicate(loss)`` stands where ``averaging.step(loss)`` does."""
        losses = []
        for x, y in self.loader():
            loss = self.loss(x, y)
            self.step(loss)
            communicate(loss.detach())
            self.after(loss.detach())
            losses.append(float(loss.detach()))
        return losses

    def state(self):
        """Everything that the script would save."""
        return [tensor.detach().clone() for tensor in self.network.state_dict().values()]


class Autocast(Script):
    def loss(self, x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return cross_entropy(self.model(x), y)


class LossScaling(Script):
    """Scales up to where gradients are infinite and the step is left out."""

    init_scale = 2.0**8

    def __init__(self, rank):
        super().__init__(rank)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=self.init_scale, growth_interval=4)

    def loss(self, x, y):
        with torch.autocast("cpu", dtype=torch.float16):
            return cross_entropy(self.model(x), y)

    def step(self, loss):
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def state(self):
        return [*super().state(), torch.tensor(self.scaler.get_scale())]


class InfiniteGradients(LossScaling):
    init_scale = 2.0**24  # beyond float16: the first steps are left out


class ClippedNorm(Script):
    def step(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), 0.3)
        self.optimizer.step()


class ClippedValue(Script):
    def step(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.network.parameters(), 0.02)
        self.optimizer.step()


class Accumulation(Script):
    """Two batches a step; only steps of the optimizer are local steps, only the second batch's gradient travels."""

    def train(self, communicate):
        losses = []
        for number, (x, y) in enumerate(self.loader()):
            last = number % 2 == 1
            with contextlib.nullcontext() if last or self.model is self.network else self.model.no_sync():
                loss = self.loss(x, y) / 2
                loss.backward()
            if last:
                self.optimizer.step()
                self.optimizer.zero_grad()
                communicate(loss.detach())
            losses.append(float(loss.detach()))
        return losses


class Schedulers(Script):
    """One that goes by steps, one that goes by losses, which differ from rank to rank."""

    def __init__(self, rank):
        super().__init__(rank)
        self.cosine = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, max_lr=0.3, total_steps=STEPS + 1)

    def after(self, loss):
        self.cosine.step()

    def state(self):
        return [*super().state(), torch.tensor(self.cosine.get_last_lr())]


class WarmUp(Script):
    """From a learning rate of 0 to the whole one at a third of the run."""

    def __init__(self, rank):
        super().__init__(rank)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda k: min(1.0, 3 * k / STEPS))
        assert self.scheduler.get_last_lr() == [0.0]

    def after(self, loss):
        self.scheduler.step()

    def state(self):
        return [*super().state(), torch.tensor(self.scheduler.get_last_lr())]


class Compiled(Script):
    """Graphs of forward and backward pass, carried out one operation at a time: compilers take half a minute."""

    backend = "aot_eager"

    def prepare(self):
        torch.compiler.reset()
        self.model = torch.compile(self.model, backend=self.backend)


class Inductor(Compiled):
    backend = "inductor"


class MovingAverage(Script):
    """An EMA of the parameters, updated after each step."""

    def prepare(self):
        self.ema = torch.optim.swa_utils.AveragedModel(
            self.network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.8), use_buffers=True
        )

    def after(self, loss):
        self.ema.update_parameters(self.network)

    def state(self):
        return [*super().state(), *(tensor.detach().clone() for tensor in self.ema.state_dict().values())]


class BatchNorm(Script):
    def built(self):
        return nn.Sequential(nn.Linear(INPUTS, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, CLASSES))


class WithTables(nn.Module):
    """Buffers that no step changes: a mask, offsets, a scale, and a cache that no checkpoint has."""

    def __init__(self):
        super().__init__()
        self.inwards, self.outwards = nn.Linear(INPUTS, 16), nn.Linear(16, CLASSES)
        self.register_buffer("mask", torch.arange(16) % 4 > 0)
        self.register_buffer("offsets", torch.arange(2**40, 2**40 + 16))
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 16))
        self.register_buffer("cache", torch.arange(16.0), persistent=False)

    def forward(self, x):
        shift = (self.offsets - 2**40 - self.cache) * 0.1  # 0
        return self.outwards(torch.relu(self.inwards(x)) * self.mask * self.scale + shift)


class ConstantBuffers(Script):
    def built(self):
        return WithTables()

    def state(self):
        fresh = WithTables()
        assert all(map(torch.equal, self.network.buffers(), fresh.buffers()))
        return super().state()


class Counting(nn.Module):
    """Buffers that every forward pass changes, on each rank by its own data."""

    def __init__(self):
        super().__init__()
        self.inwards, self.outwards = nn.Linear(INPUTS, 16), nn.Linear(16, CLASSES)
        self.register_buffer("positive", torch.zeros(16, dtype=torch.int64))
        self.register_buffer("level", torch.ones(16))

    def forward(self, x):
        hidden = self.inwards(x)
        with torch.no_grad():
            self.positive += (hidden > 0).sum(0)
            self.level.mul_(0.9).add_(hidden.abs().mean(0), alpha=0.1)
        return self.outwards(torch.relu(hidden) / self.level.clone())


class ChangingBuffers(Script):
    def built(self):
        return Counting()


class Experts(nn.Module):
    """Every rank uses one of two experts, so that the other one has neither gradient nor moment there."""

    def __init__(self, rank):
        super().__init__()
        self.rank = rank
        self.experts = nn.ModuleList([nn.Linear(INPUTS, 16) for _ in range(2)])
        self.outwards = nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.outwards(torch.relu(self.experts[self.rank % 2](x)))


class DifferingStates(Script):
    """Losses tell of the moments: those after the second averaging depend on them."""

    averaging: ClassVar[dict] = {"merge": Blocking(optimizer_state="average")}
    wrapping: ClassVar[dict] = {"find_unused_parameters": True}

    def built(self):
        return Experts(self.rank)


class Tied(nn.Module):
    """Two layers by one matrix, which has two names and is one parameter."""

    def __init__(self):
        super().__init__()
        self.inwards, self.up = nn.Linear(INPUTS, 16), nn.Linear(16, 16)
        self.down, self.outwards = nn.Linear(16, 16, bias=False), nn.Linear(16, CLASSES)
        self.down.weight = self.up.weight

    def forward(self, x):
        return self.outwards(torch.relu(self.down(torch.relu(self.up(self.inwards(x))))))


class WeightTying(Script):
    def built(self):
        return Tied()

    def state(self):
        assert self.network.down.weight is self.network.up.weight
        return super().state()


class Frozen(Script):
    def built(self):
        network = super().built()
        network[0].requires_grad_(False)
        return network

    def optimizer_of(self, network):
        return torch.optim.SGD([p for p in network.parameters() if p.requires_grad], lr=0.2, momentum=0.9)


class LoaderWorkers(Script):
    def loader(self):
        return DataLoader(Samples(self.rank), batch_size=BATCH, num_workers=2, timeout=60)


class Checkpointing(Script):
    """Activations are computed again in the backward pass, with dropout's own random numbers."""

    def built(self):
        network = super().built()
        return nn.Sequential(Recomputed(nn.Sequential(network[0], network[1], nn.Dropout(0.2))), network[2])


class Recomputed(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False)


class ParameterGroups(Script):
    """AdamW in its fused form, without decay of biases."""

    def optimizer_of(self, network):
        matrices = [p for p in network.parameters() if p.ndim > 1]
        biases = [p for p in network.parameters() if p.ndim == 1]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": biases, "weight_decay": 0.0, "lr": 0.01}]
        return torch.optim.AdamW(groups, lr=0.02, fused=True)


FEATURES = {
    "mixed precision (`torch.autocast`)": Autocast,
    "loss scaling (`GradScaler`)": LossScaling,
    "clipping by norm": ClippedNorm,
    "clipping by value": ClippedValue,
    "gradient accumulation": Accumulation,
    "learning-rate schedulers": Schedulers,
    "warm-up from 0, fixed tau": WarmUp,
    "`torch.compile`": Compiled,
    "moving average of the weights (EMA)": MovingAverage,
    "BatchNorm": BatchNorm,
    "constant buffers (masks, tables, hashes)": ConstantBuffers,
    "buffers that change (counters, running means)": ChangingBuffers,
    'unused branches, mixtures of experts, `optimizer_state="average"`': DifferingStates,
    "weight tying": WeightTying,
    "frozen parameters": Frozen,
    "`DataLoader` workers": LoaderWorkers,
    "activation checkpointing, dropout": Checkpointing,
    "parameter groups, fused AdamW": ParameterGroups,
}
"""By their names in the table of docs/guides/compatibility.md; other rows have tests elsewhere."""
