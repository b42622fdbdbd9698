"""Interface of a training problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from operators import Key

Draw = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Constants:
    """Constants of the theorems.

    Parameters
    ----------
    L : float
        Smoothness.
    sigma2 : float
        Variance of one worker's stochastic gradient.
    gap : float
        F(x_1) - inf F.
    exact : bool
        Whether each is known exactly or bounded from above for all x, so that theorems have a verdict.
    reason : str, optional
        Failed assumption or estimated constant, if not exact.
    mu : float, optional
        Strong convexity; 0 if there is none or it is unknown.
    heterogeneity : float, optional
        Mean over workers of ``|grad F_i(x*)|^2``; 0 if all workers have the same F.
    """

    L: float
    sigma2: float
    gap: float
    exact: bool
    reason: str = ""
    mu: float = 0.0
    heterogeneity: float = 0.0


@dataclass(frozen=True)
class Description:
    """Description of a workload's data, part of every record.

    Parameters
    ----------
    name : str
        Name of the data.
    synthetic : bool
        Whether a formula made the samples or the problem.
    samples : int, optional
        Number of training samples.
    held_out : int, optional
        Number of held-out samples.
    shape : tuple of int, optional
        Shape of one input.
    classes : int, optional
        Number of labels; 0 for a regression.
    sha256 : str, optional
        Checksum of all samples.
    sizes : tuple of int, optional
        Training samples of every worker; empty if all draw from all samples.
    """

    name: str
    synthetic: bool
    samples: int = 0
    held_out: int = 0
    shape: tuple[int, ...] = ()
    classes: int = 0
    sha256: str = ""
    sizes: tuple[int, ...] = ()


class Workload(ABC):
    """An optimisation problem: minimise F, the mean over workers of their objectives.

    Attributes
    ----------
    name : str
        Name in records and in the registry.
    eta : float
        Learning rate.

    Notes
    -----
    Every random number comes from a Key.  Worker i at step k uses ``Key(seed, step=k, rank=i)`` with any folds, so that
    a resumed run and a simulated worker draw the same numbers as an uninterrupted process.
    """

    name: ClassVar[str]
    eta: float

    @property
    def workers(self) -> int | None:
        """Number of workers of the problem; None for any number."""
        return None

    @abstractmethod
    def model(self) -> torch.nn.Module:
        """Return a new model at the starting point, the same in every process."""

    @abstractmethod
    def draw(self, *, key: Key) -> Draw:
        """Return the random tensors of one step of worker ``key.rank``; their shapes do not depend on the key.

        Parameters
        ----------
        key : Key
            Seeds the random stream.

        Raises
        ------
        ValueError
            If the problem has no worker of that rank.
        """

    @abstractmethod
    def loss_on(self, model: torch.nn.Module, draw: Draw) -> torch.Tensor:
        """Return the loss of one step as a scalar tensor on the model's device, a pure function of its arguments.

        Parameters
        ----------
        model : Module
            Model of ``model()``.
        draw : Draw
            Random tensors of one step.
        """

    @abstractmethod
    def objective(self, model: torch.nn.Module) -> torch.Tensor:
        """Return F as a scalar tensor.

        Parameters
        ----------
        model : Module
            Model of ``model()``.
        """

    @abstractmethod
    def constants(self) -> Constants:
        """Return L, sigma2, gap and other constants of this problem."""

    @abstractmethod
    def description(self) -> Description:
        """Return the description of the data or the formula behind F."""

    def loss(self, model: torch.nn.Module, *, key: Key) -> torch.Tensor:
        """Return a stochastic loss, whose gradient averaged over keys and workers is grad F.

        Parameters
        ----------
        model : Module
            Model of ``model()``.
        key : Key
            Seeds the random stream.
        """
        return self.loss_on(model, self.draw(key=key))

    def evaluate(self, model: torch.nn.Module) -> tuple[float, float]:
        """Return (F, ``|grad F|^2``) at the model's parameters.

        Parameters
        ----------
        model : Module
            Model of ``model()``.
        """
        value = self.objective(model)
        gradients = torch.autograd.grad(value, list(model.parameters()))
        return float(value.detach()), float(sum(g.double().square().sum() for g in gradients))

    def accuracy(self, model: torch.nn.Module) -> float | None:
        """Return the share of held-out samples that the model labels correctly; None without held-out samples.

        Parameters
        ----------
        model : Module
            Model of ``model()``.
        """
        return None

    def require_workers(self, m: int) -> None:
        """Raise ValueError if the problem does not allow m workers.

        Parameters
        ----------
        m : int
            Number of workers.
        """
        if self.workers not in (None, m):
            raise ValueError(f"{self.name} is made for {self.workers} workers; got {m}: give it a split over {m}")


class Loss(torch.nn.Module):
    """Loss of one step as a module of its draw, for ``torch.func`` and ``vmap``.

    Parameters
    ----------
    workload : Workload
        Workload of the loss.
    model : Module
        Model of ``model()``.
    """

    def __init__(self, workload: Workload, model: torch.nn.Module) -> None:
        super().__init__()
        self.workload, self.model = workload, model

    def forward(self, *draw: torch.Tensor) -> torch.Tensor:
        """Return the loss, a scalar.

        Parameters
        ----------
        *draw : tensor
            Random tensors of one step.
        """
        return self.workload.loss_on(self.model, draw)
