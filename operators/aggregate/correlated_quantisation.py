"""Correlated quantisation: workers round equal numbers in different directions, so that errors cancel in the mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch

from bounds.claims import Claim, NoClaim, Unbiased

from ..compilation import jit
from ..compressors.identity import Identity
from ..compressors.k_level import KLevel, omega
from ..key import Key
from ..message import Message
from ..operator import Operator
from ..random import bits32
from .aggregate import Aggregate, check, server_key

_TILE = 1 << 14  # coordinates per draw of shared words
_PERMUTATIONS = 1  # fold of the shared stream; 0 is the server's


@jit
def _thresholds(shared, n, place, out):
    """Replace own words g by (rank 2^32 + g)/n, with the rank of shared word ``place`` among the n of a coordinate."""
    for c in range(out.size):
        word, rank = shared[c * n + place], np.uint64(0)
        for j in range(n):
            other = shared[c * n + j]
            rank += np.uint64(other < word or (other == word and j < place))
        out[c] = np.uint32(((rank << np.uint64(32)) | np.uint64(out[c])) // np.uint64(n))


@dataclass(frozen=True)
class CorrelatedKLevel(KLevel):
    """``KLevel`` with rounding that is correlated between ranks; worker number ``key.rank`` modulo ``workers``.

    Each message is one of an unbiased ``KLevel`` with k levels.  The words of all ranks must differ and depend on each
    other.

    Parameters
    ----------
    x
        Float tensor, shape (d,).
    k : int
        Number of levels, 2 .. 65536.
    workers : int
        Number n of workers.

    Raises
    ------
    ValueError
        For a key without rank.
    """

    k: int = field()
    workers: int = field()

    name = "correlated_klevel"
    rate = None  # type: ignore[assignment]
    ranks_agree = True

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(2, 5), cls(16, 3)

    def words(self, key: Key, d: int, start: int = 0) -> np.ndarray:
        """Return uniform words of d coordinates; n consecutive ranks have one word in each n-th of the range."""
        if key.rank is None:
            raise ValueError("correlated quantisation needs the worker's rank in the key; got rank = None")
        n, out = self.workers, bits32(key, d, start=start).copy()
        common = key.shared().fold_in(_PERMUTATIONS)
        for first in range(0, d, _TILE):
            tile = out[first : first + _TILE]
            _thresholds(bits32(common, tile.size * n, start=(start + first) * n), n, key.rank % n, tile)
        return out

    def _words(self, keys: Sequence[Key], n: int, start: int) -> np.ndarray:
        return np.stack([self.words(key, n, start) for key in keys])


@dataclass(frozen=True)
class CorrelatedQuantisation(Aggregate):
    """Round up at worker i where U_i >= 1 - r_i, with stratified U_i; exactly ``workers`` = n workers send k levels.

    Parameters
    ----------
    k : int, optional
        Number of levels, 2 .. 65536.
    workers : int, optional
        n >= 1; their keys differ in the rank alone, and the ranks modulo n must be 0, ..., n - 1.

    Raises
    ------
    ValueError
        For k or workers out of range.

    Notes
    -----
    r_i is how far the coordinate lies above its lower level, and U_i = (pi_i + g_i)/n with pi a permutation of 0, ...,
    n-1 that all workers draw alike, afresh for each coordinate, and g_i uniform and private.  Each U_i is uniform, so
    each message is that of an unbiased KLevel; together they are stratified (Suresh et al. 2022).  With omega that of
    KLevel, the mean of the n decoded vectors is unbiased with omega/n, and never worse than with independent workers:
    for r, s let S = sum_p clip(n r - p, 0, 1) clip(n s - p, 0, 1); the two roundings have covariance (n r s - S)/(n
    (n-1)), and S >= n r s by Chebyshev's sum inequality.  omega/n is reached where only one vector is not zero; equal
    vectors have frac(n r)(1 - frac(n r))/n^2 steps^2 a coordinate, 0 for whole n r.  A missing worker would destroy the
    stratification, so ``merge`` refuses it.
    """

    k: int = 2
    workers: int = 4

    name = "correlated_quantisation"
    sources = ("suresh2022",)
    topology = "star"

    def __post_init__(self) -> None:
        KLevel(self.k)
        if self.workers < 1:
            raise ValueError(f"workers must be at least 1; got workers = {self.workers}")

    @property
    def uplink(self) -> Operator:
        """Operator of k levels with correlated rounding."""
        return CorrelatedKLevel(self.k, self.workers)

    @property
    def downlink(self) -> Operator:
        """Exact binary32."""
        return Identity()

    def merge(self, messages: Sequence[Message], *, d: int, keys: Sequence[Key]) -> Message:
        """Return the message of the mean, summed in the order of the workers.

        Raises
        ------
        ValueError
            Unless there is one message per worker, all of one round.
        """
        check(messages, keys)
        places = {key.rank % self.workers for key in keys if key.rank is not None}
        if len(messages) != self.workers or len(places) != self.workers:
            raise ValueError(
                f"all {self.workers} workers must send, each once; got {len(messages)} messages from {len(places)} of "
                "them: correlated rounding cannot miss one"
            )
        if len({key.shared() for key in keys}) > 1:
            raise ValueError(
                "the keys of one round must differ in their rank alone: correlated rounding shares the rest"
            )
        rows, total = self.decoded(messages, d, keys), np.zeros(d)
        for row in rows:
            total += row
        return self.downlink.encode(torch.from_numpy(total / self.workers), key=server_key(keys))

    def claim_mean(self, d: int, n: int) -> Claim:
        """Return omega/n for n = ``workers``."""
        if n != self.workers:
            return NoClaim(f"it is built for exactly {self.workers} workers")
        return Unbiased(omega(self.k, d) / n)

    def claim_mean_at(self, vectors: Sequence[np.ndarray]) -> Unbiased:
        """Return the exact variance of the mean of n vectors, relative to their mean energy, which must be positive.

        Parameters
        ----------
        vectors : sequence of ndarray
            One vector per worker, shape (n, d).
        """
        wide, n = np.stack(vectors).astype(np.float64), self.workers
        low, high = wide.min(axis=1, keepdims=True), wide.max(axis=1, keepdims=True)
        steps = (high - low) / (self.k - 1)
        rest = np.mod(np.divide(wide - low, steps, out=np.zeros_like(wide), where=steps > 0), 1)
        strata = np.clip(n * rest[:, :, None] - np.arange(n), 0, 1)
        total = float((steps**2 * rest * (1 - rest)).sum())
        if n > 1:  # sums over all pairs, less those of a worker with itself
            scaled, parts = steps * rest, steps[:, :, None] * strata
            products = (scaled.sum(axis=0) ** 2 - (scaled**2).sum(axis=0)).sum()
            common = (parts.sum(axis=0) ** 2 - (parts**2).sum(axis=0)).sum()
            total += float(n * products - common) / (n * (n - 1))
        return Unbiased(max(0.0, total) / n**2 / float((wide**2).sum() / n), tight=True)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(k=16, workers=3), cls(workers=1)
