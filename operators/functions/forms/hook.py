"""A communication hook of torch's DistributedDataParallel, run in a process group of one or of several threads."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from threading import Thread
from time import monotonic
from typing import Any

import torch
import torch.distributed as dist

from .form import Form, name_of

PATIENCE_S = 20.0  # for ranks that have as much to do as one that has ended


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


def _still_waiting(ranks: Sequence[Thread]) -> str:
    """Wait for all ranks; return a sentence if some do not end soon after the first one, which had as much to do."""
    end = inf
    while alive := [rank for rank, thread in enumerate(ranks) if thread.is_alive()]:
        if len(alive) < len(ranks):
            end = min(end, monotonic() + PATIENCE_S)
        if monotonic() > end:
            return (
                f"rank {alive[0]} of {len(ranks)} waits for a collective though another rank has ended: "
                "every rank must call the same collectives"
            )
        ranks[alive[0]].join(0.05)
    return ""


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
        with self.session():
            return self._called(self.state, x)

    def _called(self, state: Any, x: torch.Tensor) -> torch.Tensor:
        value = self.hook(state, Bucket(self.given(x).clone())).wait()
        return (value[0] if isinstance(value, list) else value).reshape(x.shape)

    def in_group(self, rounds: Sequence[Sequence[torch.Tensor]]) -> list[list[torch.Tensor]]:
        """Run rounds in a group of m threads, one a rank; each has a copy of the state.

        Parameters
        ----------
        rounds : sequence
            In each round m vectors, each of shape (d,).

        Returns
        -------
        list
            In each round the results of the m ranks.

        Raises
        ------
        RuntimeError
            If a rank has ended and another one still waits for a collective.
        Exception
            What the first rank raised that failed.
        """
        from torch.testing._internal.distributed import multi_threaded_pg as threads

        m = len(rounds[0])
        results: list[list[torch.Tensor]] = [[] for _ in range(m)]
        errors: list[BaseException] = []
        store = dist.HashStore()

        def run(rank: int) -> None:
            try:
                dist.init_process_group("threaded", rank=rank, world_size=m, store=store)
                state = copy.deepcopy(self.state)
                results[rank] = [self._called(state, vectors[rank]) for vectors in rounds]
                dist.destroy_process_group()
            except BaseException as error:
                errors.append(error)
                threads.ProcessLocalGroup.exception_handle(error)

        torch._C._distributed_c10d._set_thread_isolation_mode(True)  # type: ignore[attr-defined]
        threads._install_threaded_pg()
        try:
            ranks = [Thread(target=run, args=(rank,), daemon=True) for rank in range(m)]
            for thread in ranks:
                thread.start()
            if waiting := _still_waiting(ranks):
                threads.ProcessLocalGroup.exception_handle(None)  # it wakes them
                for thread in ranks:
                    thread.join(PATIENCE_S)
                errors.insert(0, RuntimeError(waiting))
        finally:
            threads.ProcessLocalGroup.reset()
            threads._uninstall_threaded_pg()
            torch._C._distributed_c10d._set_thread_isolation_mode(False)  # type: ignore[attr-defined]
        if errors:
            raise errors[0]
        return [list(of_round) for of_round in zip(*results, strict=True)]

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
