"""A network with one hidden layer on a table of features, by default the digits; not convex."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .data import Source
from .digits import DIGITS
from .network import Network


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
