"""Processes of a run on one machine: start them, monitor them, and end all of them.

The parent imports torch once and forks.  The children connect by a file store and use torch.distributed: NCCL if there
is one GPU per rank, else gloo.  For several machines use torchrun.
"""

from __future__ import annotations

import datetime
import importlib
import logging
import multiprocessing.connection
import os
import queue
import signal
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from ..network import LOOPBACK, Network, Port
from ..network.streams import Streams
from .orphans import die_with
from .scheduling import Scheduling, schedule

log = logging.getLogger("gpu_validation")

GROUP_TIMEOUT_S = 60.0  # a collective that takes longer has lost a peer
POLL_S = 0.05
DEATH_S = 0.5  # from a broken connection until the kernel reports the death of its other end


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
        Longest time without an emitted item before the run counts as hung.
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
    store = os.memfd_create("ratedist-store")  # a file that disappears with the last process that has it open
    try:
        start = _Start(work, processes, store, inbox, network.ports if network else None, scheduling, os.getpid())
        context = mp.start_processes(
            _rank_main, (start,), nprocs=processes, join=False, daemon=True, start_method="fork"
        )
        try:
            yield from _watch(context.processes, inbox, hang_timeout_s, network)
        finally:
            _end(context.processes)
            inbox.close()
            inbox.cancel_join_thread()
    finally:
        os.close(store)


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


def _rank_main(rank: int, start: _Start) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides; it ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # do not inherit the parent's handler
    port = start.ports[rank] if start.ports else LOOPBACK
    port.enter()
    die_with(start.parent)  # after entering: new credentials would cancel it
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


def _watch(
    processes: list[Any], inbox: Any, hang_timeout_s: float, network: Network | None
) -> Generator[Any, None, None]:
    done: set[int] = set()
    last_sign_s = time.monotonic()
    while len(done) < len(processes):
        try:
            kind, rank, item = inbox.get(timeout=POLL_S)
        except queue.Empty:
            dead = {r: p.exitcode for r, p in enumerate(processes) if p.exitcode not in (None, 0)}
            if dead:
                raise RunFailed(_obituary(dead)) from None
            if network is not None and not network.alive:
                raise RunFailed("the switch between the ranks has ended; the ranks were ended") from None
            if time.monotonic() - last_sign_s > hang_timeout_s:
                raise RunFailed(f"no rank has reported for {hang_timeout_s:g} s; the run counts as hung") from None
            continue
        last_sign_s = time.monotonic()
        if kind == "item":
            yield item
        elif kind == "done":
            done.add(rank)
        else:
            killed = _killed_beside(processes)
            raise RunFailed(_obituary(killed) if killed else f"rank {rank} failed: {item}")


def _killed_beside(processes: list[Any]) -> dict[int, int]:
    """Return the ranks that a signal has ended; wait briefly, for survivors may report earlier than the kernel."""
    end = time.monotonic() + DEATH_S
    while True:
        killed = {r: p.exitcode for r, p in enumerate(processes) if (p.exitcode or 0) < 0}
        living = [p.sentinel for p in processes if p.exitcode is None]
        if killed or not living or (left := end - time.monotonic()) <= 0:
            return killed
        multiprocessing.connection.wait(living, timeout=left)


def _obituary(exit_codes: dict[int, int]) -> str:
    rank, code = next(iter(sorted(exit_codes.items(), key=lambda pair: pair[1])))
    cause = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
    return f"rank {rank} {cause}; the other ranks were ended"


def _end(processes: list[Any]) -> None:
    """Kill and reap all processes."""
    for process in processes:
        if process.exitcode is None:
            os.kill(process.pid, signal.SIGKILL)
    multiprocessing.connection.wait([process.sentinel for process in processes], timeout=10)
    for process in processes:
        process.join(timeout=1)
