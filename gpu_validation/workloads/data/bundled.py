"""Real data bundled with scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from .dataset import Dataset, Samples, Source, hold_out, standardised

CLASSES = {"breast_cancer": 2, "diabetes": 0, "digits": 10, "iris": 3, "wine": 3}  # 0: a regression
PIXEL_MAXIMUM = 16.0  # largest pixel of the digits


@dataclass(frozen=True)
class Bundled(Source):
    """One of scikit-learn's bundled data sets as a float64 table.

    Parameters
    ----------
    name : str
        breast_cancer (569 x 30, two classes), diabetes (442 x 10, regression), digits (1797 x 64, ten classes), iris
        (150 x 4, three classes) or wine (178 x 13, three classes).  Pixels of the digits are divided by 16.  Columns of
        the other sets, and regression targets, are standardised to mean 0 and variance 1.
    held_out : float, optional
        Fraction of held-out samples, in [0, 1).

    Raises
    ------
    ValueError
        For another name or a fraction outside [0, 1).
    """

    name: str
    held_out: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in CLASSES:
            raise ValueError(f"no bundled data set {self.name!r}; choose one of {', '.join(CLASSES)}")

    def read(self) -> Dataset:
        """Read the data from scikit-learn's files."""
        from sklearn import datasets

        bundle = getattr(datasets, f"load_{self.name}")()
        table, targets = np.asarray(bundle.data, np.float64), np.asarray(bundle.target)
        table = table / PIXEL_MAXIMUM if self.name == "digits" else standardised(table)
        classes = CLASSES[self.name]
        targets = targets.astype(np.int64) if classes else standardised(targets[:, None].astype(np.float64))[:, 0]
        train, held = hold_out(table, targets, self.held_out)
        return Dataset(self.name, train, held, classes, synthetic=False)


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
