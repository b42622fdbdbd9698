"""Sum of vectors, bitwise equal on every rank to a loop: shards by all-to-all, sum in rank order, gather."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist

VALUE_BYTES = 4


@dataclass(frozen=True)
class ExactSum:
    """Sum with the bytes of a ring all-reduce, 2 (m-1)/m vectors per rank, and a fixed order; binary32 in and out."""

    name = "exact sum"

    def all_reduce(self, vector: torch.Tensor) -> tuple[torch.Tensor, int]:
        """Return (sum in rank order in binary32, payload bytes that this rank has sent).

        Parameters
        ----------
        vector : float32, shape (d,), d the same on all ranks

        Raises
        ------
        TypeError
            For another dtype.
        """
        if vector.dtype != torch.float32:
            raise TypeError(f"the vector must be float32; got {vector.dtype}: convert it first")
        rank, size = dist.get_rank(), dist.get_world_size()
        shards = shard_sizes(vector.numel(), size)
        parts = torch.empty(size * shards[rank])
        dist.all_to_all_single(parts, vector.contiguous(), [shards[rank]] * size, shards)
        shard_sum = torch.zeros(shards[rank])
        for part in parts.split(shards[rank]) if shards[rank] else ():
            shard_sum = shard_sum + part
        total = torch.empty(vector.numel())
        dist.all_to_all_single(total, shard_sum.repeat(size), shards, [shards[rank]] * size)
        return total, vector.nbytes - shard_sum.nbytes + (size - 1) * shard_sum.nbytes

    def payload_bytes(self, d: int, size: int, rank: int) -> int:
        """Return the bytes that a rank sends: the other ranks' shards, and its summed shard once per other rank.

        Parameters
        ----------
        d : int
            Number of coordinates.
        size : int
            Number of ranks.
        rank : int
            Rank, 0 <= rank < size.
        """
        shards = shard_sizes(d, size)
        return VALUE_BYTES * (d - shards[rank] + (size - 1) * shards[rank])

    def total_payload_bytes(self, d: int, size: int) -> int:
        """Return the bytes of 2 (m - 1) d values, as many as a ring all-reduce sends.

        Parameters
        ----------
        d : int
            Number of coordinates.
        size : int
            Number of ranks.
        """
        return sum(self.payload_bytes(d, size, rank) for rank in range(size))


def shard_sizes(d: int, size: int) -> list[int]:
    """Return the lengths of ``size`` shards of d entries, which differ by at most one."""
    return [d // size + (rank < d % size) for rank in range(size)]
