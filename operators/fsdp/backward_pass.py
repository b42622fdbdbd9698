"""The exchanges of one backward pass: a gradient that is refused in one of them undoes what all have remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist

from ..ddp.equal_settings import gathered
from ..exchange.channel import Channel
from ..feedback.feedback import State


class BackwardPass:
    """Raises the error of a refused gradient when the pass has ended, so that the model can make another one.

    Parameters
    ----------
    groups : sequence of ProcessGroup, optional
        Groups of copies of the model, whose ranks exchange no gradients here and must raise the same error.
    device : device or str, optional
        Device of the tensors of these groups.
    """

    def __init__(self, groups: Sequence[dist.ProcessGroup] = (), device: torch.device | str = "cpu") -> None:
        self._groups, self._device = tuple(groups), torch.device(device)
        self._before: list[tuple[Channel, State]] = []
        self._refused: ValueError | None = None
        self._ends = False  # whether a callback of this pass is queued

    def enter(self, channels: Sequence[Channel]) -> None:
        """Store the states of a module's channels before its exchange."""
        if not self._ends:
            self._before, self._refused = [], None
            self._ends = _queued(self._end)
        self._before += [(channel, channel.state) for channel in channels]

    def refuse(self, refused: ValueError) -> None:
        """Raise the error at the end of the pass, or immediately outside of one."""
        self._refused = self._refused or refused
        if not self._ends:
            self._put_back()
            raise refused

    def _put_back(self) -> None:
        for channel, state in reversed(self._before):
            channel.state = state

    def _end(self) -> None:
        self._ends = False
        refused, self._refused = self._refused, None
        if self._groups:
            refused = self._of_any_copy(refused)
        if refused is not None:
            self._put_back()
        self._before = []
        if refused is not None:
            raise refused

    def _of_any_copy(self, refused: ValueError | None) -> ValueError | None:
        """Return this rank's error, or the first one of another copy of the model."""
        flag = torch.tensor([refused is not None], dtype=torch.int32, device=self._device)
        for group in self._groups:
            dist.all_reduce(flag, dist.ReduceOp.MAX, group=group)
        if not int(flag):
            return None
        replies = gathered({"refused": refused and str(refused)}, self._groups, self._device)
        return next(ValueError(reply["refused"]) for reply in replies if reply["refused"])


def _queued(end: Callable[[], None]) -> bool:
    """Queue a callback behind those of the model's own; return False outside of a backward pass."""
    queue = torch.autograd.Variable._execution_engine.queue_callback
    try:
        queue(lambda: queue(end))
    except RuntimeError:
        return False
    return True
