"""Partitions of the training samples over workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv

from operators import Key
from operators.random import bits32

from .dataset import permutation


@dataclass(frozen=True)
class Split(ABC):
    """A partition of the training samples over workers, each with at least one sample.

    Parameters
    ----------
    workers : int
        Number of workers, >= 1.
    seed : int, optional
        Seed of the split, separate from that of a run.

    Raises
    ------
    ValueError
        For workers < 1.
    """

    workers: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"workers must be >= 1; got {self.workers}")

    def parts(self, targets: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the indices of every worker's samples, ascending, int64.

        Parameters
        ----------
        targets : ndarray
            Targets, shape (n,); integers if they are labels.

        Raises
        ------
        ValueError
            For fewer samples than workers.
        """
        if len(targets) < self.workers:
            raise ValueError(f"every worker needs a sample; got {len(targets)} samples for {self.workers} workers")
        return tuple(np.sort(part) for part in self._parts(targets))

    @abstractmethod
    def _parts(self, targets: np.ndarray) -> list[np.ndarray]: ...

    def _key(self, part: int) -> Key:
        return Key(self.seed, rank=None).fold_in(part)


@dataclass(frozen=True)
class Iid(Split):
    """A uniformly random partition into equal parts; sizes differ by at most one."""

    def _parts(self, targets: np.ndarray) -> list[np.ndarray]:
        return np.array_split(permutation(self._key(0), len(targets)), self.workers)


@dataclass(frozen=True)
class Dirichlet(Split):
    """Label skew: the samples of each class are divided in proportions from Dirichlet(alpha, ..., alpha).

    Parameters
    ----------
    alpha : float, optional
        Concentration, > 0; a worker sees fewer classes for smaller alpha (Hsu et al. 2019, arXiv:1909.06335).  Sizes
        are unequal.

    Raises
    ------
    ValueError
        For alpha <= 0, and for targets other than one label per sample.

    Notes
    -----
    A worker without samples takes one from the largest part.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.alpha > 0:
            raise ValueError(f"alpha must be > 0; got {self.alpha}")

    def _parts(self, targets: np.ndarray) -> list[np.ndarray]:
        if not np.issubdtype(targets.dtype, np.integer):
            raise ValueError(f"a Dirichlet split needs labels; got targets of type {targets.dtype}: use an Iid split")
        if targets.ndim != 1:
            raise ValueError(
                f"a Dirichlet split needs one label a sample; got targets of shape {targets.shape}: use an Iid split"
            )
        parts: list[list[np.ndarray]] = [[] for _ in range(self.workers)]
        for label in np.unique(targets):
            indices = np.flatnonzero(targets == label)
            indices = indices[permutation(self._key(2 * int(label)), len(indices))]
            cuts = np.rint(np.cumsum(self._proportions(int(label)))[:-1] * len(indices)).astype(int)
            for part, piece in zip(parts, np.split(indices, cuts), strict=True):
                part.append(piece)
        return _fed([np.concatenate(part) for part in parts])

    def _proportions(self, label: int) -> np.ndarray:
        """Return Dirichlet proportions, shape (workers,), from gamma variates by inversion, in log form for tiny alpha.

        Gamma(alpha) is Gamma(alpha + 1) times U^(1/alpha).
        """
        u = (bits32(self._key(2 * label + 1), 2 * self.workers) + 0.5) * 2.0**-32
        log = np.log(gammaincinv(self.alpha + 1, u[: self.workers])) + np.log(u[self.workers :]) / self.alpha
        weights = np.exp(log - log.max())
        return weights / weights.sum()


def _fed(parts: list[np.ndarray]) -> list[np.ndarray]:
    """Move the last sample of the largest part to every empty part."""
    for i, part in enumerate(parts):
        if not len(part):
            largest = max(range(len(parts)), key=lambda j: len(parts[j]))
            parts[i], parts[largest] = parts[largest][-1:], parts[largest][:-1]
    return parts
