"""Classification by a neural network, whose constants are all estimated at the start, and three small networks."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from bounds.estimate import Estimate, gap_from_losses, smoothness_by_power_iteration
from operators import Key
from operators.random import normal

from .data import MarkovText, Source
from .digits import DIGITS
from .models import Transformer, initialised, lenet
from .supervised import Supervised
from .workload import Constants, Draw

MEASURING = Key(0, rank=0).fold_in(0x6D656173)  # random stream of the estimates


@dataclass(frozen=True)
class Network(Supervised):
    """Mean cross-entropy of a network.

    Parameters
    ----------
    start : int, optional
        Seed of the initial parameters.
    precision : {"float32", "bfloat16"}, optional
        Precision of forward and backward pass; "bfloat16" uses autocast, and parameters stay float32.
    layout : {"contiguous", "channels_last"}, optional
        Memory format of images; "channels_last" is faster for convolutions in bfloat16.

    Attributes
    ----------
    draws : int
        Number of mini-batches of an estimate.
    power_steps : int
        Number of Hessian-vector products of an estimate.
    """

    draws: ClassVar[int] = 32
    power_steps: ClassVar[int] = 30

    start: int = 0
    precision: Literal["float32", "bfloat16"] = "float32"
    layout: Literal["contiguous", "channels_last"] = "contiguous"

    @abstractmethod
    def network(self) -> torch.nn.Module:
        """Return the layers, with parameters of any value."""

    def model(self) -> torch.nn.Module:
        """Return the network with initial parameters from the project's own generator."""
        self.data()  # read before the construction, which runs on the meta device
        model = initialised(self.network, Key(self.start, rank=None))
        return model.to(memory_format=self._memory_format())  # type: ignore[call-overload]

    def _memory_format(self) -> torch.memory_format:
        return torch.channels_last if self.layout == "channels_last" else torch.contiguous_format

    def outputs(self, model: torch.nn.Module, inputs: torch.Tensor) -> torch.Tensor:
        """Return logits in float32, computed in the chosen precision and layout."""
        if inputs.ndim == 4:
            inputs = inputs.contiguous(memory_format=self._memory_format())
        if self.precision == "float32":
            return model(inputs)
        with torch.autocast(inputs.device.type, dtype=torch.bfloat16):
            return model(inputs).float()

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return -log p of the true label."""
        return cross_entropy(outputs, targets, reduction="none")

    def constants(self) -> Constants:
        """Return estimates at the start, from mini-batches of this workload's size.

        No theorem has a verdict with them.
        """
        model = self.model()
        parameters = list(model.parameters())
        total, squares, losses = torch.zeros(()), 0.0, []
        for k in range(self.draws):
            value = self.loss(model, key=replace(MEASURING, step=k, rank=k % (self.workers or 1)))
            slope = torch.cat([g.reshape(-1) for g in torch.autograd.grad(value, parameters)]).double()
            total, squares = total + slope, squares + float(slope @ slope)
            losses.append(float(value.detach()))
        spread = (squares - float(total @ total) / self.draws) / (self.draws - 1)
        different = "" if self.split is None else "the workers have different samples, "
        return Constants(
            L=top_curvature(self, self.model(), steps=self.power_steps).value,
            sigma2=0.0 if self.batch is None else spread,
            gap=gap_from_losses(losses).value,
            exact=False,
            reason=f"{different}L and sigma2 are estimates at the start, not uniform in x, and inf F is only >= 0",
        )


def top_curvature(workload: Supervised, model: torch.nn.Module, *, steps: int) -> Estimate:
    """Return the largest ``|eigenvalue|`` of the Hessian of one mini-batch's loss, by power iteration.

    Parameters
    ----------
    workload : Supervised
        Workload of the loss.
    model : Module
        Model with the parameters.
    steps : int
        Number of iterations.
    """
    parameters = list(model.parameters())
    value = workload.loss(model, key=MEASURING)
    slopes = torch.autograd.grad(value, parameters, create_graph=True)
    slope = torch.cat([g.reshape(-1) for g in slopes])

    def product(v: np.ndarray) -> np.ndarray:
        along = slope @ torch.from_numpy(v).to(slope)
        return _vector(torch.autograd.grad(along, parameters, retain_graph=True))

    direction = normal(MEASURING.fold_in(1), slope.numel())
    return smoothness_by_power_iteration(product, direction, iterations=steps)


def _vector(tensors: tuple[torch.Tensor, ...]) -> np.ndarray:
    return torch.cat([t.detach().reshape(-1) for t in tensors]).double().cpu().numpy()


@dataclass(frozen=True)
class SmallNetwork(Network):
    """tanh units between two linear layers: 64-32-10 with 2410 parameters on the digits, a fifth of which is held out.

    Parameters
    ----------
    source : Source, optional
        Source of the data.
    eta : float, optional
        Learning rate.
    hidden : int, optional
        Number of hidden units.
    """

    source: Source = DIGITS
    eta: float = 0.2
    hidden: int = 32

    name = "network"

    def network(self) -> torch.nn.Module:
        """Return the two layers."""
        data = self.data()
        inputs = data.train.inputs.shape[1]
        return torch.nn.Sequential(
            torch.nn.Linear(inputs, self.hidden), torch.nn.Tanh(), torch.nn.Linear(self.hidden, data.classes)
        )


SIDE = 8


@dataclass(frozen=True)
class LeNet(Network):
    """LeNet on the 8 x 8 digits with 8.9 thousand parameters; a fifth of the samples is held out.

    Parameters
    ----------
    source : Source, optional
        Source of the digits.
    eta : float, optional
        Learning rate.
    """

    source: Source = DIGITS
    eta: float = 0.3

    name = "lenet"

    def network(self) -> torch.nn.Module:
        """Return a network of two convolutions and two linear layers."""
        return lenet(side=SIDE, channels=1, classes=self.data().classes)

    def inputs(self, samples: torch.Tensor, choices: Draw) -> torch.Tensor:
        """Return rows of 64 pixels as images.

        Parameters
        ----------
        samples : tensor
            Rows of pixels, shape (n, 64).
        choices : Draw
            Not used.
        """
        return samples.reshape(-1, 1, SIDE, SIDE)


@dataclass(frozen=True)
class Characters(Network):
    """Mean cross-entropy of the next letter, in nats, on a text with the known minimum ``source.floor()``.

    The accuracy is the share of held-out letters that are predicted.

    Parameters
    ----------
    source : MarkovText, optional
        Source of the text.
    batch : int or None, optional
        Samples per mini-batch; None takes all.
    eta : float, optional
        Learning rate.
    width : int, optional
        Width of the transformer.
    """

    source: MarkovText = MarkovText()  # noqa: RUF009  frozen
    batch: int | None = 4
    eta: float = 0.5
    width: int = 12

    name = "characters"

    def network(self) -> torch.nn.Module:
        """Return a transformer with one block."""
        return Transformer(letters=self.source.letters, window=self.source.window, width=self.width)

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return -log p of the true letters, averaged over a window.

        Parameters
        ----------
        outputs : tensor
            Outputs of the model.
        targets : tensor
            Next letters, one row per window.
        """
        return super().losses(outputs, targets).mean(dim=1)

    def accuracy(self, model: torch.nn.Module) -> float | None:
        """Return the share of the held-out windows' letters that the model predicts.

        Parameters
        ----------
        model : Module
            Model of ``model()``.
        """
        right = super().accuracy(model)
        return None if right is None else right / self.source.window
