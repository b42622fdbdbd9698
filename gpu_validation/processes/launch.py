"""Processes of a run on one machine: start them, monitor them, and end all of them; or join those of torchrun.

``run_ranks`` imports torch once and forks.  The children connect by a file store and use torch.distributed: NCCL if
there is one GPU per rank, else gloo.  For several machines use torchrun.
"""

from __future__ import annotations

import datetime
import gc
import importlib
import logging
import multiprocessing.connection
import os
import queue
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from ..network import LOOPBACK, Network, Port
from ..network.streams import Streams
from .linux import Scheduling, end_with_parent, schedule
from .position import Positions

log = logging.getLogger("gpu_validation")

GROUP_TIMEOUT_S = 3600.0  # of a collective; this process ends ranks that died or hung much earlier
POLL_S = 0.05
PULSE = 0.01  # processor time of all ranks, as a share of the patience, from which they count as computing
DEATH_S = 0.5  # from a broken connection until the kernel reports the death of its other end


patience_s: float | None = None
"""Replaces ``hang_timeout_s`` of all runs, if set."""


class RunFailed(RuntimeError):  # noqa: N818  a public name
    """Raised if the processes could not finish: one died, raised an error or stopped responding."""


@dataclass(frozen=True)
class RankContext:
    """Environment of a rank.

    Parameters
    ----------
    rank : int
        Index of the rank.
    size : int
        Number of ranks.
    device : device
        Device of the rank's tensors.
    backend : str
        Back end of the process group: "gloo" or "cpu:gloo,cuda:nccl".
    port : Port, optional
        Network interface of the rank.
    scheduling : str, optional
        Scheduling policy in force.
    streams : Streams, optional
        TCP connections to the other ranks.
    """

    rank: int
    size: int
    device: torch.device
    backend: str
    port: Port = LOOPBACK
    scheduling: str = "normal"
    streams: Streams = field(default_factory=Streams)


GLOO, NCCL = "gloo", "cpu:gloo,cuda:nccl"  # with NCCL, tensors on the CPU still use gloo


def backend_for(processes: int) -> str:
    """Return NCCL if every rank has a GPU, else gloo.

    Parameters
    ----------
    processes : int
        Number of ranks.
    """
    return NCCL if dist.is_nccl_available() and torch.cuda.device_count() >= processes else GLOO


def run_ranks(
    work: Callable[[RankContext, Callable[[Any], None]], None],
    *,
    processes: int,
    hang_timeout_s: float,
    network: Network | None = None,
    scheduling: Scheduling = "normal",
) -> Generator[Any, None, None]:
    """Run ``work(place, emit)`` in forked processes and yield the emitted items, in order of arrival.

    Close the iterator (``contextlib.closing``) if you may leave it before its end.

    Parameters
    ----------
    work : callable
        Function that every rank calls with an initialised default process group.
    processes : int
        Number of ranks, >= 1.
    hang_timeout_s : float, seconds
        Patience: the run counts as hung if for so long no rank has emitted an item or used the processor, or if a rank
        has used so much processor time without an item.
    network : Network or None, optional
        An entered network for as many ranks; every rank moves into its namespace and uses gloo.
    scheduling : Scheduling, optional
        "realtime" requests SCHED_RR, which keeps other programs out of the timings.

    Raises
    ------
    ValueError
        For a network of another size.
    RunFailed
        If a rank dies, raises an error or hangs.

    Notes
    -----
    When the iterator has ended or is closed, all processes have ended.  If this process is killed, the ranks end
    themselves.
    """
    if processes < 1:
        raise ValueError(f"processes must be >= 1; got {processes}")
    if network is not None and len(network.ports) != processes:
        raise ValueError(
            f"the network has {len(network.ports)} ports for processes = {processes}: enter one of that size"
        )
    importlib.import_module("torch._dynamo")  # every optimizer imports it, in seconds: once here, not in every rank
    inbox: Any = mp.get_context("fork").Queue()
    positions = Positions(processes)
    store = os.memfd_create("ratedist-store")  # a file that disappears with the last process that has it open
    try:
        ports = network.ports if network else None
        start = _Start(work, processes, store, inbox, ports, scheduling, os.getpid(), positions)
        with _garbage_stays():
            context = mp.start_processes(
                _rank_main, (start,), nprocs=processes, join=False, daemon=True, start_method="fork"
            )
        try:
            pulse = _Pulse(context.processes, hang_timeout_s if patience_s is None else patience_s)
            yield from _watch(context.processes, inbox, pulse, network, positions)
            positions.forget()
        finally:
            _end(context.processes)
            inbox.close()
            inbox.cancel_join_thread()
    finally:
        os.close(store)


