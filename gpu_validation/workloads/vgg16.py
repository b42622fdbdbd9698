"""VGG-16 on images of CIFAR's form."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .images import ImageNetwork
from .models.vgg16 import vgg16


@dataclass(frozen=True)
class Vgg16(ImageNetwork):
    """VGG-16 with BatchNorm, 14.7 million parameters; synthetic images unless ``source`` is a Cifar archive."""

    name = "vgg16"

    def network(self) -> torch.nn.Module:
        """Return one output a class."""
        return vgg16(self.data().classes)
