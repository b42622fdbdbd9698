"""The bundled digits as small colour images, for networks that expect CIFAR-shaped images."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .bundled import Bundled
from .dataset import Dataset, Samples, Source

SIDE, CHANNELS, BRIGHTEST = 8, 3, 255


@dataclass(frozen=True)
class DigitImages(Source):
    """uint8 images of shape (3, side, side): the 8 x 8 digits, enlarged, with equal channels.

    Parameters
    ----------
    side : int, optional
        Height and width in pixels, a multiple of 8.
    held_out : float, optional
        Fraction of held-out samples, in [0, 1).

    Raises
    ------
    ValueError
        For another side.
    """

    side: int = 16
    held_out: float = 0.2

    def __post_init__(self) -> None:
        if self.side < SIDE or self.side % SIDE:
            raise ValueError(f"side must be a multiple of {SIDE}; got {self.side}: 8, 16 and 32 are usual")

    def read(self) -> Dataset:
        """Read the digits from scikit-learn's files."""
        table = Bundled("digits", self.held_out).read()
        train, held = self._images(table.train), self._images(table.held_out)
        return Dataset(f"digits, {self.side} x {self.side} pixels", train, held, table.classes, synthetic=False)

    def _images(self, samples: Samples) -> Samples:
        pixels = (samples.inputs * BRIGHTEST).round().to(torch.uint8).reshape(-1, 1, SIDE, SIDE)
        times = self.side // SIDE
        larger = pixels.repeat_interleave(times, dim=2).repeat_interleave(times, dim=3)
        return Samples(larger.expand(-1, CHANNELS, -1, -1).contiguous(), samples.targets)
