"""What the network between the ranks can carry, as JSON lines.

Run ``python docs/measure.py benchmarks/network.py`` (root, or user namespaces; some two minutes on a quiet machine).

stream : every rank sends one TCP stream to the next, all at once; goodput of a rank against the set rate, by the
kernel's bridge and by the switch, and how late the switch sent its frames.
forward : frames a second that the switch moves without a rate limit, and its processor time for each; the same for
a loop in Python that makes the delay but no rate, jitter, loss or counts.
collective : seconds of gloo's collectives against bytes over rate, and in one-way delays for small ones.
"""

from __future__ import annotations

import fcntl
import heapq
import multiprocessing
import os
import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
import torch.distributed as dist

from gpu_validation.distributed.launch import run_ranks
from gpu_validation.network import Network, Shape, parse_counters
from gpu_validation.network.links import INTERFACE, address, set_up_rank
from gpu_validation.network.namespaces import close, create, enter, run_inside

PORT = 5001
CHUNK = bytes(1 << 16)
HEADERS = 1448 / 1514  # TCP payload of a full frame at MTU 1500
FORWARD_DELAY_S = 1e-4
CONTEXT = multiprocessing.get_context("fork")


def stream(rank, size, seconds, space, pipe):
    """Receive from the previous rank and send to the next; tells the bytes received while all were sending."""
    enter(space)
    with socket.create_server(("0.0.0.0", PORT)) as server:
        pipe.send("listening")
        pipe.recv()
        outgoing = socket.create_connection((address((rank + 1) % size), PORT), timeout=10)
        incoming, _ = server.accept()
        for sock in (outgoing, incoming):
            sock.setblocking(False)
        received, end = 0, time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            readable, writable, _ = select.select([incoming], [outgoing], [], left)
            with suppress(ConnectionError):  # the other side may end a little earlier
                received += len(incoming.recv(1 << 20)) if readable else 0
                if writable:
                    outgoing.send(CHUNK)
        pipe.send(received)


def streams(spaces, seconds):
    """Goodput of every rank in bit/s."""
    pairs = []
    for rank, space in enumerate(spaces):
        ours, theirs = CONTEXT.Pipe()
        process = CONTEXT.Process(target=stream, args=(rank, len(spaces), seconds, space, theirs), daemon=True)
        process.start()
        pairs.append((process, ours))
    try:
        for word in ("listening", None):
            for _, pipe in pairs:
                if word:
                    assert pipe.poll(20)
                    pipe.recv()
                else:
                    pipe.send("go")
        return [8 * pipe.recv() / seconds if pipe.poll(seconds + 20) else 0.0 for _, pipe in pairs]
    finally:
        for process, _ in pairs:
            process.kill()
            process.join(5)


def held_rates(seconds):
    for m in (2, 4):
        for rate in (1e8, 2e8, 5e8):
            for delay_s in (0.0, 1e-3):
                with Network(m, rate_bit_per_s=rate, delay_s=delay_s) as network:
                    goodput = streams([port.space for port in network.ports], seconds)
                    count = network.switch_count()
                row = {"what": "stream", "m": m, "rate_bit_per_s": rate, "by": "switch" if delay_s else "bridge"}
                row |= {"goodput_share": round(min(goodput) / (rate * HEADERS), 3), "method": network.method}
                if count is not None:
                    row |= {"late_mean_us": round(1e6 * count.late_mean_s, 1), "dropped": int(count.dropped.sum())}
                yield row


def python_switch(spaces, delay_s, pipe):
    """A switch in Python with a delay, but without rate, jitter, loss and counters."""
    taps = []
    for space in spaces:
        enter(space)
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", INTERFACE.encode(), 0x1002))  # TUNSETIFF, TAP and no header
        taps.append(tap)
    pipe.send("ready")
    waiting = []
    while True:
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for tap in select.select(taps, [], [], left)[0]:
            for _ in range(64):
                try:
                    frame = os.read(tap, 2048)
                except BlockingIOError:
                    break
                heapq.heappush(waiting, (time.monotonic() + delay_s, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            frame = heapq.heappop(waiting)[1]
            os.write(taps[frame[5]], frame)


def cpu_seconds(process):
    """User and system time of a process."""
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def frames_sent(spaces):
    counts = (run_inside(space, ["cat", "/proc/self/net/dev"]) for space in spaces)
    return sum(parse_counters(text, INTERFACE).sent_frames for text in counts)


def forward(by, spaces, process, seconds):
    before = frames_sent(spaces), cpu_seconds(process)
    goodput = streams(spaces, seconds)
    frames, cpu_s = frames_sent(spaces) - before[0], cpu_seconds(process) - before[1]
    row = {"what": "forward", "by": by, "m": len(spaces), "frames_per_s": round(frames / seconds)}
    return {**row, "bit_per_s": round(sum(goodput)), "cpu_us_per_frame": round(1e6 * cpu_s / frames, 2)}


def forwarded(seconds):
    for m in (2, 4):
        with Network(m, delay_s=FORWARD_DELAY_S) as network:
            spaces = [port.space for port in network.ports]
            yield forward("switch", spaces, network._switch._process.pid, seconds)

        spaces = create(m, in_user_namespace=os.geteuid() != 0)
        ours, theirs = CONTEXT.Pipe()
        process = CONTEXT.Process(target=python_switch, args=(spaces, FORWARD_DELAY_S, theirs), daemon=True)
        process.start()
        try:
            assert ours.poll(20)
            for rank, space in enumerate(spaces):
                set_up_rank(space, rank, m, Shape())
            yield forward("python", spaces, process.pid, seconds)
        finally:
            process.kill()
            process.join(5)
            close(spaces)


def timed(function, repeats):
    times = []
    for _ in range(repeats):
        dist.barrier()
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return sorted(times)[repeats // 2]


def collectives():
    rate, delay_s, m, d = 1e8, 2e-3, 4, 1_000_000

    def work(place, emit):
        small, large = torch.ones(10), torch.ones(d)
        parts = [torch.empty_like(small) for _ in range(place.size)]
        for function in (lambda: dist.all_reduce(small), lambda: dist.all_gather(parts, small), dist.barrier):
            function()
        found = {
            "all_reduce_small_s": timed(lambda: dist.all_reduce(small), 9),
            "all_gather_small_s": timed(lambda: dist.all_gather(parts, small), 9),
            "barrier_s": timed(dist.barrier, 9),
            "all_reduce_large_s": timed(lambda: dist.all_reduce(large), 3),
            "scheduling": place.scheduling,
        }
        if place.rank == 0:
            emit(found)

    for shape in (Shape(rate), Shape(rate, delay_s)):
        with Network.of(shape, m) as network:
            found = next(run_ranks(work, processes=m, hang_timeout_s=60, network=network, scheduling="realtime"))
        ideal = 2 * (m - 1) / m * 4 * d * 8 / rate / HEADERS
        row = {"what": "collective", "m": m, "delay_s": shape.delay_s, "scheduling": found.pop("scheduling")}
        row |= {"all_reduce_large_over_ideal": round(found["all_reduce_large_s"] / ideal, 3)}
        if shape.delay_s:
            names = ("all_reduce_small_s", "all_gather_small_s", "barrier_s")
            row |= {name.removesuffix("_s") + "_delays": round(found[name] / delay_s, 1) for name in names}
        yield row


def main(seconds: float = 3.0) -> Iterator[dict[str, Any]]:
    """All measurements; every stream takes so long."""
    yield from held_rates(seconds)
    yield from forwarded(seconds)
    yield from collectives()
