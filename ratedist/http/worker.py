"""A process that computes what is not a closed form, and is replaced when a request takes too long."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import signal
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

LIMIT_S = 5.0  # no request computes longer
START_LIMIT_S = 120.0  # importing, on a busy machine
MOST_WAITING = 16
SPARE_BYTES = 2 << 30  # memory that the process may use beyond what it has after importing


class Overload(Exception):  # noqa: N818  a state, not an error of the server
    """The request was given up; ``status`` is the HTTP status to answer with."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Worker:
    """One process, one request at a time, at most LIMIT_S seconds each."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self.limit_s = limit_s
        self._context = multiprocessing.get_context("spawn")
        self._line = ThreadPoolExecutor(1, "ratedist-worker")  # one request at a time talks to the process
        self._waiting = 0
        self._ready = False
        self._process: Any = None
        self._connection: Connection | None = None

    def start(self) -> None:
        """Start the process; it imports while the server already answers."""
        self._connection, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_loop, args=(theirs,), daemon=True, name="ratedist-worker")
        self._process.start()
        theirs.close()
        self._ready = False

    def close(self) -> None:
        """End the process and whatever it is computing."""
        process = self._process
        if process is not None:
            with contextlib.suppress(ValueError):  # ended meanwhile
                process.kill()
        self._line.shutdown(wait=True, cancel_futures=True)
        self._stop()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._process = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def call(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """The answer of ``calls.answer``.  Raises ValueError as it does, Overload when given up."""
        if self._waiting >= MOST_WAITING:
            raise Overload(503, f"{MOST_WAITING} requests are waiting already: try again in a few seconds")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            done, found = await loop.run_in_executor(self._line, self._ask, name, given)
        finally:
            self._waiting -= 1
        if not done:
            raise ValueError(found)
        assert isinstance(found, dict)
        return found

    def _ask(self, name: str, given: dict[str, Any]) -> tuple[bool, Any]:
        if self._process is None or not self._process.is_alive():
            self._stop()
            self.start()
        assert self._connection is not None
        try:
            if not self._ready:
                if not self._connection.poll(START_LIMIT_S):
                    raise Overload(503, f"the worker did not start within {START_LIMIT_S:g} s: try again")
                self._connection.recv()
                self._ready = True
            self._connection.send((name, given))
            if not self._connection.poll(self.limit_s):
                raise Overload(422, f"computing took longer than {self.limit_s:g} s and was given up: ask for less")
            answer: tuple[bool, Any] = self._connection.recv()
            return answer
        except (EOFError, OSError):
            ready = self._ready
            self._stop()
            if not ready:
                raise Overload(503, "the worker did not start: try again later") from None
            raise Overload(422, "computing needed too much memory and was given up: ask for less") from None
        except Overload:
            self._stop()
            raise


def _loop(connection: Connection) -> None:
    """Answer requests until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when to end
    import operators

    from .calls import answer

    operators.all_operators()
    problem = {"L": 1, "sigma2": 1, "eta": 0.1, "gap": 1, "time_s": 60, "cluster": {"workers": 2}}
    answer("tau", problem)
    answer("error", problem | {"tau": 1})
    _limit_memory()
    with contextlib.suppress(EOFError, OSError):
        connection.send("ready")
        while True:
            name, given = connection.recv()
            try:
                connection.send((True, answer(name, given)))
            except ValueError as refused:
                connection.send((False, str(refused)))


def _limit_memory() -> None:
    """Where the system can, fail allocations beyond SPARE_BYTES instead of filling the machine."""
    try:
        import resource
        from pathlib import Path

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        return
    limit = pages * resource.getpagesize() + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
