"""A process that computes what is not a closed form, and is replaced when a request takes too long."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

LIMIT_S = 5.0  # of processor time; no request computes longer
WALL_S = 60.0  # the same on a machine where others compute too
START_LIMIT_S = 120.0  # importing, on a busy machine
EXIT_S = 10.0  # a process whose pipe is closed has ended, or soon will
SPARE_BYTES = 2 << 30  # memory that the process may use beyond what it has after importing
CALLS = "ratedist.http.calls"
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
        """End the process whatever it is computing; a thread that waits for its answer is told."""
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
        raise (ValueError if kind == "refused" else Fault)(answer)

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
        return pickle.dumps(("refused", str(refused)))
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
