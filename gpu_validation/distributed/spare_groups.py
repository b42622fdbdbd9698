"""Process groups for use beside other collectives, reused after their last user has been deleted.

A group is not destroyed with its user: ranks collect garbage at different times, and torch names new groups by the
number of existing ones.  The ranks agree on a group that is free on all of them.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import torch.distributed as dist

from operators.ddp.nodes import group_apart

from .in_flight import PATIENCE_S

Method = TypeVar("Method", bound=Callable[..., Any])

MOST = 62  # groups in one bit mask; further ones are not reused


@dataclass(eq=False)
class Spare:
    """A reusable group of a parent group's ranks.

    Parameters
    ----------
    group : weak reference
        The group, which torch owns until it is destroyed.
    user : weak reference
        Transport that uses it; dead when the group is free.
    failed : bool, optional
        Whether a collective has failed.  Ranks may then be at different collectives, so the group is not reused.
    thread : Thread or None, optional
        Thread of its latest message, which keeps a deleted user alive.
    """

    group: weakref.ref[Any]
    user: weakref.ref[Any]
    failed: bool = False
    thread: threading.Thread | None = None


_spares: weakref.WeakKeyDictionary[Any, list[Spare]] = weakref.WeakKeyDictionary()


def spare_group(parent: Any, user: object, agree: Callable[[int], Sequence[int]]) -> tuple[Any, Spare]:
    """Return a group of the parent's ranks that no other transport uses, and its entry; every rank must call it.

    The group is free again when ``user`` is deleted.  ``agree`` returns one integer of every rank, in rank order.
    """
    alive = dist.distributed_c10d._world.pg_map
    spares = [spare for spare in _spares.get(parent, []) if spare.group() in alive]
    _spares[parent] = spares
    _wait_for(spares)
    free = sum(1 << n for n, s in enumerate(spares[:MOST]) if s.user() is None and not s.failed)
    for mask in agree(free):
        free &= mask
    if free:
        spare = spares[(free & -free).bit_length() - 1]
        spare.user = weakref.ref(user)
        return spare.group(), spare
    group = group_apart(parent)
    spares.append(Spare(weakref.ref(group), weakref.ref(user)))
    return group, spares[-1]


def _wait_for(spares: Sequence[Spare]) -> None:
    """Wait briefly for messages in flight, after which a deleted user is free."""
    until = time.monotonic() + PATIENCE_S
    for spare in spares:
        if spare.thread is not None:
            spare.thread.join(max(until - time.monotonic(), 0.0))


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
