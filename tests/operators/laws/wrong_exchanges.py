"""Exchanges with one mistake each: what people who write an all-reduce of their own get wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

import operators
from operators import Key

from . import honest_exchanges as honest

M = 4
QSGD, TCDQ, HALVES = operators.QSGD(4), operators.TCDQ(0.3), operators.RandomK(0.5)


class DividedTwice(honest.TwoShot):
    """The owner's mean is divided by m again."""

    def received(self, rank, decoded, means):
        return super().received(rank, decoded, means) / len(means)


class StaleOwnerKey(honest.TwoShot):
    """The owner's stream is that of the first step for ever."""

    def returned(self, mean, owner, key):
        return super().returned(mean, owner, Key(key.seed))


class StaleKeyAtDecoders(honest.TwoShot):
    """The decoders read the owner's shared numbers of the step before."""

    def returned(self, mean, owner, key):
        stream = self.stream(key, honest.SECOND, owner, owner)
        message = self.second.encode(mean, key=stream)
        return self.second.decode(message, d=mean.numel(), key=replace(stream, step=key.step + 1))


class RoundedToNearest(honest.TwoShot):
    """The second stage is deterministic: QSGD's two levels, to the nearest instead of at random."""

    def returned(self, mean, owner, key):
        norm = float(mean.norm())
        return torch.sign(mean) * torch.round(2 * mean.abs() / norm) * norm / 2 if norm else mean


class OwnerKeepsItsMean(honest.TwoShot):
    """The owner goes on with the exact mean of its shard."""

    def received(self, rank, decoded, means):
        exact = [means[rank] if owner == rank else y for owner, y in enumerate(decoded)]
        return super().received(rank, exact, means)


class FoldsInAnotherOrder(honest.TwoShot):
    """The sender folds (stage, shard, rank), the owner (stage, rank, shard)."""

    def sent(self, shard, rank, owner, key):
        message = self.first.encode(shard, key=self.stream(key, honest.FIRST, owner, rank))
        other = self.stream(key, honest.FIRST, rank, owner)
        return self.first.decode(message, d=shard.numel(), key=other)


class OwnerForgets(honest.BothEnds):
    """The owner's residual is dropped."""

    def keep(self, lost, lost_by_owner):
        super().keep(lost, torch.zeros_like(lost_by_owner))


class WorkerForgets(honest.BothEnds):
    """The workers' residuals are dropped."""

    def keep(self, lost, lost_by_owner):
        super().keep([torch.zeros_like(r) for r in lost], lost_by_owner)


class ScaleOfAnotherShard(honest.TwoShot):
    """A shard is scaled back by the length of the shard before it."""

    def received(self, rank, decoded, means):
        lengths = [0.0 if y is None else float(y.norm()) for y in means]
        scaled = [
            y if y is None or not lengths[j] or not lengths[j - 1] else y * (lengths[j - 1] / lengths[j])
            for j, y in enumerate(decoded)
        ]
        return super().received(rank, scaled, means)


class PaddingLeaks(honest.TwoShot):
    """Vectors are padded to a multiple of m, and the padding is returned."""

    def __call__(self, vectors, key):
        padding = torch.zeros(-vectors[0].numel() % len(vectors))
        return super().__call__([torch.cat([x, padding]) for x in vectors], key)


class PaddingShiftsShards(honest.TwoShot):
    """Shards of equal length, the last filled up with what is left of the buffer, and cut at the wrong end."""

    def __call__(self, vectors, key):
        d, m = vectors[0].numel(), len(vectors)
        padding = torch.zeros(-d % m)
        return [y[padding.numel() :] for y in super().__call__([torch.cat([x, padding]) for x in vectors], key)]


class StagesShareNumbers(honest.TwoShot):
    """The stage is not folded: the owner's message to itself and the one to all are drawn alike."""

    def stream(self, key, stage, shard, rank):
        return super().stream(key, 0, shard, rank)


class RanksShareNumbers(honest.TwoShot):
    """The rank is not folded: the errors of equal vectors do not average."""

    def stream(self, key, stage, shard, rank):
        return super().stream(key, stage, shard, 0)


class LastShardIsShort(honest.TwoShot):
    """Shards of d // m coordinates: what is left over is not sent."""

    def __call__(self, vectors, key):
        d, m = vectors[0].numel(), len(vectors)
        sent = d // m * m
        if not sent:
            return [torch.zeros(d) for _ in vectors]
        results = super().__call__([x[:sent] for x in vectors], key)
        return [torch.cat([y, torch.zeros(d - sent)]) for y in results]


