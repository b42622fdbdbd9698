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
    """inputs : (n, *shape), float64 or uint8.  targets : (n,), int64 labels or float64 values; (n, window) for text."""

    inputs: torch.Tensor
    targets: torch.Tensor

    def __len__(self) -> int:
        return len(self.targets)

    def to(self, device: torch.device) -> Samples:
        """The same samples on a device."""
        return Samples(self.inputs.to(device), self.targets.to(device))


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples to train on and samples kept aside.

    classes : number of labels, 0 for a regression.  held_out may be empty.
    name : of the data.  synthetic : whether a formula made them.
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
        """What a record says about these samples."""
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
        """The samples.  Raises ValueError if they are not what they should be, OSError if a file cannot be read."""


@lru_cache(maxsize=8)
def load(source: Source, device: torch.device = torch.device("cpu")) -> Dataset:  # noqa: B008  immutable
    """The data set of a source, read once a process and kept on the device."""
    if device.type == "cpu":
        return source.read()
    found = load(source)
    return replace(found, train=found.train.to(device), held_out=found.held_out.to(device))


@lru_cache(maxsize=8)
def describe(source: Source) -> Description:
    """The description of a source, whose checksum takes a while."""
    return load(source).description()


def permutation(key: Key, n: int) -> np.ndarray:
    """A uniformly random order of 0 .. n - 1, shape (n,), int64: the ranks of 64-bit words of the key's stream."""
    words = bits32(key, 2 * n).astype(np.uint64)
    return np.argsort(words[:n] << np.uint64(32) | words[n:], kind="stable")


HOLD_OUT = Key(0, rank=None).fold(0x686F6C64)  # the one stream that chooses held-out samples


def hold_out(inputs: np.ndarray, targets: np.ndarray, fraction: float) -> tuple[Samples, Samples]:
    """Training and held-out samples, each in their old order; the choice depends on n and the fraction alone.

    Raises ValueError unless 0 <= fraction < 1.
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
    """Every column of a table (n, d) shifted to mean 0 and scaled to variance 1; constant columns become 0."""
    centred = table - table.mean(axis=0)
    scale = centred.std(axis=0)
    return centred / np.where(scale > 0, scale, 1.0)
