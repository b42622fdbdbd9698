"""Rate and latency of the closed-form calls over HTTP against an empty FastAPI endpoint, as JSON lines.

    python docs/measure.py benchmarks/http.py                  # about two minutes
    python docs/measure.py benchmarks/http.py --requests 80    # a look

Both servers run in this run, each one uvicorn worker on the loopback address, and are loaded in turn by the same
client: CONNECTIONS keep-alive connections, each with one request under way.  Every request has other numbers, so that
nothing is answered from a cache.  The client shares the machine with the servers; on two cores it takes one.
share_of_empty is the ratio of the median rates of the rounds, with its 95 % bootstrap interval.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from comparing import quotient

CONNECTIONS = 8
ROUNDS = 16
START_S = 120.0
EMPTY = """
import sys, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.post("/")
async def empty() -> dict[str, str]:
    return {}
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
"""

Request = Callable[[random.Random], tuple[str, Any]]


def bits(rng: random.Random) -> tuple[str, Any]:
    return "/v1/bits", {"d": rng.randrange(1, 10**9), "omega": rng.uniform(1e-3, 1e3)}


def solve(rng: random.Random) -> tuple[str, Any]:
    d = rng.randrange(1, 10**9)
    return "/v1/solve", {"d": d, "bits": d * rng.uniform(0.1, 20), "omega": None}


def refused(rng: random.Random) -> tuple[str, Any]:
    return "/v1/bits", {"d": -rng.randrange(1, 10**9), "omega": 1}


def empty(rng: random.Random) -> tuple[str, Any]:
    return "/", {"d": rng.randrange(1, 10**9), "omega": rng.uniform(1e-3, 1e3)}


@contextmanager
def server(*command: str) -> Iterator[int]:
    """Port of a server that is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, *command, str(port)])
    try:
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{command[0]} did not start") from None
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(30)


async def connection(port: int, kind: Request, requests: int, seed: int, seconds: list[float]) -> None:
    """Send requests one after the other on one connection."""
    rng = random.Random(seed)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(requests):
        path, body = kind(rng)
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(data)}\r\n\r\n"
        start = time.perf_counter()
        writer.write(head.encode() + data)
        answer = await reader.readuntil(b"\r\n\r\n")
        expected = b"422" if kind is refused else b"200"
        if answer[9:12] != expected:
            raise RuntimeError(f"unexpected answer {answer[:60]!r}")
        lines = answer.lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        seconds.append(time.perf_counter() - start)
    writer.close()


def load(port: int, kind: Request, requests: int, seed: int) -> tuple[float, list[float]]:
    """(requests a second, seconds of every request)."""
    seconds: list[float] = []

    async def all_of_them() -> None:
        share = requests // CONNECTIONS
        await asyncio.gather(*(connection(port, kind, share, seed + i, seconds) for i in range(CONNECTIONS)))

    start = time.perf_counter()
    asyncio.run(all_of_them())
    return len(seconds) / (time.perf_counter() - start), seconds


def summary(rates: list[float], seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    median, p99 = statistics.median(ordered), ordered[int(0.99 * len(ordered))]
    return {
        "requests_per_s": round(statistics.median(rates)),
        "median_ms": round(1e3 * median, 3),
        "p99_ms": round(1e3 * p99, 3),
        "p99_over_median": round(p99 / median, 2),
    }


def measured(requests: int, plain: int, ours: int) -> Iterator[dict[str, Any]]:
    """Rates and latencies of every kind of request, which take turns in rounds; the order alternates."""
    kinds: dict[str, Request] = {"empty": empty, "bits": bits, "solve": solve, "refused": refused}
    rates: dict[str, list[float]] = {name: [] for name in kinds}
    latencies: dict[str, list[float]] = {name: [] for name in kinds}
    for turn in range(-1, ROUNDS):  # the first warms up
        for name, kind in kinds.items() if turn % 2 else reversed(kinds.items()):
            rate, seconds = load(plain if kind is empty else ours, kind, requests, 1000 * (turn + 1))
            if turn >= 0:
                rates[name].append(rate)
                latencies[name].extend(seconds)
    for name in kinds:
        share, interval = quotient(rates[name], rates["empty"])
        yield {"what": name, **summary(rates[name], latencies[name]), "share_of_empty": share, "interval": interval}


def main(requests: int = 800) -> Iterator[dict[str, Any]]:
    """So many requests of each kind in each round."""
    with server("-c", EMPTY) as plain, server("-m", "ratedist", "serve", "--port") as ours:
        yield from measured(requests, plain, ours)
