"""A small convolutional network on the digits."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .data import Source
from .digits import DIGITS
from .models.lenet import lenet
from .network import Network
from .workload import Draw

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
