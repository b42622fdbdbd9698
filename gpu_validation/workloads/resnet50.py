"""ResNet-50 on CIFAR-shaped images."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .images import ImageNetwork
from .models.resnet50 import resnet50


@dataclass(frozen=True)
class ResNet50(ImageNetwork):
    """ResNet-50 with BatchNorm and 23.5 million parameters; synthetic images unless ``source`` is a Cifar archive."""

    name = "resnet50"

    def network(self) -> torch.nn.Module:
        """Return the network with one output per class."""
        return resnet50(self.data().classes)
