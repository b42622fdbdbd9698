"""Several worker processes, and the queue before them: requests wait their turn, but neither too many nor too long."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .worker import LIMIT_S, START_LIMIT_S, Overload, Worker

MOST_WAITING = 256
MOST_WAIT_S = START_LIMIT_S  # as long as the processes may take to start; who leaves earlier is not computed for
LEFT = 499  # the status that nginx gives to requests whose client has left; nobody receives it


def processes_here() -> int:
    """Return worker processes of a server: one a core, but at least 2, so that one long request blocks nobody, at most
    4.
    """
    return min(max(2, os.cpu_count() or 1), 4)


class Pool:
    """Worker processes that share one queue.

    Parameters
    ----------
    processes : int or None, optional
        How many.
    wait_s : float, seconds, optional
        A request that has waited longer is refused.
    worker : callable, optional
        Makes one.
    """

    def __init__(
        self, processes: int | None = None, *, wait_s: float = MOST_WAIT_S, worker: Callable[[], Worker] = Worker
    ) -> None:
        self.wait_s = wait_s
        self._workers = [worker() for _ in range(processes or processes_here())]
        self._threads = ThreadPoolExecutor(len(self._workers), "ratedist-worker")
        self._idle: asyncio.Queue[Worker] = asyncio.Queue()
        self._waiting = 0
        for idle_worker in self._workers:
            self._idle.put_nowait(idle_worker)

    def start(self) -> None:
        """Start all processes."""
        for worker in self._workers:
            worker.start()

    def close(self) -> None:
        """End all processes and whatever they are computing."""
        for worker in self._workers:
            worker.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in self._workers:
            worker.stop()

    async def call(
        self, name: str, given: dict[str, Any], has_left: Callable[[], Awaitable[bool]] | None = None
    ) -> dict[str, Any]:
        """Return the answer of the next idle worker.  Raises what ``Worker.ask`` does, and Overload if the queue is too
        long.

        Parameters
        ----------
        has_left : callable or None, optional
            Whether nobody waits for the answer any more; then Overload is raised instead of computing it.

        Notes
        -----
        A request that is abandoned later keeps its worker until that has finished.
        """
        worker = await self._next()
        loop = asyncio.get_running_loop()
        try:
            if has_left is not None and await has_left():
                raise Overload(LEFT, "the client has left: ask again")
            asked = self._threads.submit(worker.ask, name, given)
        except BaseException:
            self._idle.put_nowait(worker)
            raise
        asked.add_done_callback(lambda _: loop.call_soon_threadsafe(self._idle.put_nowait, worker))
        return await asyncio.wrap_future(asked)

    async def _next(self) -> Worker:
        if self._waiting >= MOST_WAITING:
            raise Overload(503, f"{MOST_WAITING} requests are waiting already: try again in a few seconds")
        self._waiting += 1
        try:
            async with asyncio.timeout(self.wait_s):
                return await self._idle.get()
        except TimeoutError:
            raise Overload(503, f"no worker was free within {self.wait_s:g} s: try again in a few seconds") from None
        finally:
            self._waiting -= 1


def pool_of(limit_s: float = LIMIT_S) -> Pool:
    """Return the pool of a server.

    Parameters
    ----------
    limit_s : float, seconds, optional
        Seconds that one request may compute.
    """
    return Pool(worker=lambda: Worker(limit_s))
