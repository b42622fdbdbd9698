"""Bytes that an averaging sends and receives, predicted from lengths, independently of the code that sends them.

Between all pairs of m ranks a message of b bits goes with a header of 8 bytes to m - 1 others.  A vector of n numbers
goes whole to the other ranks if m = 2 or if all vectors fit in 1 MiB.  Otherwise every rank receives one shard of each
member's vector and sends its shard of the mean to all.
"""

from __future__ import annotations

from collections.abc import Sequence

HEADER_BYTES, PLACE_BITS, WHOLE_BYTES = 8, 32, 1 << 20

Bytes = tuple[int, int]  # sent, received


def of_messages(bits: Sequence[int], *, rank: int, members: Sequence[int], front: int) -> Bytes:
    """Return the bytes of one all-gather of messages.

    ``bits`` are the lengths of the ranks' messages, and ``front`` the bits before a member's message.
    """
    taking = set(members)
    lengths = [HEADER_BYTES + -(-(b + (front if r in taking else PLACE_BITS)) // 8) for r, b in enumerate(bits)]
    return (len(bits) - 1) * lengths[rank], sum(lengths) - lengths[rank]


def of_vectors(n: int, *, value_bytes: int, mean_bytes: int, rank: int, size: int, members: Sequence[int]) -> Bytes:
    """Return the bytes of one mean of vectors of n numbers, sent in ``value_bytes`` and returned in ``mean_bytes``."""
    if n == 0 or size == 1:
        return 0, 0
    if len(members) == size and (size == 2 or size * n * value_bytes <= WHOLE_BYTES):
        return (size - 1) * n * value_bytes, (size - 1) * n * value_bytes
    longest = -(-n // size)
    shard = min(n, (rank + 1) * longest) - min(n, rank * longest)
    sent = (n - shard) * value_bytes * (rank in members) + (size - 1) * shard * mean_bytes
    received = shard * value_bytes * (len(members) - (rank in members)) + (n - shard) * mean_bytes
    return sent, received


def of_beside(travelled: Sequence[tuple[str, int]], *, rank: int, size: int, members: Sequence[int]) -> Bytes:
    """Return the bytes of the exchanges of buffers in one averaging.

    ``travelled`` lists kinds and numbers: "numbers" of 8 bytes, "bytes" from every rank to every other, means of
    "floats".
    """
    sent = received = 0
    for what, n in travelled:
        if what == "floats":
            more = of_vectors(n, value_bytes=4, mean_bytes=4, rank=rank, size=size, members=members)
        else:
            more = ((size - 1) * n * (8 if what == "numbers" else 1),) * 2
        sent, received = sent + more[0], received + more[1]
    return sent, received
