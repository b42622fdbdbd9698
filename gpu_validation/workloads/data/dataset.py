"""Samples in memory, and the interface of their sources."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch

from operators import Key
from operators.random import bits32

from ..workload import Description


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs and targets.

    Parameters
    ----------
    inputs : tensor
        Inputs, shape (n, ``*shape``), float64 or uint8.
    targets : tensor
        Labels (int64) or values (float64), shape (n,); (n, window) for text.
    """

    inputs: torch.Tensor
    targets: torch.Tensor

    def __len__(self) -> int:
        return len(self.targets)

    def to(self, device: torch.device) -> Samples:
        """Return the samples on a device.

        Parameters
        ----------
        device : device
            Device of the result.
        """
        return Samples(self.inputs.to(device), self.targets.to(device))


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and held-out samples.

    Parameters
    ----------
    name : str
        Name of the data in records.
    train : Samples
        Training samples.
    held_out : Samples
        Held-out samples; may be empty.
    classes : int
        Number of labels; 0 for a regression.
    synthetic : bool
        Whether a formula made them.
    """

    name: str
    train: Samples
    held_out: Samples
    classes: int
    synthetic: bool

    @property
    def sha256(self) -> str:
        """Checksum of shapes, dtypes and values of all samples."""
        digest = hashlib.sha256()
        for part in (self.train, self.held_out):
            for tensor in (part.inputs, part.targets):
                array = np.ascontiguousarray(tensor.cpu().numpy())
                digest.update(f"{array.dtype.str}{array.shape}".encode())
                digest.update(array.data)
        return digest.hexdigest()

    def description(self) -> Description:
        """Return the description of these samples for records."""
        return Description(
            self.name,
            self.synthetic,
            samples=len(self.train),
            held_out=len(self.held_out),
            shape=tuple(self.train.inputs.shape[1:]),
            classes=self.classes,
            sha256=self.sha256,
        )


class Source(ABC):
    """Supplies one data set, the same at every call; subclasses are frozen dataclasses."""

    @abstractmethod
    def read(self) -> Dataset:
        """Return the samples.

        Raises
        ------
        ValueError
            If the data are invalid.
        OSError
            If a file cannot be read.
        """


@lru_cache(maxsize=8)
def load(source: Source, device: torch.device = torch.device("cpu")) -> Dataset:  # noqa: B008  immutable
    """Return the data set of a source, cached per process and device.

    Parameters
    ----------
    source : Source
        Source of the data.
    device : device, optional
        Device of the samples.
    """
    if device.type == "cpu":
        return source.read()
    dataset = load(source)
    return replace(dataset, train=dataset.train.to(device), held_out=dataset.held_out.to(device))


@lru_cache(maxsize=8)
def describe(source: Source) -> Description:
    """Return the description of a source, cached because its checksum takes time.

    Parameters
    ----------
    source : Source
        Source of the data.
    """
    return load(source).description()


def permutation(key: Key, n: int) -> np.ndarray:
    """Return a uniformly random permutation of 0 .. n - 1, shape (n,), int64, as ranks of 64-bit words of a stream.

    Parameters
    ----------
    key : Key
        Seeds the random stream.
    n : int
        Length of the permutation.
    """
    words = bits32(key, 2 * n).astype(np.uint64)
    return np.argsort(words[:n] << np.uint64(32) | words[n:], kind="stable")


HOLD_OUT = Key(0, rank=None).fold_in(0x686F6C64)  # random stream of the choice of held-out samples


def hold_out(inputs: np.ndarray, targets: np.ndarray, fraction: float) -> tuple[Samples, Samples]:
    """Return training and held-out samples in their original order; the choice depends only on n and the fraction.

    Parameters
    ----------
    inputs : ndarray
        Samples, one per row.
    targets : ndarray
        Targets, shape (n,).
    fraction : float
        Fraction of held-out samples, in [0, 1).

    Raises
    ------
    ValueError
        Unless 0 <= fraction < 1.
    """
    if not 0 <= fraction < 1:
        raise ValueError(f"held_out must satisfy 0 <= held_out < 1; got {fraction}")
    n = len(targets)
    order = permutation(HOLD_OUT, n)
    aside = round(fraction * n)
    kept, held = np.sort(order[aside:]), np.sort(order[:aside])
    return _samples(inputs[kept], targets[kept]), _samples(inputs[held], targets[held])


def _samples(inputs: np.ndarray, targets: np.ndarray) -> Samples:
    return Samples(torch.from_numpy(np.ascontiguousarray(inputs)), torch.from_numpy(np.ascontiguousarray(targets)))


def standardised(table: np.ndarray) -> np.ndarray:
    """Return a table (n, d) with every column standardised to mean 0 and variance 1; constant columns become 0.

    Parameters
    ----------
    table : ndarray
        Numbers, shape (n, d).
    """
    centred = table - table.mean(axis=0)
    scale = centred.std(axis=0)
    return centred / np.where(scale > 0, scale, 1.0)
