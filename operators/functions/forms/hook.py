"""A communication hook of torch's DistributedDataParallel, run in a process group of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from .form import Form, name_of


class Bucket:
    """What ``torch.distributed.GradBucket`` offers a hook: one bucket that holds one parameter's gradient."""

    def __init__(self, gradient: torch.Tensor) -> None:
        self._buffer = gradient
        self._parameter = torch.nn.Parameter(torch.zeros_like(gradient))

    def buffer(self) -> torch.Tensor:
        """Return the flattened gradients, shape (d,)."""
        return self._buffer

    def set_buffer(self, buffer: torch.Tensor) -> None:
        """Replace the flattened gradients."""
        self._buffer = buffer

    def gradients(self) -> list[torch.Tensor]:
        """Return a view for each parameter."""
        return [self._buffer]

    def parameters(self) -> list[torch.Tensor]:
        """Return the parameters."""
        return [self._parameter]

    def index(self) -> int:
        """Return the number of the bucket."""
        return 0

    def is_last(self) -> bool:
        """Return whether no bucket follows."""
        return True


class Hook(Form):
    """``hook(state, bucket) -> Future``: the gradient of a group of one rank as every rank would receive it.

    Parameters
    ----------
    state : optional
        Handed to every call.  A group is started for a check, or a call, unless the caller has one.
    """

    def __init__(self, hook: Callable[[Any, Any], Any], state: Any = None) -> None:
        self.hook, self.state = hook, state
        self.__name__ = name_of(hook)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Run it on a bucket that holds a copy of x: a hook may write to its bucket."""
        bucket = Bucket(self.given(x).clone())
        with self.session():
            value = self.hook(self.state, bucket).wait()
        return (value[0] if isinstance(value, list) else value).reshape(x.shape)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Create a process group of one inside this context if there is none."""
        if dist.is_initialized():
            yield
            return
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        try:
            yield
        finally:
            dist.destroy_process_group()
