"""Jobs of a Dask cluster, each in a new process next to the worker that has taken it."""

from __future__ import annotations

import logging
import os
import pickle
import sys
import time
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from bounds.extras import missing_extra

from ...records.exit_status import UsageError
from .engine import Call, Engine, EngineLost, Job, Local, WorkerLost

ADDRESS = "DASK_SCHEDULER_ADDRESS"  # Dask's own variable
RESOURCE = "machine"  # resource of a worker that represents a machine, for timings
CONNECT_S = 10.0  # time limit of the scheduler's answers
WORKERS_S = 30.0  # time limit without workers, at the start and while a unit waits
WATCH_S = 2.0  # between two queries for workers
POLL_S = 0.1  # between two polls of a worker's process
REAPED_S = 10.0  # time limit for a cancelled job's process to end
LEFT = "its Dask worker was killed or has left the cluster"


class Dask(Engine):
    """Tasks of an existing Dask cluster; a worker runs each in a new process of its machine.

    Parameters
    ----------
    jobs : int or None
        Number of jobs at a time, >= 1; None takes the workers' threads, or one per machine for timings.
    cores : int, optional
        Cores per job.
    exclusive : bool, optional
        Whether a machine runs one job at a time; only workers with the resource ``machine=1`` then receive any.
    address : str or None, optional
        Address of the scheduler; None takes ``DASK_SCHEDULER_ADDRESS``.
    workers_s : float, optional, seconds
        Time limit of the wait for a worker.

    Raises
    ------
    UsageError
        Without distributed, a scheduler or workers, or, for timings, without workers that represent machines.
    """

    def __init__(
        self,
        jobs: int | None = None,
        *,
        cores: int = 1,
        exclusive: bool = False,
        address: str | None = None,
        workers_s: float = WORKERS_S,
    ) -> None:
        try:
            import distributed
        except ImportError as error:
            raise UsageError(str(missing_extra(error, "--on dask") or error)) from error
        self.address = address or os.environ.get(ADDRESS, "")
        if not self.address:
            raise UsageError(
                f"--on dask needs the address of a scheduler, but {ADDRESS} is not set: "
                f"export {ADDRESS}=tcp://HOST:8786 as `dask scheduler` prints it, or give --on local"
            )
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # this engine reports losses once
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        self._exclusive, self._workers_s = exclusive, workers_s
        try:
            self._client: Any = distributed.Client(self.address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"no Dask scheduler answers at {self.address}: start one by `dask scheduler`, "
                f"or set {ADDRESS} to the address of one"
            ) from error
        try:
            workers = self._first_workers()
        except BaseException:
            self.close()
            raise
        self._manned = self._asked = time.monotonic()
        places = [1 if exclusive else max(1, worker["nthreads"] // cores) for worker in workers]
        self.jobs = jobs or sum(places)
        self.shares_machines = self.jobs > 1 and not exclusive

    def submit(self, call: Call) -> Job:
        """Submit a task to the scheduler."""
        name = f"gpu-validation-{uuid.uuid4().hex}"
        resources = {RESOURCE: 1} if self._exclusive else None
        try:
            future = self._client.submit(carry_out_once, call, name, key=name, retries=0, resources=resources)
        except Exception:
            if self.is_connected():
                raise
            future = None
        return _Task(future, name, self)

    def close(self) -> None:
        """Disconnect from the cluster, which continues."""
        self._client.close(timeout=CONNECT_S)

    def is_connected(self) -> bool:
        """Return whether the scheduler is connected."""
        return bool(self._client.status == "running")

    def is_deserted(self) -> bool:
        """Return whether there has been no worker for a job beyond the time limit."""
        now = time.monotonic()
        if now - self._asked >= WATCH_S and self.is_connected():
            self._asked = now
            if self._workers():
                self._manned = now
        return now - self._manned > self._workers_s

    def loss(self) -> WorkerLost:
        """Return the error of a job that the scheduler no longer knows."""
        if self.is_connected():
            return WorkerLost("its task was cancelled at the scheduler")
        return EngineLost(f"the Dask scheduler at {self.address} has gone: start it and its workers, and run again")

    def desertion(self) -> EngineLost:
        """Return the error of a job that no worker takes."""
        return EngineLost(self._without_workers())

    def ticket(self, name: str) -> Any:
        """Return the scheduler's event that is set while a task's only process runs."""
        from distributed import Event

        return Event(name, client=self._client)

    def _first_workers(self) -> list[dict[str, Any]]:
        """Wait for workers."""
        deadline = time.monotonic() + self._workers_s
        while not (workers := self._workers()):
            if time.monotonic() > deadline:
                raise UsageError(self._without_workers())
            time.sleep(POLL_S)
        if self._exclusive:
            _require_machines(workers)
        return workers

    def _workers(self) -> list[dict[str, Any]]:
        """Return the scheduler's description of the workers that may take a job."""
        try:
            answer = self._client.sync(self._client.scheduler.identity, callback_timeout=CONNECT_S)
        except (OSError, AttributeError):  # it has gone, or is as good as gone
            return []
        workers = list(answer["workers"].values())
        return [worker for worker in workers if not self._exclusive or worker["resources"].get(RESOURCE, 0) >= 1]

    def _without_workers(self) -> str:
        """Return the message for a cluster without suitable workers."""
        kind, command = "worker", f"`dask worker {self.address}`"
        if self._exclusive:
            kind = f"worker with the resource {RESOURCE}=1, which a study that measures seconds needs,"
            command = f'`dask worker {self.address} --resources "{RESOURCE}=1"` on every machine'
        return (
            f"no {kind} has been connected to the Dask scheduler at {self.address} for {self._workers_s:g} s: "
            f"start one by {command}, and run again"
        )


def _require_machines(workers: list[dict[str, Any]]) -> None:
    """Raise UsageError if the workers' resources let two jobs run on one machine."""
    places: dict[str, float] = {}
    for worker in workers:
        places[worker["host"]] = places.get(worker["host"], 0) + worker["resources"][RESOURCE]
    for host, number in places.items():
        if number >= 2:
            raise UsageError(
                f"the workers on {host} have the resource {RESOURCE} {number:g} times, and a study that measures "
                f'seconds wants one unit a machine at a time: start one worker there with --resources "{RESOURCE}=1"'
            )


class _Task(Job):
    """A task of Dask."""

    def __init__(self, future: Any, name: str, engine: Dask) -> None:
        self._future, self._name, self._engine = future, name, engine

    def done(self) -> bool:
        return self._future is None or bool(self._future.done()) or self._engine.is_deserted()

    def answer(self) -> Any:
        if self._future is None or self._future.cancelled():
            raise self._engine.loss()
        if not self._future.done():
            self._future.cancel()
            self._give_back()
            raise self._engine.desertion()
        try:
            pickled, loss = self._future.result(timeout=CONNECT_S)
        except Exception as error:
            if not self._engine.is_connected():
                raise self._engine.loss() from error
            words = str(error).strip().partition("\n")[0]
            raise WorkerLost(f"its Dask worker left no answer: {type(error).__name__}: {words}") from error
        finally:
            self._give_back()
        if loss:
            raise WorkerLost(loss)
        return pickle.loads(pickled)

    def cancel(self) -> None:
        if self._future is None or not self._engine.is_connected():
            return  # workers end with their scheduler, and processes with their worker
        if not self._future.done():
            self._future.cancel()
            deadline = time.monotonic() + REAPED_S
            while self._is_under_way() and time.monotonic() < deadline:
                time.sleep(0.05)
        self._give_back()

    def _is_under_way(self) -> bool:
        """Return whether a process has started and not ended."""
        try:
            return self._engine.is_connected() and self._engine.ticket(self._name).is_set()
        except OSError:
            return False

    def _give_back(self) -> None:
        """Release the task at the scheduler, which would otherwise recompute a lost result."""
        self._future.release()
        with suppress(OSError):  # it has gone, and the ticket with it
            if self._engine.is_connected():
                self._engine.ticket(self._name).clear()


def carry_out_once(call: Call, name: str) -> tuple[bytes, str]:
    """Run a call in a new process, in a worker; return its pickled answer or the description of its loss.

    Dask restarts a task when its worker dies.  The second start runs nothing, so that the caller learns of the loss and
    decides.
    """
    from distributed import Event, get_worker

    worker, ticket = get_worker(), Event(name)
    if ticket.is_set():
        return b"", LEFT
    ticket.set()
    local = Local(1, Path(worker.local_directory) / name)
    process = local.submit(replace(call, folders=(*filter(None, sys.path), *call.folders)))
    try:
        while not process.done():
            withdrawn = _is_withdrawn(worker, name)
            if withdrawn or worker.status.name not in ("running", "paused"):
                process.cancel()
                if withdrawn:
                    ticket.clear()
                return b"", LEFT
            time.sleep(POLL_S)
        return process.pickled_answer(), ""
    except WorkerLost as loss:
        return b"", str(loss)
    finally:
        local.close()


def _is_withdrawn(worker: Any, name: str) -> bool:
    """Return whether a task was cancelled, or its client has gone."""
    task = worker.state.tasks.get(name)
    return task is None or task.state == "cancelled"
