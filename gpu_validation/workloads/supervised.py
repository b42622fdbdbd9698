"""Mean loss over samples: mini-batches by key, parts by worker, full passes in chunks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch

from operators import Key
from operators.random import uniform

from .data import Dataset, Source, Split, load
from .data.dataset import Samples, describe
from .workload import Description, Draw, Workload

CHUNK = 512  # samples per chunk of a full pass


@dataclass(frozen=True)
class Supervised(Workload):
    """F is the mean loss over all training samples plus decay/2 times the squared norm of the parameters.

    Parameters
    ----------
    source : Source
        Source of the samples.
    batch : int or None, optional
        Samples per step, drawn with replacement; None takes all of the worker's samples, without noise.
    eta : float, optional
        Learning rate.
    decay : float, optional
        Weight decay, >= 0.
    split : Split or None, optional
        Partition of the samples over workers; None lets every worker draw from all samples.

    Raises
    ------
    ValueError
        For batch < 1 or decay < 0.

    Notes
    -----
    With parts of unequal size a worker's loss is weighted by its share, so that the mean over workers is F.
    """

    source: Source
    batch: int | None = 32
    eta: float = 0.1
    decay: float = 0.0
    split: Split | None = None

    def __post_init__(self) -> None:
        if (self.batch is not None and self.batch < 1) or self.decay < 0:
            raise ValueError(f"need batch >= 1 or None, and decay >= 0; got {self.batch} and {self.decay}")

    @property
    def workers(self) -> int | None:
        """Number of parts of the split; None without a split."""
        return None if self.split is None else self.split.workers

    # -- one step ----------------------------------------------------------------------------------------
    def draw(self, *, key: Key) -> Draw:
        """Return (indices, weight): the samples, and the factor of their mean loss.

        With ``batch`` None there is one index per sample of the worker.
        """
        held = self.shard(key.rank)
        weight = 1.0 if self.split is None else len(held) * self.split.workers / len(self.data().train)
        chosen = held if self.batch is None else held[(uniform(key, self.batch) * len(held)).astype(np.int64)]
        return torch.from_numpy(chosen), torch.tensor(weight, dtype=torch.float64)

    def loss_on(self, model: torch.nn.Module, draw: Draw) -> torch.Tensor:
        """Return the weighted mean loss over the drawn samples plus the decay."""
        chosen, weight, *choices = draw
        first = next(model.parameters())
        samples = self.data(first.device).train
        chosen = chosen.to(first.device)
        inputs = self.inputs(samples.inputs[chosen], tuple(c.to(first.device) for c in choices)).to(first.dtype)
        total = self.losses(self.outputs(model, inputs), samples.targets[chosen]).mean()
        return weight.to(total) * total + self.penalty(model)

    @abstractmethod
    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss of every sample, shape (n,).

        Parameters
        ----------
        outputs : tensor
            Outputs of the model, one row per sample.
        targets : tensor
            Labels or values, one per sample.
        """

    def inputs(self, samples: torch.Tensor, choices: Draw) -> torch.Tensor:
        """Return the model's inputs for these samples.

        Parameters
        ----------
        samples : tensor
            Inputs of the data, one row per sample.
        choices : Draw
            Further entries of a draw; empty outside training.
        """
        return samples

    def outputs(self, model: torch.nn.Module, inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs of the model.

        Parameters
        ----------
        model : Module
            Model of ``model()``.
        inputs : tensor
            Result of ``inputs``.
        """
        return model(inputs)

    def penalty(self, model: torch.nn.Module) -> torch.Tensor:
        """Return decay/2 times the squared norm of all parameters.

        Parameters
        ----------
        model : Module
            Model of ``model()``.
        """
        parameters = list(model.parameters())
        if not self.decay:
            return torch.zeros((), dtype=parameters[0].dtype, device=parameters[0].device)
        return 0.5 * self.decay * torch.stack([p.square().sum() for p in parameters]).sum()

    # -- all samples -------------------------------------------------------------------------------------
    def objective(self, model: torch.nn.Module) -> torch.Tensor:
        """Return F in evaluation mode, with the graph of a whole pass; ``evaluate`` keeps that of one chunk."""
        with _evaluating(model):
            samples = self._training(model)
            parts = [self._chunk(model, samples, start).sum() for start in range(0, len(samples), CHUNK)]
            return torch.stack(parts).sum() / len(samples) + self.penalty(model)

    def evaluate(self, model: torch.nn.Module) -> tuple[float, float]:
        """Return (F, ``|grad F|^2``) at the model's parameters, in evaluation mode."""
        parameters = list(model.parameters())
        with _evaluating(model):
            samples = self._training(model)
            value = self.penalty(model)
            sums = self._gradients(value, parameters)
            total = float(value.detach())
            for start in range(0, len(samples), CHUNK):
                part = self._chunk(model, samples, start).sum() / len(samples)
                total += float(part.detach())
                for held, new in zip(sums, self._gradients(part, parameters), strict=True):
                    held += new
        return total, float(sum(g.square().sum() for g in sums))

    @staticmethod
    def _gradients(value: torch.Tensor, parameters: list[torch.nn.Parameter]) -> list[torch.Tensor]:
        if not value.requires_grad:  # no decay
            return [torch.zeros_like(p, dtype=torch.float64) for p in parameters]
        return [g.double() for g in torch.autograd.grad(value, parameters)]

    def accuracy(self, model: torch.nn.Module) -> float | None:
        """Return the share of held-out samples that the model labels correctly."""
        first = next(model.parameters())
        data = self.data(first.device)
        samples = data.held_out
        if not data.classes or not len(samples):
            return None
        right = 0
        with _evaluating(model), torch.no_grad():
            for start in range(0, len(samples), CHUNK):
                inputs = self.inputs(samples.inputs[start : start + CHUNK], ()).to(first.dtype)
                predicted = self.labels(self.outputs(model, inputs))
                right += int((predicted == samples.targets[start : start + CHUNK]).sum())
        return right / len(samples)

    def labels(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return the label of each row of outputs.

        Parameters
        ----------
        outputs : tensor
            Outputs of the model, one row per sample.
        """
        return outputs.argmax(dim=1)

    def _training(self, model: torch.nn.Module) -> Samples:
        return self.data(next(model.parameters()).device).train

    def _chunk(self, model: torch.nn.Module, samples: Samples, start: int) -> torch.Tensor:
        part = slice(start, start + CHUNK)
        inputs = self.inputs(samples.inputs[part], ()).to(next(model.parameters()).dtype)
        return self.losses(self.outputs(model, inputs), samples.targets[part])

    # -- data --------------------------------------------------------------------------------------------
    def data(self, device: torch.device = torch.device("cpu")) -> Dataset:  # noqa: B008  immutable
        """Return the samples on a device.

        Parameters
        ----------
        device : device, optional
            Device of the samples.
        """
        return load(self.source, device)

    def shard(self, rank: int | None) -> np.ndarray:
        """Return the indices of a worker's training samples, int64.

        Parameters
        ----------
        rank : int or None
            Index of the worker.

        Raises
        ------
        ValueError
            If the split has no such worker.
        """
        parts = _parts(self.source, self.split)
        if self.split is None:
            return parts[0]
        if rank is None or rank >= len(parts):
            raise ValueError(f"the split has workers 0 to {len(parts) - 1}; got rank {rank}")
        return parts[rank]

    def description(self) -> Description:
        """Return the description of the data, with the sizes of the workers' parts."""
        described = describe(self.source)
        if self.split is None:
            return described
        return replace(described, sizes=tuple(len(part) for part in _parts(self.source, self.split)))


@lru_cache(maxsize=32)
def _parts(source: Source, split: Split | None) -> tuple[np.ndarray, ...]:
    targets = load(source).train.targets.numpy()
    return (np.arange(len(targets)),) if split is None else split.parts(targets)


@contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Switch to evaluation mode inside the block; restore the mode afterwards."""
    before = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(before)
