"""ResNet-20 on CIFAR-shaped images."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .images import ImageNetwork
from .models.resnet20 import resnet20


@dataclass(frozen=True)
class ResNet20(ImageNetwork):
    """ResNet-20 with BatchNorm and 0.27 million parameters; synthetic images unless ``source`` is a Cifar archive."""

    name = "resnet20"

    def network(self) -> torch.nn.Module:
        """Return the network with one output per class."""
        return resnet20(self.data().classes)
