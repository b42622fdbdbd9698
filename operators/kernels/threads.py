"""Split the work on one vector over threads: compiled loops run without the interpreter's lock.

Parts end where tiles end, so that every part has the bytes that it has in the whole, for every number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

import torch

from bounds.fields import whole

T = TypeVar("T")
U = TypeVar("U")

LEAST = 1 << 17  # coordinates of a part: a part takes 0.1 ms or more, and to wake a thread some 0.05 ms
PARTS_PER_THREAD = 4  # so that a thread which is interrupted leaves its parts to the others

_chosen: int | None = None
_pool: ThreadPoolExecutor | None = None
_here = threading.local()


def set_threads(n: int | None) -> None:
    """Set the number of threads that work on one vector on the CPU; messages do not depend on it.

    Vectors below some 2^18 coordinates always take one thread.  The number holds for this process and its forks.

    Parameters
    ----------
    n : int or None
        At least 1, or None for ``torch.get_num_threads()`` at every call, which is the default.

    Raises
    ------
    ValueError
        For a number below 1.
    """
    global _chosen
    if n is not None and (n := whole("n", n)) < 1:
        raise ValueError(f"n must be at least 1, or None; got n = {n}")
    _chosen = n


def get_threads() -> int:
    """Return the number of threads that work on one long vector; 1 inside such a thread."""
    if getattr(_here, "works", False):
        return 1
    return torch.get_num_threads() if _chosen is None else _chosen


def is_long(d: int) -> bool:
    """Return whether a vector is worth more than one thread.

    Parameters
    ----------
    d : int
        Number of coordinates.
    """
    return d >= 2 * LEAST


def mapped(work: Callable[[T], U], items: Iterable[T], *, d: int) -> list[U]:
    """Return ``[work(item) for item in items]``; several threads work on the items of a sequence.

    Other iterables, such as the runs of a vector that is too long for memory, are read once, by one thread.  Every
    thread has a copy of the caller's context.  If some calls raise, the error of the first item is raised.

    Parameters
    ----------
    work : callable
        Called once per item; calls must not depend on one another.
    items : iterable
        The items.
    d : int
        Coordinates of all items; one thread works on fewer than ``2 * LEAST``.
    """
    if not isinstance(items, Sequence) or not is_long(d) or (n := min(get_threads(), len(items))) < 2:
        return [work(item) for item in items]
    results: list[Any] = [None] * len(items)
    failures: dict[int, BaseException] = {}
    waiting = iter(list(enumerate(items)))  # of a list: two threads never get the same item

    def drain() -> None:
        _here.works = True
        try:
            for i, item in waiting:
                try:
                    results[i] = work(item)
                except BaseException as failure:
                    failures[i] = failure
        finally:
            _here.works = False

    helpers = [_helpers().submit(copy_context().run, drain) for _ in range(n - 1)]
    drain()
    for helper in helpers:
        if not helper.cancel():  # one that has not begun is not needed
            helper.result()
    if failures:
        raise failures[min(failures)]
    return results


def shared(n: int, unit: int, work: Callable[[int, int], U], *, size: int = 1) -> list[U]:
    """Return the results of ``work(start, stop)`` for parts of 0 .. n, in order; of one part where n is small.

    Parameters
    ----------
    n : int
        Number of coordinates, or of other items.
    unit : int
        Every part but the last is a multiple of it.
    work : callable
        Works on items start .. stop - 1.
    size : int, optional
        Coordinates of an item.
    """
    if not is_long(n * size) or (threads := get_threads()) < 2:
        return [work(0, n)]
    parts = min(PARTS_PER_THREAD * threads, n * size // LEAST)
    length = -(-n // (parts * unit)) * unit
    return mapped(lambda start: work(start, min(start + length, n)), range(0, n, length), d=n * size)


def _helpers() -> ThreadPoolExecutor:
    """Return the threads of this process, which start when they are first needed."""
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=256, thread_name_prefix="operators")
    return _pool


def _forget() -> None:
    """Start new threads in a forked process, which has none of its parent's."""
    global _pool
    _pool = None
    _here.works = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
