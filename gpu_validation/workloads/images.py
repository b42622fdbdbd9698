"""Networks on CIFAR-shaped images, with normalised channels and the standard augmentation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch

from operators import Key

from .data import Source, SyntheticImages, load
from .data.augment import crop_and_flip, crops_and_flips
from .models import resnet20, resnet50, vgg16
from .network import Network
from .workload import Draw

SYNTHETIC = SyntheticImages()
CROP = 2  # folded into a step's key


@dataclass(frozen=True)
class ImageNetwork(Network):
    """A network on uint8 images, normalised by the training set's channel means and standard deviations.

    Parameters
    ----------
    source : Source, optional
        Source of the images.
    eta : float, optional
        Learning rate.
    decay : float, optional
        Weight decay.
    augmentation : {"crop and flip", "none"}, optional
        "crop and flip" pads by four pixels, crops and mirrors at random during training.

    Notes
    -----
    The defaults of batch, decay and learning rate are those of published CIFAR experiments at small scale.
    """

    draws = 8
    power_steps = 10

    source: Source = SYNTHETIC
    eta: float = 0.1
    decay: float = 5e-4
    augmentation: Literal["crop and flip", "none"] = "crop and flip"

    def draw(self, *, key: Key) -> Draw:
        """Return (indices, weight), and the random crops and flips.

        Parameters
        ----------
        key : Key
            Seeds the random stream.
        """
        indices, weight = super().draw(key=key)
        if self.augmentation == "none":
            return indices, weight
        return indices, weight, crops_and_flips(key.fold_in(CROP), len(indices))

    def inputs(self, samples: torch.Tensor, choices: Draw) -> torch.Tensor:
        """Return float32 images with normalised channels.

        Parameters
        ----------
        samples : tensor
            uint8 images, shape (n, 3, height, width).
        choices : Draw
            Random crops and flips; empty outside training.
        """
        for choice in choices:
            samples = crop_and_flip(samples, choice)
        mean, deviation = _channels(self.source)
        return (samples.float() - mean.to(samples.device)) / deviation.to(samples.device)


@lru_cache(maxsize=8)
def _channels(source: Source) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and standard deviation of every channel over the training set, shape (channels, 1, 1)."""
    images = load(source).train.inputs
    values = torch.arange(256, dtype=torch.float64)
    counts = torch.stack([torch.bincount(images[:, c].reshape(-1), minlength=256) for c in range(images.shape[1])])
    share = counts.double() / counts.sum(dim=1, keepdim=True)
    mean = share @ values
    deviation = (share @ values**2 - mean**2).sqrt()
    return mean.float()[:, None, None], deviation.float()[:, None, None]


@dataclass(frozen=True)
class ResNet20(ImageNetwork):
    """ResNet-20 with BatchNorm and 0.27 million parameters; synthetic images unless ``source`` is a Cifar archive."""

    name = "resnet20"

    def network(self) -> torch.nn.Module:
        """Return the network with one output per class."""
        return resnet20(self.data().classes)


@dataclass(frozen=True)
class ResNet50(ImageNetwork):
    """ResNet-50 with BatchNorm and 23.5 million parameters; synthetic images unless ``source`` is a Cifar archive."""

    name = "resnet50"

    def network(self) -> torch.nn.Module:
        """Return the network with one output per class."""
        return resnet50(self.data().classes)


@dataclass(frozen=True)
class Vgg16(ImageNetwork):
    """VGG-16 with BatchNorm and 14.7 million parameters; synthetic images unless ``source`` is a Cifar archive."""

    name = "vgg16"

    def network(self) -> torch.nn.Module:
        """Return the network with one output per class."""
        return vgg16(self.data().classes)
