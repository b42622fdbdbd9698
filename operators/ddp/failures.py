"""Lost ranks, refused passes, and the spare process groups that survive them."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist

# What a collective that fails does not say: which exchange it was, and that another rank has gone.


def is_lost(error: RuntimeError) -> bool:
    """Return whether a collective has failed for want of a rank.

    Parameters
    ----------
    error : RuntimeError
        What has been raised.
    """
    return isinstance(error, dist.DistError) or "gloo" in str(error).partition("\n")[0]


@contextmanager
def explaining(exchange: str) -> Iterator[None]:
    """Turn the error of a collective into one sentence; other errors pass as they are.

    Parameters
    ----------
    exchange : str
        What is exchanged, and when: "the gradients of step 3".

    Raises
    ------
    RuntimeError
        If a rank has ended, died or stopped answering.
    """
    try:
        yield
    except RuntimeError as error:
        if not is_lost(error):
            raise
        first_line = str(error).partition("\n")[0]
        raise RuntimeError(
            f"the exchange of {exchange} failed, because another rank has ended, died or stopped; all ranks must make "
            f"equally many steps ({first_line})"
        ) from error


# An error that a backward pass raises when it has ended, so that the model can make another one.
#
# What a hook itself raises leaves the model's reducer in the middle of the pass: every later pass is then an internal
# assertion of torch.  So the gradients of a refused pass become NaN on all ranks, which loss scalers skip, and the
# error comes after the reducer has ended the pass.


def raise_after_backward(error: Exception) -> None:
    """Raise an error at the end of the backward pass that is under way; called by its hook.

    Parameters
    ----------
    error : Exception
        The same on all ranks.
    """
    queue = torch.autograd.Variable._execution_engine.queue_callback

    def throw() -> None:
        raise error

    queue(lambda: queue(throw))  # behind the callback of the reducer, which may be queued after this call


def not_a_number(buffer: torch.Tensor) -> torch.Tensor:
    """Fill a bucket with NaN and return it.

    Parameters
    ----------
    buffer : tensor
        The bucket's memory.
    """
    return buffer.fill_(float("nan"))


# Process groups for use beside other collectives, reused after their last user has been deleted.
#
# A group is not destroyed with its user: ranks collect garbage at different times, and torch names new groups by the
# number of existing ones.  The ranks agree on a group that is free on all of them.

Method = TypeVar("Method", bound=Callable[..., Any])

MOST = 62  # groups in one bit mask; further ones are not reused
PATIENCE_S = 2.0  # wait for messages in flight of a deleted user


@dataclass(eq=False)
class Spare:
    """A reusable group of ranks of a parent group.

    Parameters
    ----------
    group : weak reference
        The group, which torch owns until it is destroyed.
    user : weak reference
        Object that uses it; dead when the group is free.
    failed : bool, optional
        Whether a collective has failed or was left.  Ranks may then be at different collectives, so the group is not
        reused.
    thread : Thread or None, optional
        Thread of its latest message, which keeps a deleted user alive.
    """

    group: weakref.ref[Any]
    user: weakref.ref[Any]
    failed: bool = False
    thread: threading.Thread | None = None


_spares: weakref.WeakKeyDictionary[Any, dict[str, list[Spare]]] = weakref.WeakKeyDictionary()


def spare_group(
    parent: Any, user: object, *, device: torch.device, ranks: Sequence[int] | None = None, use: str = "all ranks"
) -> tuple[Any, Spare]:
    """Return a group with the parent's time limit that nothing else uses, and its entry; every rank must call it.

    Parameters
    ----------
    parent : ProcessGroup
        Group whose ranks agree on it.
    user : object
        The group is free again when it is deleted.
    device : device
        Device that the parent's back end needs.
    ranks : sequence of int or None, optional
        Ranks of the parent in the group, this one among them; None is all.
    use : str, optional
        Name of the choice of ranks, equal on all ranks; a group is reused under its name only.
    """
    spares = _alive(parent, use)
    _wait_for(spares)
    free = sum(1 << n for n, s in enumerate(spares[:MOST]) if s.user() is None and not s.failed)
    free = _free_on_all(free, parent, device)
    if free:
        spare = spares[(free & -free).bit_length() - 1]
        spare.user = weakref.ref(user)
        return spare.group(), spare
    group = _new_group(parent, ranks, timeout_of(parent), dist.get_backend_config(parent))
    spares.append(Spare(weakref.ref(group), weakref.ref(user)))
    return group, spares[-1]


def side_group(parent: Any, timeout_s: float) -> tuple[Any, Spare]:
    """Return the gloo group of the parent's ranks with another time limit, and its entry.

    All users of the parent share it, until a collective fails in it: use it where all ranks make the same calls in the
    same order.

    Parameters
    ----------
    parent : ProcessGroup
        Group of the ranks.
    timeout_s : float, seconds
        Time limit of its collectives.
    """
    spares = _alive(parent, f"within {timeout_s} s")
    if not spares or spares[-1].failed:
        group = _new_group(parent, None, timedelta(seconds=timeout_s), "gloo")
        spares.append(Spare(weakref.ref(group), weakref.ref(parent)))
    return spares[-1].group(), spares[-1]


def timeout_of(group: Any) -> timedelta:
    """Return the time limit of a process group's collectives.

    Parameters
    ----------
    group : ProcessGroup
        Of torch.distributed.
    """
    device = torch.device("cuda" if "cuda:nccl" in dist.get_backend_config(group) else "cpu")
    return group._get_backend(device).options._timeout


def marks_failure(method: Method) -> Method:
    """Decorate a transport's method so that it marks the transport's group as failed when it raises."""

    @wraps(method)
    def marked(self: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return method(self, *arguments, **keywords)
        except BaseException:
            if self.spare is not None:
                self.spare.failed = True
            raise

    return cast(Method, marked)


def _alive(parent: Any, use: str) -> list[Spare]:
    """Return the entries of a use whose groups have not been destroyed; new ones are appended to this list."""
    alive = dist.distributed_c10d._world.pg_map
    uses = _spares.setdefault(parent, {})
    uses[use] = [spare for spare in uses.get(use, []) if spare.group() in alive]
    return uses[use]


def _free_on_all(free: int, parent: Any, device: torch.device) -> int:
    """Return the bits that are set on all ranks of the parent."""
    local = torch.tensor([free], device=device)
    of_all = [torch.empty_like(local) for _ in range(dist.get_world_size(parent))]
    dist.all_gather(of_all, local, group=parent)
    for bits in of_all:
        free &= int(bits)
    return free


def _new_group(parent: Any, ranks: Sequence[int] | None, timeout: timedelta, backend: str) -> Any:
    members = range(dist.get_world_size(parent)) if ranks is None else ranks
    of_world = [dist.get_global_rank(parent, rank) for rank in members]
    return dist.new_group(of_world, timeout=timeout, backend=backend, use_local_synchronization=True)


def _wait_for(spares: Sequence[Spare]) -> None:
    """Wait briefly for messages in flight, after which a deleted user is free."""
    until = time.monotonic() + PATIENCE_S
    for spare in spares:
        if spare.thread is not None:
            spare.thread.join(max(until - time.monotonic(), 0.0))
