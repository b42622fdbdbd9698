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

    L, sigma2, gap : smoothness, variance of one worker's stochastic gradient, F(x_1) - inf F.
    exact : True if each is known exactly or bounded from above for all x, so that a theorem may judge.
    reason : which assumption is not met, or which constant is only estimated, if not exact.
    mu : strong convexity; 0 where there is none or it is not known.
    heterogeneity : mean over workers of |grad F_i(x*)|^2; 0 where all workers draw from the same F.
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

    synthetic : True if the samples, or the whole problem, were made by a formula.
    samples, held_out : numbers of training samples and of samples kept aside for the accuracy.
    shape, classes : of one input; number of labels, 0 for a regression.  sha256 : of all samples.
    sizes : training samples of every worker, empty where all draw from the whole set.
    name : of the data.
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

    name : used in records and in the registry.  eta : its learning rate.
    Every random number comes from a Key; worker i at step k uses ``Key(seed, step=k, rank=i)``, folded at will, so
    that a resumed run and a virtual worker see what the uninterrupted process would have seen.
    """

    name: ClassVar[str]
    eta: float

    @property
    def workers(self) -> int | None:
        """The number of workers the problem is made for; None if any number may take part."""
        return None

    @abstractmethod
    def model(self) -> torch.nn.Module:
        """A new model at the starting point, the same in every process."""

    @abstractmethod
    def draw(self, *, key: Key) -> Draw:
        """Everything random of one step of worker ``key.rank``, as tensors whose shapes do not depend on the key.

        Raises ValueError if the problem has no worker of that rank.
        """

    @abstractmethod
    def loss_on(self, model: torch.nn.Module, draw: Draw) -> torch.Tensor:
        """The loss of one step, a scalar tensor on the model's device; a function of its arguments alone."""

    @abstractmethod
    def objective(self, model: torch.nn.Module) -> torch.Tensor:
        """F itself, as a scalar tensor."""

    @abstractmethod
    def constants(self) -> Constants:
        """L, sigma2 and gap of this problem."""

    @abstractmethod
    def description(self) -> Description:
        """The data, or the formula, behind F."""

    def loss(self, model: torch.nn.Module, *, key: Key) -> torch.Tensor:
        """A stochastic loss; its gradient, averaged over keys and workers, is grad F."""
        return self.loss_on(model, self.draw(key=key))

    def evaluate(self, model: torch.nn.Module) -> tuple[float, float]:
        """(F, |grad F|^2) at the model's parameters."""
        value = self.objective(model)
        gradients = torch.autograd.grad(value, list(model.parameters()))
        return float(value.detach()), float(sum(g.double().square().sum() for g in gradients))

    def accuracy(self, model: torch.nn.Module) -> float | None:
        """Share of the held-out samples that the model labels correctly; None where nothing is held out."""
        return None

    def require_workers(self, m: int) -> None:
        """Raises ValueError if the problem is not made for m workers."""
        if self.workers not in (None, m):
            raise ValueError(f"{self.name} is made for {self.workers} workers; got {m}: give it a split over {m}")


class Loss(torch.nn.Module):
    """The loss of one step as a module called with its draw, the form that ``torch.func`` and ``vmap`` ask for."""

    def __init__(self, workload: Workload, model: torch.nn.Module) -> None:
        super().__init__()
        self.workload, self.model = workload, model

    def forward(self, *draw: torch.Tensor) -> torch.Tensor:
        """A scalar."""
        return self.workload.loss_on(self.model, draw)
