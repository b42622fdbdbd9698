"""VGG-16 on CIFAR-shaped images."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .images import ImageNetwork
from .models.vgg16 import vgg16


@dataclass(frozen=True)
class Vgg16(ImageNetwork):
    """VGG-16 with BatchNorm and 14.7 million parameters; synthetic images unless ``source`` is a Cifar archive."""

    name = "vgg16"

    def network(self) -> torch.nn.Module:
        """Return the network with one output per class."""
        return vgg16(self.data().classes)
