"""Exchanges that are what they claim to be, as functions from the vectors of m workers to their results.

Every step of the two shots is a method of its own, so that the tests can put one mistake into each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch

from bounds.claims import ConservedMean, Unbiased, UnbiasedMean
from operators import Key, Operator
from operators.random import uniform

Vectors = list[torch.Tensor]
FIRST, SECOND = 0, 1  # stages


@dataclass
class Gather:
    """Every worker sends its whole vector to all."""

    operator: Operator

    def __call__(self, vectors: Vectors, key: Key) -> Vectors:
        """One result a rank."""
        decoded = [self.operator(x, key=key.fold_in(rank)) for rank, x in enumerate(vectors)]
        return [sum(decoded) / len(vectors) for _ in vectors]

    def claim(self, d: int, m: int) -> UnbiasedMean:
        """omega S/m."""
        return UnbiasedMean.gathered(self.operator.claim(d), m)


@dataclass
class TwoShot:
    """Compressed shards to their owners, compressed means to all."""

    first: Operator
    second: Operator

    def __call__(self, vectors: Vectors, key: Key) -> Vectors:
        """One result a rank."""
        m, d = len(vectors), vectors[0].numel()
        cuts = self.cuts(d, m)
        shards = [[x[a:b] for a, b in pairwise(cuts)] for x in vectors]
        means = [self.owned(shards, owner, key) if cuts[owner + 1] > cuts[owner] else None for owner in range(m)]
        decoded = [None if y is None else self.returned(y, owner, key) for owner, y in enumerate(means)]
        return [self.received(rank, decoded, means) for rank in range(m)]

    def cuts(self, d: int, m: int) -> list[int]:
        """Where the shards begin and end: lengths differ by one at most, and may be 0."""
        return [d * j // m for j in range(m + 1)]

    def owned(self, shards: list[Vectors], owner: int, key: Key) -> torch.Tensor:
        """What the owner decodes and takes the mean of."""
        sent = [self.sent(row[owner], rank, owner, key) for rank, row in enumerate(shards)]
        return sum(sent) / len(sent)

    def sent(self, shard: torch.Tensor, rank: int, owner: int, key: Key) -> torch.Tensor:
        """The first shot, decoded."""
        return self.first(shard, key=self.stream(key, FIRST, owner, rank))

    def returned(self, mean: torch.Tensor, owner: int, key: Key) -> torch.Tensor:
        """The second shot, decoded."""
        return self.second(mean, key=self.stream(key, SECOND, owner, owner))

    def received(self, rank: int, decoded: list[torch.Tensor | None], means: list[torch.Tensor | None]) -> torch.Tensor:
        """What one rank puts together: decoded shards, also of its own."""
        return torch.cat([y for y in decoded if y is not None])

    def stream(self, key: Key, stage: int, shard: int, rank: int) -> Key:
        """The numbers of one message."""
        return key.fold_in(stage).fold_in(shard).fold_in(rank)

    def claim(self, d: int, m: int) -> UnbiasedMean:
        """The joint claim with the constants for shards, the largest of their two lengths."""
        lengths = {b - a for a, b in pairwise(self.cuts(d, m))} - {0}
        first, second = (_worst(operator, lengths) for operator in (self.first, self.second))
        return UnbiasedMean.two_shot(first, second, m)


def _worst(operator: Operator, lengths: set[int]) -> Unbiased:
    claims = [operator.claim(length) for length in lengths]
    claims = [claim if isinstance(claim, Unbiased) else Unbiased(0.0, tight=True) for claim in claims]  # no error
    omegas = {claim.omega for claim in claims}
    return Unbiased(max(omegas), tight=len(omegas) == 1 and all(claim.tight for claim in claims))


@dataclass
class SharedScale:
    """Integers of one scale, rounded at random and summed modulo 2^bits: the scale is the largest magnitude."""

    bits: int = 12

    def __call__(self, vectors: Vectors, key: Key) -> torch.Tensor:
        """One result for all."""
        m, largest = len(vectors), float(torch.stack(vectors).abs().max())
        if not math.isfinite(largest):
            raise ValueError(f"the vectors must be finite; got a magnitude of {largest}")
        if largest == 0:
            return torch.zeros_like(vectors[0])
        h = m * largest / (2 ** (self.bits - 1) - m)
        total = torch.zeros(vectors[0].numel(), dtype=torch.int64)
        for rank, x in enumerate(vectors):
            total += self.rounded(x.double() / h, key.fold_in(rank))
        word = 1 << self.bits
        total = (total + word // 2) % word - word // 2
        return (total * (h / m)).float()

    def rounded(self, x: torch.Tensor, key: Key) -> torch.Tensor:
        """One of the two integers around each number, without bias."""
        return torch.floor(x + torch.from_numpy(uniform(key, x.numel()))).long()

    def claim(self, d: int, m: int) -> UnbiasedMean:
        """d h^2/(4 m), and the squared largest magnitude is at most m S."""
        return UnbiasedMean(d * m**2 / (4 * (2 ** (self.bits - 1) - m) ** 2))


class BothEnds:
    """Two shots with error feedback: every worker, and every owner, keeps what its messages lost."""

    def __init__(self, first: Operator, second: Operator) -> None:
        self.first, self.second = first, second
        self.lost: Vectors = []
        self.lost_by_owner = torch.zeros(0)
        self.step = 0

    def __call__(self, vectors: Vectors) -> Vectors:
        """One result a rank; the owners' messages are taken for one vector."""
        if not all(torch.isfinite(x).all() for x in vectors):
            raise ValueError("the vectors must be finite")
        if not self.lost:
            self.lost, self.lost_by_owner = [torch.zeros_like(x) for x in vectors], torch.zeros_like(vectors[0])
        self.step += 1
        corrected = [x + r for x, r in zip(vectors, self.lost, strict=True)]
        sent = [self.first(x, key=Key(1, step=self.step, rank=rank)) for rank, x in enumerate(corrected)]
        mean = sum(sent) / len(sent) + self.lost_by_owner
        result = self.second(mean, key=Key(2, step=self.step))
        self.keep([x - y for x, y in zip(corrected, sent, strict=True)], mean - result)
        return [result.clone() for _ in vectors]

    def keep(self, lost: Vectors, lost_by_owner: torch.Tensor) -> None:
        """Remember both residuals."""
        self.lost, self.lost_by_owner = lost, lost_by_owner


def conserved(alpha1: float, alpha2: float) -> ConservedMean:
    """What is left in the residuals of two contractions."""
    r1, r2 = (math.sqrt(alpha) / (1 - math.sqrt(alpha)) for alpha in (alpha1, alpha2))
    return ConservedMean(r1 + r2 * (1 + 2 * r1))


def plain(vectors: Vectors) -> torch.Tensor:
    """Nothing is compressed."""
    return sum(vectors) / len(vectors)


def kept_halves(vectors: Vectors) -> torch.Tensor:
    """Every worker keeps a coordinate with probability 1/2, by torch's own generator."""
    return sum(2 * x * (torch.rand(x.shape) < 0.5) for x in vectors) / len(vectors)