@contextmanager
def _garbage_stays() -> Iterator[None]:
    """Freeze garbage: a rank that collected a group of this process would wait for threads that it does not have."""
    frozen = gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        if not frozen:
            gc.unfreeze()


@dataclass(frozen=True)
class _Start:
    """Arguments of a rank, inherited by fork and never pickled.

    ``store`` is a file descriptor.
    """

    work: Callable[[RankContext, Callable[[Any], None]], None]
    size: int
    store: int
    inbox: Any
    ports: tuple[Port, ...] | None
    scheduling: Scheduling
    parent: int
    positions: Positions


def _rank_main(rank: int, start: _Start) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides; it ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # do not inherit the parent's handler
    port = start.ports[rank] if start.ports else LOOPBACK
    port.enter()
    end_with_parent(start.parent)  # after entering: new credentials would cancel it
    start.positions.take(rank)
    torch.set_num_threads(1)
    backend = GLOO if start.ports else backend_for(start.size)
    device = torch.device("cuda", rank) if backend == NCCL else torch.device("cpu")
    if start.ports:
        os.environ["GLOO_SOCKET_IFNAME"] = port.interface
    else:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", port.interface)
    place = RankContext(rank, start.size, device, backend, port, schedule(start.scheduling), Streams.from_now())
    store = dist.FileStore(f"/proc/self/fd/{start.store}", start.size)
    timeout = datetime.timedelta(seconds=GROUP_TIMEOUT_S)
    dist.init_process_group(backend, store=store, rank=rank, world_size=start.size, timeout=timeout)
    _work(place, start)