class NumbersEverySecondStep(honest.TwoShot):
    """The step of the key advances every second step."""

    def stream(self, key, stage, shard, rank):
        return super().stream(replace(key, step=key.step // 2), stage, shard, rank)


class SilentNaN(honest.TwoShot):
    """What is not finite is taken for zero."""

    def __call__(self, vectors, key):
        return super().__call__([torch.nan_to_num(x, 0.0, 0.0, 0.0) for x in vectors], key)


class SumsInPlace(honest.TwoShot):
    """The result is written into the first worker's vector."""

    def __call__(self, vectors, key):
        results = super().__call__(vectors, key)
        vectors[0].copy_(results[0])
        return results


class OwnShardIsLeftOut(honest.TwoShot):
    """The owner takes the mean of what the others sent."""

    def owned(self, shards, owner, key):
        others = [self.sent(row[owner], rank, owner, key) for rank, row in enumerate(shards) if rank != owner]
        return sum(others) / max(1, len(others)) if others else shards[0][owner]


class SumInBinary16(honest.TwoShot):
    """The owner adds in half precision."""

    def owned(self, shards, owner, key):
        sent = [self.sent(row[owner], rank, owner, key).half() for rank, row in enumerate(shards)]
        return (sum(sent) / len(sent)).float()


class WordsWrap(honest.SharedScale):
    """The scale leaves no room for the sum of m integers."""

    def __call__(self, vectors, key):
        m, largest = len(vectors), float(torch.stack(vectors).abs().max())
        h = largest / 2 ** (self.bits - 1) if largest else 1.0
        word = 1 << self.bits
        total = sum(self.rounded(x.double() / h, key.fold_in(rank)) for rank, x in enumerate(vectors))
        total = (total + word // 2) % word - word // 2
        return (total * (h / m)).float()


class BuffersAreReused(honest.TwoShot):
    """All steps return one piece of memory."""

    def __post_init__(self):
        self.memory = {}

    def __call__(self, vectors, key):
        result = super().__call__(vectors, key)[0]
        shared = self.memory.setdefault(result.shape, torch.zeros_like(result))
        return [shared.copy_(result) for _ in vectors]


@dataclass(frozen=True)
class Wrong:
    """A wrong exchange and the laws of which at least one must accuse it."""

    exchange: object
    laws: frozenset[str]

    @property
    def name(self):
        return type(self.exchange).__name__


def _wrong(cls, operator, *laws):
    return Wrong(cls(operator, operator), frozenset(laws))


LISTED = (  # what the theory's list of wrong implementations asks for; residuals are below
    _wrong(DividedTwice, QSGD, "unbiasedness", "error"),
    Wrong(StaleOwnerKey(operators.Identity(), TCDQ), frozenset({"unbiasedness"})),
    _wrong(StaleKeyAtDecoders, TCDQ, "error"),
    Wrong(RoundedToNearest(operators.Identity(), operators.QSGD(2)), frozenset({"unbiasedness"})),
    _wrong(OwnerKeepsItsMean, QSGD, "results"),
    _wrong(FoldsInAnotherOrder, TCDQ, "error"),
    _wrong(ScaleOfAnotherShard, QSGD, "unbiasedness", "error"),
    _wrong(PaddingLeaks, QSGD, "results"),
)
MORE = (
    _wrong(PaddingShiftsShards, QSGD, "unbiasedness", "error"),
    _wrong(StagesShareNumbers, HALVES, "unbiasedness", "error"),
    _wrong(RanksShareNumbers, TCDQ, "error"),
    _wrong(LastShardIsShort, QSGD, "unbiasedness", "error"),
    _wrong(NumbersEverySecondStep, HALVES, "steps"),
    _wrong(SilentNaN, QSGD, "not-finite"),
    _wrong(SumsInPlace, QSGD, "no-mutation"),
    _wrong(OwnShardIsLeftOut, QSGD, "unbiasedness", "error"),
    _wrong(SumInBinary16, QSGD, "results", "unbiasedness", "error"),
    Wrong(WordsWrap(), frozenset({"unbiasedness", "error"})),
    _wrong(BuffersAreReused, QSGD, "kept-results"),
)
FORGETFUL = (OwnerForgets, WorkerForgets)
