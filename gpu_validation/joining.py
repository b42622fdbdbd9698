"""What joins the ranks of a run: processes by torch.distributed, or virtual workers of one process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import torch

from operators import Message

from .mixing import Transport


class Joining(Transport, Protocol):
    """A transport that also moves messages, numbers and the starting point."""

    def gather(self, messages: Sequence[Message | int | None], *, position: int) -> dict[int, Message]:
        """All ranks' messages by rank, from those of the ranks hosted here, or the reasons why they have none."""

    def numbers(self, rows: Sequence[Sequence[float]]) -> list[list[float]]:
        """A few numbers of every rank, in rank order."""

    def agree(self, numbers: Sequence[int]) -> list[int]:
        """One integer of every rank, in rank order."""

    def broadcast(self, tensors: Sequence[Sequence[torch.Tensor]]) -> None:
        """Replace all ranks' tensors by rank 0's, in place."""

    def uncounted(self) -> AbstractContextManager[None]:
        """Bytes handed over within are not counted."""