def _work(place: RankContext, start: _Start) -> None:
    rank, inbox = place.rank, start.inbox
    try:
        start.work(place, lambda item: inbox.put(("item", rank, item)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        inbox.put(("error", rank, f"{type(error).__name__}: {error}"))
        log.debug("rank %d failed", rank, exc_info=True)
        time.sleep(10 * POLL_S)  # deliver the message before the parent notices the death
        raise SystemExit(1) from error
    dist.barrier()
    dist.destroy_process_group()
    inbox.put(("done", rank, None))


class _Pulse:
    """Whether ranks that do not report still compute: slow ranks of a busy machine are not hung."""

    def __init__(self, processes: list[Any], patience_s: float) -> None:
        self._processes, self._patience_s = processes, patience_s
        self.beat()

    def beat(self) -> None:
        """Note that a rank has reported."""
        self._since_s = time.monotonic()
        self._reported = self._before = self._used()

    def lost(self) -> str:
        """Return why the ranks count as hung; empty if they do not."""
        if time.monotonic() - self._since_s <= self._patience_s:
            return ""
        used = self._used()
        if max(now - then for now, then in zip(used, self._reported, strict=True)) > self._patience_s:
            return f"no rank has reported in {self._patience_s:g} s of processor time"
        if sum(used) - sum(self._before) < PULSE * self._patience_s:
            return f"no rank has reported for {self._patience_s:g} s or used the processor"
        self._since_s, self._before = time.monotonic(), used
        return ""

    def _used(self) -> list[float]:
        return [_processor_s(process.pid) for process in self._processes]


def _processor_s(pid: int) -> float:
    """Return the processor time of a process in seconds; 0 where the system does not say."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime, stime


def _watch(
    processes: list[Any], inbox: Any, pulse: _Pulse, network: Network | None, positions: Positions
) -> Generator[Any, None, None]:
    done: set[int] = set()
    while len(done) < len(processes):
        try:
            kind, rank, item = inbox.get(timeout=POLL_S)
        except queue.Empty:
            dead = {r: p.exitcode for r, p in enumerate(processes) if p.exitcode not in (None, 0)}
            if dead:
                raise RunFailed(_obituary(dead, positions)) from None
            if network is not None and not network.alive:
                raise RunFailed("the switch between the ranks has ended; the ranks were ended") from None
            if lost := pulse.lost():
                waiting = positions.describe(r for r in range(len(processes)) if r not in done)
                words = f"{lost}; the run counts as hung: give more --patience if it is not"
                raise RunFailed("; ".join(filter(None, (words, waiting)))) from None
            continue
        pulse.beat()
        if kind == "item":
            yield item
        elif kind == "done":
            done.add(rank)
        else:
            killed = _killed_beside(processes)
            place = positions.of(rank)
            failed = f"rank {rank} failed: {item}" + (f"; it was at {place}" if place else "")
            raise RunFailed(_obituary(killed, positions) if killed else failed)


def _killed_beside(processes: list[Any]) -> dict[int, int]:
    """Return the ranks that a signal has ended; wait briefly, for survivors may report earlier than the kernel."""
    end = time.monotonic() + DEATH_S
    while True:
        killed = {r: p.exitcode for r, p in enumerate(processes) if (p.exitcode or 0) < 0}
        living = [p.sentinel for p in processes if p.exitcode is None]
        if killed or not living or (left := end - time.monotonic()) <= 0:
            return killed
        multiprocessing.connection.wait(living, timeout=left)


def _obituary(exit_codes: dict[int, int], positions: Positions) -> str:
    rank, code = next(iter(sorted(exit_codes.items(), key=lambda pair: pair[1])))
    cause = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
    place = positions.of(rank)
    return f"rank {rank} {cause}{f' at {place}' if place else ''}; the other ranks were ended"


def _end(processes: list[Any]) -> None:
    """Kill and reap all processes."""
    for process in processes:
        if process.exitcode is None:
            os.kill(process.pid, signal.SIGKILL)
    multiprocessing.connection.wait([process.sentinel for process in processes], timeout=10)
    for process in processes:
        process.join(timeout=1)


VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def join_torchrun(*, timeout_s: float = 60.0, backend: str | None = None) -> int:
    """Initialise the default process group under torchrun; return the number of restarts of the run.

    Parameters
    ----------
    timeout_s : float, seconds, optional
        Time limit of a collective, > 0.  A collective that exceeds it has lost a rank and raises.  torchrun then ends
        all ranks and, with ``--max-restarts``, restarts them.  (The default of torch is half an hour.)
    backend : str or None, optional
        Back end; None takes NCCL if every rank of this machine has a GPU, else gloo.

    Raises
    ------
    ValueError
        For a time limit that is not positive.
    RuntimeError
        Outside torchrun.

    Notes
    -----
    Every attempt uses its own prefix, because a store that outlives an attempt still has the addresses of dead
    processes.  A rank ends with the process that has started it.  If torchrun is killed, no rank continues to write
    checkpoints.
    """
    if not timeout_s > 0:
        raise ValueError(f"timeout_s must be > 0; got timeout_s = {timeout_s}")
    missing = [name for name in VARIABLES if name not in os.environ]
    if missing:
        raise RuntimeError(f"{missing[0]} is not set: start the script by torchrun")
    end_with_parent(os.getppid())
    timeout = datetime.timedelta(seconds=timeout_s)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    served_by_torchrun = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True)
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        size,
        is_master=rank == 0 and not served_by_torchrun,
        timeout=timeout,
    )
    dist.init_process_group(
        backend or _backend(),
        store=dist.PrefixStore(f"attempt {attempt}", store),
        rank=rank,
        world_size=size,
        timeout=timeout,
    )
    return attempt


def _backend() -> str:
    """Return NCCL, with gloo for tensors on the CPU, if every rank has a GPU; else gloo."""
    local_ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return "cpu:gloo,cuda:nccl" if dist.is_nccl_available() and torch.cuda.device_count() >= local_ranks else "gloo"
