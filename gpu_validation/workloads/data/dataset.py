"""Samples in memory, and the contract of whatever supplies them."""

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
    """Parameters
    ----------
    inputs : tensor
        (n, ``*shape``), float64 or uint8.
    targets : tensor
        (n,), int64 labels or float64 values; (n, window) for text.
    """

    inputs: torch.Tensor
    targets: torch.Tensor

    def __len__(self) -> int:
        return len(self.targets)

    def to(self, device: torch.device) -> Samples:
        """Return the same samples on a device.

        Parameters
        ----------
        device : device
            Where it lies.
        """
        return Samples(self.inputs.to(device), self.targets.to(device))


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples to train on and samples kept aside.

    Parameters
    ----------
    name : str
        Name of the data in records.
    train : Samples
        Samples to train on.
    held_out : Samples
        Samples kept aside.
    classes : int
        Number of labels, 0 for a regression.  held_out may be empty.
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
        """Checksum of the shapes, types and values of all samples."""
        digest = hashlib.sha256()
        for part in (self.train, self.held_out):
            for tensor in (part.inputs, part.targets):
                array = np.ascontiguousarray(tensor.cpu().numpy())
                digest.update(f"{array.dtype.str}{array.shape}".encode())
                digest.update(array.data)
        return digest.hexdigest()

    def description(self) -> Description:
        """Return what a record says about these samples."""
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
            If they are not what they should be.
        OSError
            If a file cannot be read.
        """


@lru_cache(maxsize=8)
def load(source: Source, device: torch.device = torch.device("cpu")) -> Dataset:  # noqa: B008  immutable
    """Return the data set of a source, read once a process and kept on the device.

    Parameters
    ----------
    source : Source
        Where the data come from.
    device : device, optional
        Where it lies.
    """
    if device.type == "cpu":
        return source.read()
    dataset = load(source)
    return replace(dataset, train=dataset.train.to(device), held_out=dataset.held_out.to(device))


@lru_cache(maxsize=8)
def describe(source: Source) -> Description:
    """Return the description of a source, whose checksum takes a while.

    Parameters
    ----------
    source : Source
        Where the data come from.
    """
    return load(source).description()


def permutation(key: Key, n: int) -> np.ndarray:
    """Return a uniformly random order of 0 .. n - 1, shape (n,), int64: the ranks of 64-bit words of the key's stream.

    Parameters
    ----------
    key : Key
        Stream of random numbers.
    n : int
        Length of the permutation.
    """
    words = bits32(key, 2 * n).astype(np.uint64)
    return np.argsort(words[:n] << np.uint64(32) | words[n:], kind="stable")


HOLD_OUT = Key(0, rank=None).fold_in(0x686F6C64)  # the one stream that chooses held-out samples


def hold_out(inputs: np.ndarray, targets: np.ndarray, fraction: float) -> tuple[Samples, Samples]:
    """Return training and held-out samples, each in their old order; the choice depends on n and the fraction alone.

    Parameters
    ----------
    inputs : ndarray
        The samples, one a row.
    targets : ndarray
        Label of every sample, shape (n,).
    fraction : float
        Share that is kept aside.

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
    """Return every column of a table (n, d) shifted to mean 0 and scaled to variance 1; constant columns become 0.

    Parameters
    ----------
    table : ndarray
        Numbers, shape (n, d).
    """
    centred = table - table.mean(axis=0)
    scale = centred.std(axis=0)
    return centred / np.where(scale > 0, scale, 1.0)
