"""What a training run needs to know of its problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from operators import Key


@dataclass(frozen=True)
class Constants:
    """The constants of the theorems.

    L, sigma2, gap : smoothness, variance of one worker's stochastic gradient, F(x_1) - inf F.
    exact : True if all three are known exactly and sigma2 is uniform in x.
    reason : which assumption is not met, or which constant is only estimated, if not exact.
    """

    L: float
    sigma2: float
    gap: float
    exact: bool
    reason: str = ""


class Workload(ABC):
    """One optimisation problem; all workers draw from the same objective F.

    name : used in records.  eta : its learning rate.  Every random number comes from a Key.
    """

    name: ClassVar[str]
    eta: float

    @abstractmethod
    def model(self) -> torch.nn.Module:
        """A new model at the starting point, the same in every process."""

    @abstractmethod
    def loss(self, model: torch.nn.Module, *, key: Key) -> torch.Tensor:
        """A stochastic loss whose gradient is an unbiased estimate of grad F; scalar tensor."""

    @abstractmethod
    def objective(self, model: torch.nn.Module) -> torch.Tensor:
        """F itself, as a scalar tensor."""

    @abstractmethod
    def constants(self) -> Constants:
        """L, sigma2 and gap of this problem."""

    def evaluate(self, model: torch.nn.Module) -> tuple[float, float]:
        """(F, |grad F|^2) at the model's parameters."""
        value = self.objective(model)
        gradients = torch.autograd.grad(value, list(model.parameters()))
        return float(value.detach()), float(sum(g.double().square().sum() for g in gradients))
