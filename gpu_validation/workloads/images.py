"""Networks on images of CIFAR's form: normalised channels, and the standard augmentation in training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch

from operators import Key

from .data import Source, SyntheticImages, load
from .data.augment import crop_and_flip, crops_and_flips
from .network import Network
from .workload import Draw

SYNTHETIC = SyntheticImages()
CROP = 2  # fold of a step's key


@dataclass(frozen=True)
class ImageNetwork(Network):
    """A network on uint8 images, whose channels are shifted and scaled by the training set's mean and deviation.

    Parameters
    ----------
    source : Source, optional
        Where the data come from.
    eta : float, optional
        Learning rate.
    decay : float, optional
        Weight decay.
    augmentation : {"crop and flip", "none"}, optional
        "crop and flip" pads by four pixels, crops and mirrors at random in training; or "none".

    Notes
    -----
    The defaults of batch, decay and learning rate are those of the published CIFAR experiments, at small scale.
    """

    draws = 8
    power_steps = 10

    source: Source = SYNTHETIC
    eta: float = 0.1
    decay: float = 5e-4
    augmentation: Literal["crop and flip", "none"] = "crop and flip"

    def draw(self, *, key: Key) -> Draw:
        """Return (indices, weight), and the crops and flips.

        Parameters
        ----------
        key : Key
            Stream of random numbers.
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
            What augmentation drew; empty outside training.
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
