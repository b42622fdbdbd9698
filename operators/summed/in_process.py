"""A sum over m ranks in one process: the same bits as between m real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..exchange.choice import lengths
from ..exchange.in_process import MeanOfStream, rows_of_batches
from ..inputs import rows_of
from ..key import Key, Keys
from .end import SumEnd
from .summed import Summed, SummedByRows, Sums, Terms


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


def sum_of_stream(
    batches: Callable[[], Iterable[torch.Tensor | np.ndarray]], method: SummedByRows, *, m: int, key: Key
) -> MeanOfStream:
    """Return the mean of the vectors of m ranks that are read in batches, once per round.

    It equals ``sum_of_ranks`` bit for bit, and needs memory for the sums and one batch.

    Parameters
    ----------
    batches : callable
        Returns the vectors of the ranks in rank order as matrices of shape (b, d), one vector per row; b may vary.
        Called once per round; must return the same numbers every time.
    method : SummedByRows
        Method without memory, such as ``SharedScale`` or ``SignVote``.
    m : int
        Number of ranks, which the words of a sum must hold.
    key : Key
        Randomness of the method; its step is kept, the rank is filled in.

    Raises
    ------
    ValueError
        For a number of vectors other than m, rows of different lengths, or one that is not finite.
    """
    sums: list[Sums] = []
    d, sent = 0, 0
    while True:
        first, terms, totals = 0, tuple[Terms, ...](), list[np.ndarray]()
        for rows in rows_of_batches(batches()):
            ranks = range(first, first + rows.shape[0])
            terms, d = method.terms(rows.cpu().numpy(), sums, keys=Keys(key, ranks), m=m), rows.shape[1]
            if not terms:
                break
            totals = totals or [np.zeros(part.values.shape[1], part.exact) for part in terms]
            for part, total in zip(terms, totals, strict=True):
                part.add(total, part.values)
            first = ranks.stop
        if not terms and sums:
            return MeanOfStream(torch.from_numpy(method.mean(sums, d=d, m=m)), m, sent)
        if first != m:
            raise ValueError(f"there must be m = {m} vectors; got {first}")
        sent += sum(2 * (m - 1) * total.size * part.width for part, total in zip(terms, totals, strict=True))
        finished = zip(terms, totals, strict=True)
        sums.append(Sums(tuple(part.unpack(part.pack(part.finish(t)), t.size) for part, t in finished), m))


def _total(row: Sequence[Terms]) -> np.ndarray:
    """Return the sum of the ranks' terms as they are written and read."""
    packed = [terms.unpack(terms.pack(terms.values), terms.values.size) for terms in row]
    return row[0].unpack(row[0].pack(row[0].total(packed)), packed[0].size)


def _words_sent(n: int, m: int) -> np.ndarray:
    """Return how many of n summands and sums each rank sends: those of the others' shards, and its own sums to all."""
    owned = np.array(lengths(n, m))
    return n - owned + (m - 1) * owned
