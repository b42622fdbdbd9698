"""Worker processes for requests that are not closed forms, and the queue before them."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import pickle
import signal
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from ...calls import call_of
from ...calls.call import Route
from ...records import to_json

# -- requests ------------------------------------------------------------------------------------------


def route_of(name: str) -> Route:
    """Return the route of a call.  Raises KeyError if there is none."""
    call = call_of(name)
    if call is None or call.route is None:
        raise KeyError(name)
    return call.route


def answer(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON of one call, in which no name makes anything be imported.

    Raises
    ------
    ValueError
        For bad input.
    """
    from operators.outside import without_imports

    try:
        with without_imports():
            result: dict[str, Any] = to_json(route_of(name).answer(given))
    except ArithmeticError as failure:
        raise ValueError(f"the numbers are too extreme to compute with ({failure}): choose milder ones") from None
    return result


def prepare() -> None:
    """Import and derive what the process needs that computes the rest."""
    import operators

    operators.all_operators()
    problem = {"L": 1, "sigma2": 1, "eta": 0.1, "gap": 1, "time_s": 60, "bits": 0, "cluster": {"workers": 2}}
    answer("tau", problem)
    answer("error", problem | {"tau": 1})
    answer("plan", {"d": 1000, "cluster": {"workers": 2}, "operators": ["identity", "natural"], "target": 0.1})


def warm_up() -> None:
    """Import and derive what the closed forms need, so that no request waits for it."""
    for level in ("omega", "alpha"):
        answer("bits", {"d": 10, level: 0.5})
        for unknown in ("d", "bits", level):
            given = {"d": 10, "bits": 20, level: 0.5} | {unknown: None}
            answer("solve", given)


# -- one worker ----------------------------------------------------------------------------------------

LIMIT_S = 5.0  # of processor time; no request computes longer
WALL_S = 60.0  # the same on a machine where others compute too
START_LIMIT_S = 120.0  # importing, on a busy machine
EXIT_S = 10.0  # a process whose pipe is closed has ended, or soon will
SPARE_BYTES = 2 << 30  # memory that the process may use beyond what it has after importing
CALLS = "ratedist.interfaces.http.worker"
TOO_MUCH_MEMORY = f"computing needs more than {SPARE_BYTES >> 30} GiB of memory and was given up: ask for less"
MOST_CHARACTERS = 200
OUT_OF_TIME = getattr(signal, "SIGPROF", 0)  # ends a process whose processor time is up, in the midst of C code too


class Overload(Exception):  # noqa: N818  a state, not an error of the server
    """The request was given up; ``status`` is the HTTP status to answer with."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Fault(Exception):  # noqa: N818  its sentence is the answer
    """The server's own fault, in one sentence."""


class Worker:
    """One process, one request at a time.

    Parameters
    ----------
    limit_s : float, seconds, optional
        Seconds of processor time that a request may compute.
    wall_s : float, seconds, optional
        Seconds that it may take at all.
    calls : str, optional
        The module whose ``prepare()`` is called first and whose ``answer(name, given)`` computes.
    """

    def __init__(self, limit_s: float = LIMIT_S, *, wall_s: float = WALL_S, calls: str = CALLS) -> None:
        self.limit_s = limit_s
        self.wall_s = wall_s
        self._calls = calls
        self._context = multiprocessing.get_context("spawn")
        self._ready = False
        self._process: Any = None
        self._connection: Connection | None = None

    def start(self) -> None:
        """Start the process; it imports while the server already answers."""
        self._connection, theirs = self._context.Pipe()
        arguments = (theirs, self._calls, self.limit_s)
        self._process = self._context.Process(target=_loop, args=arguments, daemon=True, name="ratedist-worker")
        self._process.start()
        theirs.close()
        self._ready = False

    def kill(self) -> None:
        """End the process whatever it is computing; a thread that waits for its answer is notified."""
        process = self._process
        if process is not None:
            with contextlib.suppress(ValueError):  # ended meanwhile
                process.kill()

    def stop(self) -> None:
        """End the process and forget it; no thread may wait for its answer."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._process = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of ``calls.answer``; blocks.

        Raises
        ------
        ValueError
            As it does, Fault for any other exception in it and if the process crashed, Overload when the request took
            too long or too much memory, or the process was killed from outside.
        """
        if self._process is None or not self._process.is_alive():
            self.stop()
            self.start()
        assert self._connection is not None
        try:
            if not self._ready:
                if not self._connection.poll(START_LIMIT_S):
                    raise Overload(503, f"the worker did not start within {START_LIMIT_S:g} s: try again")
                self._connection.recv()
                self._ready = True
            self._connection.send((name, given))
            if not self._connection.poll(self.wall_s):
                raise Overload(503, f"nothing was found within {self.wall_s:g} s: try again later, or ask for less")
            kind, answer = self._connection.recv()
        except (EOFError, OSError):
            raise self._ended() from None
        except Overload:
            self.stop()
            raise
        if kind == "answer":
            return dict(answer)
        if kind == "memory":
            raise Overload(422, answer)
        if kind == "refused":
            from ...numbers import ArgumentError

            raise ArgumentError(*answer)
        raise Fault(answer)

    def _ended(self) -> Exception:
        """Return why the process is gone, by its exit status."""
        self._process.join(EXIT_S)
        status, ready = self._process.exitcode, self._ready
        self.stop()
        if not ready:
            return Overload(503, "the worker did not start: try again later")
        if status == -OUT_OF_TIME:
            return Overload(422, f"computing takes more than {self.limit_s:g} s and was given up: ask for less")
        if status == -signal.SIGKILL:
            return Overload(
                503, "the process that computes was killed, as by a machine without memory: try again, or ask for less"
            )
        how = f"was ended by {signal.Signals(-status).name}" if status and status < 0 else f"ended with status {status}"
        return Fault(f"the process that computes {how}, a fault of ratedist: report it with this request")


def _loop(connection: Connection, calls: str, limit_s: float) -> None:
    """Answer requests until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when to end
    module = import_module(calls)
    module.prepare()
    _limit_memory()
    with contextlib.suppress(EOFError, OSError):
        connection.send("ready")
        while True:
            name, given = connection.recv()
            _limit_time(limit_s)
            outcome = _outcome(module.answer, name, given)
            _limit_time(0)
            connection.send_bytes(outcome)


def _outcome(answer: Any, name: str, given: dict[str, Any]) -> bytes:
    """Return what came of one request, pickled: whatever is raised, the process lives on and says what it was."""
    try:
        return pickle.dumps(("answer", answer(name, given)))
    except ValueError as refused:
        return pickle.dumps(("refused", (str(refused), getattr(refused, "argument", ""))))
    except BaseException as error:  # SystemExit too: the next request is to be answered
        if isinstance(error, MemoryError) or "allocate memory" in str(error):  # torch's words, in a RuntimeError
            return pickle.dumps(("memory", TOO_MUCH_MEMORY))
        return pickle.dumps(("fault", fault_sentence(error)))


def fault_sentence(error: BaseException) -> str:
    """Return what is said of an exception that nobody expected."""
    text = " ".join(str(error).split())[:MOST_CHARACTERS]
    fault = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"computing failed by a fault of ratedist, not of the request ({fault}): report it with this request"


def _limit_time(seconds: float) -> None:
    """Where the system can, end this process after so many seconds of processor time; 0 lifts the limit."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


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


# -- pool ----------------------------------------------------------------------------------------------

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
