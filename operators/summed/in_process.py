"""A sum over m ranks in one process: the same bits as between m real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..exchange.shards import lengths
from ..inputs import rows_of
from ..key import Key
from .end import SumEnd
from .summed import Summed, Sums
from .terms import Terms


@dataclass(frozen=True, eq=False)
class SumOfRanks:
    """What the rounds have come to.

    Parameters
    ----------
    mean : tensor, shape (d,)
        What every rank holds at the end, float32.
    sent_bits : tuple of int, bits
        What each rank has sent, once for every receiver, without headers.
    """

    mean: torch.Tensor
    sent_bits: tuple[int, ...]


def sum_of_ranks(
    vectors: Sequence[torch.Tensor], method: Summed, *, key: Key, ends: Sequence[SumEnd] | None = None
) -> SumOfRanks:
    """Return the mean of m vectors as an exchange between m ranks gives it.

    Parameters
    ----------
    vectors : sequence of tensor, shape (d,)
        One of every rank, in rank order.
    method : Summed
        What is summed.
    key : Key
        Of the method's randomness; its step is kept, the rank is filled in.
    ends : sequence of SumEnd or None, optional
        Those of the step before, with what the ranks remember; none for the first step.

    Raises
    ------
    ValueError
        For no vectors, vectors of different lengths, or one that is not finite.
    """
    vectors = rows_of(vectors)
    d, m = vectors[0].numel(), len(vectors)
    ends = ends or [SumEnd(method, key, rank=rank, m=m, d=d) for rank in range(m)]
    exchanges = [end.begin(x, key.step) for end, x in zip(ends, vectors, strict=True)]
    bits = np.zeros(m, np.int64)
    while not exchanges[0].over:
        rows = list(zip(*(exchange.terms for exchange in exchanges), strict=True))
        for first, *_ in rows:
            bits += first.width * _words_sent(first.values.size, m)
        sums = Sums(tuple(_total(row) for row in rows), m)
        for exchange in exchanges:
            exchange.advance(sums)
    means = [end.mean() for end in ends]
    return SumOfRanks(torch.from_numpy(means[0]), tuple(bits.tolist()))


def _total(row: Sequence[Terms]) -> np.ndarray:
    """Return the sum of the ranks' terms as they are written and read."""
    packed = [terms.unpack(terms.pack(terms.values), terms.values.size) for terms in row]
    return row[0].unpack(row[0].pack(row[0].total(packed)), packed[0].size)


def _words_sent(n: int, m: int) -> np.ndarray:
    """Return how many of n summands and sums each rank sends: those of the others' shards, and its own sums to all."""
    owned = np.array(lengths(n, m))
    return n - owned + (m - 1) * owned
