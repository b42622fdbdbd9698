"""Wrong transports: what they do is patched into torch.distributed before the ranks fork, and taken out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist

IN_PLACE = ("send", "recv", "isend", "irecv")


@contextmanager
def bodies_sent(times: int) -> Iterator[None]:
    """Let every body travel so many times and count once; ranks that fork within do the same.

    A body is what messages carry, a tensor of bytes; lengths and whole models are left alone.
    """
    with ExitStack() as patches:
        for name in IN_PLACE:
            patches.enter_context(mock.patch.object(dist, name, _repeated(getattr(dist, name), times)))
        swapped = _swapped_repeatedly(dist.all_to_all_single, times)
        patches.enter_context(mock.patch.object(dist, "all_to_all_single", swapped))
        yield


class _All:
    """Several operations as one."""

    def __init__(self, works: list[Any]) -> None:
        self.works = works

    def wait(self) -> None:
        """Wait for every one."""
        for work in self.works:
            work.wait()


def _repeated(call: Callable[..., Any], times: int) -> Callable[..., Any]:
    def patched(tensor: torch.Tensor, *where: Any, **more: Any) -> Any:
        if tensor.dtype != torch.uint8:
            return call(tensor, *where, **more)
        works = [call(tensor.clone(), *where, **more) for _ in range(times - 1)] + [call(tensor, *where, **more)]
        return _All(works) if hasattr(works[-1], "wait") else works[-1]

    return patched


def _swapped_repeatedly(call: Callable[..., Any], times: int) -> Callable[..., Any]:
    def patched(output: torch.Tensor, sent: torch.Tensor, *sizes: Any, async_op: bool = False, **more: Any) -> Any:
        if sent.dtype == torch.uint8:
            for _ in range(times - 1):
                call(output, sent, *sizes, **more)
        return call(output, sent, *sizes, async_op=async_op, **more)

    return patched
