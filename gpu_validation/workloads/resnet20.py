"""ResNet-20 on images of CIFAR's form."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .images import ImageNetwork
from .models.resnet20 import resnet20


@dataclass(frozen=True)
class ResNet20(ImageNetwork):
    """ResNet-20 with BatchNorm, .27 million parameters; synthetic images unless ``source`` is a Cifar archive."""

    name = "resnet20"

    def network(self) -> torch.nn.Module:
        """Return one output a class."""
        return resnet20(self.data().classes)
