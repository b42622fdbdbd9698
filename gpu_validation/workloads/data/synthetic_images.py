"""Synthetic CIFAR-shaped images: coloured waves of each class with clutter and noise.

An image is the sum of its class's plane waves with random phases, or their mirror image, plus weaker waves of another
class, plus noise.  The phases are uniform, so that all classes have the same grey mean image.  A linear classifier
therefore hardly beats guessing, and convolutions find the waves at any place.  Crops and flips keep the class, as in
photographs.  Clutter and noise limit the best accuracy below 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from operators import Key
from operators.random import bits32, normal, uniform

from .dataset import Dataset, Samples, Source, permutation

SIDE, CHANNELS, PIXELS = 32, 3, 3 * 32 * 32
WAVES = 3  # waves per class
FASTEST = 6  # largest number of periods along each side of an image
SIGNAL, CLUTTER, NOISE = 1.0, 0.8, 2.5
MIDDLE, CONTRAST = 127.5, 20.0
IRWIN_HALL = np.sqrt(4 * (256**2 - 1) / 12)  # standard deviation of the sum of four uniform bytes
COLOURS, DIRECTIONS, TRAIN, HELD_OUT = 0, 1, 2, 3  # folded into the seed's key
CHOICES, GRAIN = 0, 1  # folded into a part's key
CHUNK = 512


@dataclass(frozen=True)
class SyntheticImages(Source):
    """uint8 images of shape (3, 32, 32), with equally many per class; image i does not depend on their number.

    Parameters
    ----------
    seed : int, optional
        Seed of the waves and images.
    classes : int, optional
        Number of labels, >= 2.
    samples : int, optional
        Number of training images, >= classes.
    held_out : int, optional
        Number of held-out images, >= 0.

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
        """Return periods per side, int64 (classes, WAVES, 2), and colours, float32 (classes, WAVES, CHANNELS).

        The mean square of a class's sum of waves is 1 if their directions differ.
        """
        key = Key(self.seed, rank=None)
        colours = normal(key.fold_in(COLOURS), self.classes * WAVES * CHANNELS).reshape(self.classes, WAVES, CHANNELS)
        power = np.square(colours).sum(axis=(1, 2), keepdims=True) / (2 * CHANNELS)
        # a quarter plane: opposite directions are equal, and mirrored ones belong to the same class
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
        """Return the classes' waves with phases (n, WAVES), shape (n, CHANNELS, SIDE, SIDE), float32."""
        periods, colours = self.waves()
        place = np.arange(SIDE)
        turns = periods[..., :1] * place / SIDE, periods[..., 1:] * place / SIDE  # each (classes, WAVES, SIDE)
        rows, columns = (np.exp(2j * np.pi * t).astype(np.complex64) for t in turns)
        rows = rows[labels] * np.exp(1j * phases)[..., None].astype(np.complex64)
        waves = (rows[..., :, None] * columns[labels][..., None, :]).real
        return np.einsum("nwc,nwxy->ncxy", colours[labels], waves, optimize=True)


def _mirrored(fields: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Mirror the chosen fields horizontally; shape (n, CHANNELS, SIDE, SIDE)."""
    return np.where(where[:, None, None, None], fields[..., ::-1], fields)
