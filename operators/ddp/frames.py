"""Numbers and a message from every rank to every other in one collective: all know the lengths beforehand."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist

from ..message import Message

NUMBER_BYTES = 8  # int64


class Frames:
    """One frame from every rank to every other: numbers, then a body.

    Parameters
    ----------
    rows : sequence of sequence of int
        The numbers for every rank, in rank order.
    messages : sequence of Message
        The bodies for every rank; empty to send zeros in their place.
    sent_bits : sequence of int, bits
        Lengths of the bodies for every rank.
    received_bits : sequence of int, bits
        Lengths of those that come from every rank.
    group : ProcessGroup or None
        Process group.
    device : device
        Where the back end needs its tensors.

    Notes
    -----
    A body of another length is cut or filled with zeros: its numbers must say so.
    """

    def __init__(
        self,
        rows: Sequence[Sequence[int]],
        messages: Sequence[Message],
        *,
        sent_bits: Sequence[int],
        received_bits: Sequence[int],
        group: dist.ProcessGroup | None,
        device: torch.device,
    ) -> None:
        rank = dist.get_rank(group)
        others = [r for r in range(len(rows)) if r != rank]
        self._front, self.body_bytes = NUMBER_BYTES * len(rows[0]), 0
        counts, self._sizes = [0] * len(rows), [0] * len(rows)
        for r in others:
            counts[r] = self._front + _bytes(sent_bits[r])
            self._sizes[r] = self._front + _bytes(received_bits[r])
            self.body_bytes += _bytes(sent_bits[r])
        sent = torch.zeros(sum(counts), dtype=torch.uint8, device=device)
        numbers = torch.tensor([list(rows[r]) for r in others], dtype=torch.int64).view(torch.uint8)
        start = 0
        for i, r in enumerate(others):
            sent[start : start + self._front] = numbers[i]
            if messages:
                body = messages[r].payload[: counts[r] - self._front]
                sent[start + self._front : start + self._front + body.numel()] = body
            start += counts[r]
        self._received = torch.empty(sum(self._sizes), dtype=torch.uint8, device=device)
        self.work = dist.all_to_all_single(self._received, sent, self._sizes, counts, group=group, async_op=True)

    def numbers(self) -> list[list[int]]:
        """Wait, and return the numbers of every rank; those of this one, which sends itself none, are left empty."""
        self.work.wait()
        fronts = [part[: self._front] for part in self._received.split(self._sizes) if part.numel()]
        rows = torch.stack(fronts).view(torch.int64).tolist() if fronts else []
        return [rows.pop(0) if size else [] for size in self._sizes]

    def bodies(self) -> list[torch.Tensor]:
        """Return what has come from every rank, once the numbers are there."""
        return [part[self._front :] for part in self._received.split(self._sizes)]


def _bytes(bits: int) -> int:
    return (bits + 7) // 8


class Undeclared(ValueError):  # noqa: N818  ranks receive it
    """A rank's messages are not as long as all knew beforehand; every rank raises it, and nothing was taken.

    Parameters
    ----------
    rank : int
        The rank.
    """

    def __init__(self, rank: int) -> None:
        super().__init__(
            f"a message of rank {rank} is not as long as its operator declares exactly: correct the operator's bits(d)"
        )
