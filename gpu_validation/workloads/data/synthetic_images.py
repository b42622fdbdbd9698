"""Images of CIFAR's form without any download: coloured waves of each class under clutter and noise.

An image is the sum of its class's plane waves, each with a phase of its own, or their mirror image, plus the waves of
another class at a lower strength, plus noise.  The phases are uniform, so that the mean image of every class is the
same grey and a linear classifier is left with little more than guessing; convolutions find the waves wherever they
are.  Crops and flips keep the class, as they do for photographs.  Clutter and noise keep the best accuracy below 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from operators import Key
from operators.random import bits32, normal, uniform

from .dataset import Dataset, Samples, Source, permutation

SIDE, CHANNELS, PIXELS = 32, 3, 3 * 32 * 32
WAVES = 3  # of each class
FASTEST = 6  # periods across an image, along each side
SIGNAL, CLUTTER, NOISE = 1.0, 0.8, 2.5
MIDDLE, CONTRAST = 127.5, 20.0
IRWIN_HALL = np.sqrt(4 * (256**2 - 1) / 12)  # standard deviation of the sum of four uniform bytes
COLOURS, DIRECTIONS, TRAIN, HELD_OUT = 0, 1, 2, 3  # folds of the seed's key
CHOICES, GRAIN = 0, 1  # folds of a part's key
CHUNK = 512


@dataclass(frozen=True)
class SyntheticImages(Source):
    """uint8 images of shape (3, 32, 32), every class equally often; image i does not depend on how many there are.

    Parameters
    ----------
    seed : int, optional
        Of the waves and of every image.
    classes : int, optional
        Labels run from 0 to one less.
    samples : int, optional
        How many images to train on.
    held_out : int, optional
        How many images are kept aside.

    Raises
    ------
    ValueError
        For fewer than two classes, or fewer samples than classes.
    """

    seed: int = 0
    classes: int = 10
    samples: int = 5000
    held_out: int = 1000

    def __post_init__(self) -> None:
        if self.classes < 2 or self.samples < self.classes or self.held_out < 0:
            raise ValueError(f"need classes >= 2, samples >= classes and held_out >= 0; got {self}")

    def read(self) -> Dataset:
        """Draw all images."""
        train, held = self._images(TRAIN, self.samples), self._images(HELD_OUT, self.held_out)
        return Dataset(f"synthetic{self.classes}", train, held, self.classes, synthetic=True)

    def waves(self) -> tuple[np.ndarray, np.ndarray]:
        """Return periods across the image, int64 (classes, WAVES, 2), and colours, float32 (classes, WAVES, CHANNELS).

        The mean square of a class's sum of waves is 1 where their directions differ.
        """
        key = Key(self.seed, rank=None)
        colours = normal(key.fold_in(COLOURS), self.classes * WAVES * CHANNELS).reshape(self.classes, WAVES, CHANNELS)
        power = np.square(colours).sum(axis=(1, 2), keepdims=True) / (2 * CHANNELS)
        # a direction is the same as its opposite, and its mirror image belongs to the same class: a quarter plane
        grid = [(a, b) for a in range(FASTEST + 1) for b in range(1, FASTEST + 1)]
        orders = [permutation(key.fold_in(DIRECTIONS).fold_in(c), len(grid))[:WAVES] for c in range(self.classes)]
        return np.array(grid)[np.array(orders)], (colours / np.sqrt(power)).astype(np.float32)

    def _images(self, part: int, n: int) -> Samples:
        key = Key(self.seed, rank=None).fold_in(part)
        labels = np.arange(n) % self.classes
        images = np.empty((n, CHANNELS, SIDE, SIDE), np.uint8)
        for start in range(0, n, CHUNK):
            stop = min(start + CHUNK, n)
            images[start:stop] = self._chunk(key, labels[start:stop], start)
        return Samples(torch.from_numpy(images), torch.from_numpy(labels))

    def _chunk(self, key: Key, labels: np.ndarray, start: int) -> np.ndarray:
        n = len(labels)
        numbers = 3 + 2 * WAVES
        chosen = uniform(key.fold_in(CHOICES), numbers * n, start=numbers * start).reshape(n, numbers)
        other = (labels + 1 + (chosen[:, 0] * (self.classes - 1)).astype(int)) % self.classes
        phases = 2 * np.pi * chosen[:, 3:]
        fields, foreign = self._fields(labels, phases[:, :WAVES]), self._fields(other, phases[:, WAVES:])
        field = SIGNAL * _mirrored(fields, chosen[:, 1] < 0.5) + CLUTTER * _mirrored(foreign, chosen[:, 2] < 0.5)
        four = bits32(key.fold_in(GRAIN), n * PIXELS, start=start * PIXELS).view(np.uint8).reshape(n, PIXELS, 4)
        noise = (four.sum(axis=2, dtype=np.float32) - np.float32(4 * MIDDLE)) / np.float32(IRWIN_HALL)
        values = MIDDLE + CONTRAST * (field + NOISE * noise.reshape(field.shape))
        return np.clip(np.rint(values), 0, 255).astype(np.uint8)

    def _fields(self, labels: np.ndarray, phases: np.ndarray) -> np.ndarray:
        """Return the classes' waves with the given phases (n, WAVES), shape (n, CHANNELS, SIDE, SIDE), float32."""
        periods, colours = self.waves()
        place = np.arange(SIDE)
        turns = periods[..., :1] * place / SIDE, periods[..., 1:] * place / SIDE  # each (classes, WAVES, SIDE)
        rows, columns = (np.exp(2j * np.pi * t).astype(np.complex64) for t in turns)
        rows = rows[labels] * np.exp(1j * phases)[..., None].astype(np.complex64)
        waves = (rows[..., :, None] * columns[labels][..., None, :]).real
        return np.einsum("nwc,nwxy->ncxy", colours[labels], waves, optimize=True)


def _mirrored(fields: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Return left and right exchanged in the chosen fields (n, CHANNELS, SIDE, SIDE)."""
    return np.where(where[:, None, None, None], fields[..., ::-1], fields)
