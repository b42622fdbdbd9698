"""What a training run needs to know of its problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from operators import Key

Draw = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Constants:
    """The constants of the theorems.

    Parameters
    ----------
    L : float
        Smoothness.
    sigma2 : float
        Variance of one worker's stochastic gradient.
    gap : float
        F(x_1) - inf F.
    exact : bool
        True if each is known exactly or bounded from above for all x, so that a theorem may judge.
    reason : str, optional
        Which assumption is not met, or which constant is only estimated, if not exact.
    mu : float, optional
        Strong convexity; 0 where there is none or it is not known.
    heterogeneity : float, optional
        mean over workers of ``|grad F_i(x*)|^2``; 0 where all workers draw from the same F.
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
    """What a workload is trained on; part of every record of it.

    Parameters
    ----------
    name : str
        Name of the data in records.
    synthetic : bool
        True if the samples, or the whole problem, were made by a formula.
    samples : int, optional
        Number of training samples.
    held_out : int, optional
        Number of samples kept aside for the accuracy.
    shape : tuple of int, optional
        Shape of one input.
    classes : int, optional
        Number of labels, 0 for a regression.
    sha256 : str, optional
        Checksum over all samples, held-out ones too.
    sizes : tuple of int, optional
        Training samples of every worker, empty where all draw from the whole set.
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
    """One optimisation problem: minimise F, the mean over workers of what each of them sees.

    Attributes
    ----------
    name : str
        Used in records and in the registry.
    eta : float
        Its learning rate.

    Notes
    -----
    Every random number comes from a Key; worker i at step k uses ``Key(seed, step=k, rank=i)``, folded at will, so
    that a resumed run and a simulated worker see what the uninterrupted process would have seen.
    """

    name: ClassVar[str]
    eta: float

    @property
    def workers(self) -> int | None:
        """The number of workers the problem is made for; None if any number may take part."""
        return None

    @abstractmethod
    def model(self) -> torch.nn.Module:
        """Return a new model at the starting point, the same in every process."""

    @abstractmethod
    def draw(self, *, key: Key) -> Draw:
        """Return everything random of one step of worker ``key.rank``, as tensors whose shapes do not depend on the
        key.

        Parameters
        ----------
        key : Key
            Stream of random numbers.

        Raises
        ------
        ValueError
            If the problem has no worker of that rank.
        """

    @abstractmethod
    def loss_on(self, model: torch.nn.Module, draw: Draw) -> torch.Tensor:
        """Return the loss of one step, a scalar tensor on the model's device; a function of its arguments alone.

        Parameters
        ----------
        model : Module
            As ``model()`` makes it.
        draw : Draw
            Everything random of one step.
        """

    @abstractmethod
    def objective(self, model: torch.nn.Module) -> torch.Tensor:
        """Return F itself, as a scalar tensor.

        Parameters
        ----------
        model : Module
            As ``model()`` makes it.
        """

    @abstractmethod
    def constants(self) -> Constants:
        """Return L, sigma2 and gap of this problem."""

    @abstractmethod
    def description(self) -> Description:
        """Return the data, or the formula, behind F."""

    def loss(self, model: torch.nn.Module, *, key: Key) -> torch.Tensor:
        """Return a stochastic loss; its gradient, averaged over keys and workers, is grad F.

        Parameters
        ----------
        model : Module
            As ``model()`` makes it.
        key : Key
            Stream of random numbers.
        """
        return self.loss_on(model, self.draw(key=key))

    def evaluate(self, model: torch.nn.Module) -> tuple[float, float]:
        """Return (F, ``|grad F|^2``) at the model's parameters.

        Parameters
        ----------
        model : Module
            As ``model()`` makes it.
        """
        value = self.objective(model)
        gradients = torch.autograd.grad(value, list(model.parameters()))
        return float(value.detach()), float(sum(g.double().square().sum() for g in gradients))

    def accuracy(self, model: torch.nn.Module) -> float | None:
        """Return the share of the held-out samples that the model labels correctly; None where nothing is held out.

        Parameters
        ----------
        model : Module
            As ``model()`` makes it.
        """
        return None

    def require_workers(self, m: int) -> None:
        """Raise ValueError if the problem is not made for m workers.

        Parameters
        ----------
        m : int
            Number of workers.
        """
        if self.workers not in (None, m):
            raise ValueError(f"{self.name} is made for {self.workers} workers; got {m}: give it a split over {m}")


class Loss(torch.nn.Module):
    """The loss of one step as a module called with its draw, the form that ``torch.func`` and ``vmap`` ask for.

    Parameters
    ----------
    workload : Workload
        Whose loss it is.
    model : Module
        As ``model()`` makes it.
    """

    def __init__(self, workload: Workload, model: torch.nn.Module) -> None:
        super().__init__()
        self.workload, self.model = workload, model

    def forward(self, *draw: torch.Tensor) -> torch.Tensor:
        """Return a scalar.

        Parameters
        ----------
        *draw : tensor
            Everything random of one step.
        """
        return self.workload.loss_on(self.model, draw)
