"""Election coding: redundant gradient signs, voted twice, tolerate any b faulty workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
import torch

from ..compressors.sign_sgd import SignSGD
from ..inputs import canonical, rows_of
from ..key import Key
from ..message import Message
from ..operator import Operator
from ..random import bits32, uniform
from .aggregate import Aggregate, server_key
from .majority_vote import MajorityVote

# Allocations of the smallest known total, by (n, b): the rows that are not full.  Found by
# integer programming over multisets of subsets; ``tolerates`` proves that they work, not that none is smaller.
MINIMAL: dict[tuple[int, int], tuple[tuple[int, ...], ...]] = {
    (5, 1): ((1,), (2, 3, 4)),
    (7, 1): ((1,), (2,), (3, 4, 5), (3, 6, 7)),
    (7, 2): ((1,), (2, 3, 4, 5, 6)),
    (9, 1): ((1,), (2,), (3,), (4, 5, 6), (4, 7, 8), (5, 6, 7, 8, 9)),
    (9, 2): ((1,), (2,), (3, 4, 5, 6, 7), (3, 4, 5, 6, 7, 8, 9)),
    (9, 3): ((1,), (2, 3, 4, 5, 6, 7, 8)),
}
LARGEST_EXHAUSTIVE = 21  # largest n for which 2^(n-1) sign patterns are enumerated


def minimal_allocation(n: int, b: int) -> np.ndarray:
    """Return an allocation that tolerates any b faulty workers: 0-1 matrix G, shape (n, n).

    Worker i holds partition j if G[i, j] = 1.

    n odd, 0 <= b <= (n-1)/2.  The known minimum for (n, b) in MINIMAL; otherwise (n+1)/2 + b full rows and one
    partition for each other worker, which always works (and is full replication, the only way, at b = (n-1)/2).

    Raises
    ------
    ValueError
        For other n and b.
    """
    if n < 1 or n % 2 == 0 or not 0 <= b <= (n - 1) // 2:
        raise ValueError(f"n must be odd and 0 <= b <= (n-1)/2; got n = {n}, b = {b}")
    rows = MINIMAL.get((n, b))
    if rows is None:
        return _always(n, b)
    G = np.ones((n, n), np.int8)
    for i, held in enumerate(rows):
        G[i] = [j + 1 in held for j in range(n)]
    return G


def _always(n: int, b: int) -> np.ndarray:
    full = (n + 1) // 2 + b
    G = np.eye(n, dtype=np.int8)
    G[n - full :] = 1
    return G


def bernoulli_allocation(n: int, p: float, key: Key) -> np.ndarray:
    """Return a random allocation, shape (n, n): partition i at worker i, every other one with probability p."""
    if not 0 <= p <= 1:
        raise ValueError(f"p must satisfy 0 <= p <= 1; got p = {p}")
    return ((uniform(key, n * n).reshape(n, n) < p) | np.eye(n, dtype=bool)).astype(np.int8)


def tolerates(G: np.ndarray, b: int) -> bool:
    """Return whether the final vote is right for every sign pattern and any behaviour of b workers.

    Parameters
    ----------
    G : ndarray
        0-1 matrix, shape (n, n), n odd and at most 21.  The criterion is exact: for every pattern of partition signs at
        least (n+1)/2 + b workers hold a strict majority of the right sign; 2^(n-1) patterns by symmetry.

    Raises
    ------
    ValueError
        For even or larger n.
    """
    n = G.shape[0]
    if n % 2 == 0 or n > LARGEST_EXHAUSTIVE:
        raise ValueError(f"n must be odd and at most {LARGEST_EXHAUSTIVE} to be checked exhaustively; got n = {n}")
    for head in product((1, -1), repeat=max(0, n - 13)):
        tail = _patterns(n - len(head) - 1) if n > len(head) + 1 else np.zeros((1, 0), np.int16)
        mu = np.hstack([np.ones((len(tail), 1), np.int16), np.tile(np.array(head, np.int16), (len(tail), 1)), tail])
        mu *= np.sign(mu.sum(axis=1, keepdims=True))
        if ((mu @ G.T.astype(np.int16) > 0).sum(axis=1) < (n + 1) // 2 + b).any():
            return False
    return True


def _patterns(n: int) -> np.ndarray:
    return (2 * ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1) - 1).astype(np.int16)


@dataclass(frozen=True)
class ElectionCoding(Aggregate):
    """Vote twice: worker i sends the majority sign of its partitions, the server that of the workers.

    Parameters
    ----------
    b : int, optional
        Number of faulty workers that ``minimal_allocation(n, b)`` tolerates.
    p : float or None, optional
        None, or the density of a Bernoulli allocation drawn from the shared key instead (Sohn et al. 2020).

    Notes
    -----
    The messages are ``local_vote(...)``: signs, d bits each way.  Local ties and even votes of the server are
    broken by fair coins from the voter's stream.
    """

    b: int = 1
    p: float | None = None

    name = "election_coding"
    sources = ("sohn2020",)
    topology = "star"

    @property
    def uplink(self) -> Operator:
        """Signs."""
        return SignSGD()

    @property
    def downlink(self) -> Operator:
        """Signs."""
        return SignSGD()

    def assign(self, n: int, *, key: Key) -> np.ndarray:
        """Return the allocation of n partitions to n workers, shape (n, n).

        Parameters
        ----------
        n : int
            Number of workers, and of partitions.
        key : Key
            Key of a Bernoulli allocation.

        Notes
        -----
        For a deterministic allocation n must be odd and b <= (n-1)/2, else ValueError.
        """
        return minimal_allocation(n, self.b) if self.p is None else bernoulli_allocation(n, self.p, key.shared())

    def local_vote(self, gradients: Sequence[torch.Tensor], held: np.ndarray, *, key: Key) -> Message:
        """Return the message of an honest worker: the majority sign of its partitions, where held[j] = 1.

        Parameters
        ----------
        gradients : sequence of tensor
            One vector per partition, shape (n, d).
        held : ndarray
            1 for the partitions of this worker, shape (n,).
        key : Key
            The worker's stream.
        """
        signs = [np.where(canonical(g) < 0, -1, 1) for g, h in zip(gradients, held, strict=True) if h]
        total = np.sum(signs, axis=0)
        tied = total == 0
        total[tied] = np.where(bits32(key.fold_in(0), total.size)[tied] >> 31 == 1, -1, 1)
        return self.uplink.encode(torch.from_numpy(total.astype(np.float32)), key=key)

    def merge(self, messages: Sequence[Message], *, d: int, keys: Sequence[Key]) -> Message:
        """Return the message of the majority of the workers."""
        return MajorityVote("random").merge(messages, d=d, keys=keys)

    def elect(self, gradients: Sequence[torch.Tensor], *, keys: Sequence[Key]) -> torch.Tensor:
        """Run one round without faults; return the elected signs, float32, shape (d,).

        Parameters
        ----------
        gradients : sequence of tensor
            One vector per partition, shape (n, d).
        keys : sequence of Key
            One stream per worker.
        """
        rows = rows_of(gradients)
        G = self.assign(len(keys), key=keys[0])
        messages = [self.local_vote(rows, row, key=k) for row, k in zip(G, keys, strict=True)]
        d = rows[0].numel()
        return self.downlink.decode(self.merge(messages, d=d, keys=keys), d=d, key=server_key(keys))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(b=1), cls(p=0.2)
