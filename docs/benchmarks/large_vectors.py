"""Encode and decode vectors of 10^8 and of more than 2^31 coordinates by every operator, each in a process of its own.

    python docs/measure.py benchmarks/large_vectors.py [--d 100000000 2147483653] [--most_GiB 12] [--only qsgd tcdq]

The vector is zero but for entries at both ends and around 2^31, so that it needs no memory before the operator touches
it.  A process may use ``most_GiB``; one that needs more says so.  A record has CPU seconds of one thread, the peak of
the process beyond its start, and the error over |x|^2; ``outside`` counts coordinates that are not zero where x is.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from operators import Key, all_operators, parse
from operators.catalogue import specification

D = (1 << 31) + 5
SECONDS = 240  # of one operator; a slower one says so
PIECE = 1 << 24
MEASURE = Path(__file__).parents[1] / "measure.py"


def vector(d: int) -> tuple[torch.Tensor, dict[int, float]]:
    """Zeros that the system has not given memory for yet, and what is not zero."""
    entries = {i: float(n + 1) for n, i in enumerate(sorted({0, d // 3, min(1 << 31, d - 1) - 1, d - 5, d - 1}))}
    x = np.zeros(d, np.float32)
    for i, value in entries.items():
        x[i] = value
    return torch.from_numpy(x), entries


def measure(text: str, d: int, most: int) -> dict[str, Any]:
    """One record."""
    torch.set_num_threads(1)
    operator, (x, entries) = parse(text), vector(d)
    operator.decode(operator.encode(x[:300_000], key=Key(0)), d=300_000, key=Key(0))  # the loops are compiled
    resource.setrlimit(resource.RLIMIT_DATA, (most + 4 * d, resource.RLIM_INFINITY))  # x has addresses, not memory
    before, start_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    message = operator.encode(x, key=Key(0))
    del x
    resource.setrlimit(resource.RLIMIT_DATA, (most, resource.RLIM_INFINITY))
    encoded_s = time.process_time()
    decoded = operator.decode(message, d=d, key=Key(0))
    decoded_s = time.process_time()
    error, outside = 0.0, 0
    for first in range(0, d, PIECE):
        piece = decoded[first : first + PIECE]
        outside += int(piece.count_nonzero())
        error += float(piece.double().square().sum())
    for i, value in entries.items():
        got = float(decoded[i])
        error += (got - value) ** 2 - got**2
        outside -= got != 0
    return {
        "operator": text,
        "d": d,
        "bits": message.bits,
        "encode_cpu_s": round(encoded_s - start_s, 1),
        "decode_cpu_s": round(decoded_s - encoded_s, 1),
        "peak_GiB": round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / (1 << 20), 2),
        "error_over_energy": float(f"{error / sum(v * v for v in entries.values()):.4g}"),
        "claim": str(operator.claim(d)),
        "outside": outside,
    }


def in_a_process(text: str, d: int, most: int) -> dict[str, Any]:
    """The record, or why there is none."""
    command = [sys.executable, str(MEASURE), __file__, "--one", text, "--d", str(d), "--most_GiB", str(most >> 30)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"operator": text, "d": d, "not_run": f"it takes more than {SECONDS} s"}
    if run.returncode == 0:
        return json.loads(run.stdout.splitlines()[-1])
    last = (run.stderr.strip().splitlines() or [f"ended with {run.returncode}"])[-1]
    small = any(word in last for word in ("MemoryError", "allocate", "alloc")) or run.returncode < 0
    return {"operator": text, "d": d, "not_run": f"it needs more than {most >> 30} GiB" if small else last}


def main(
    d: tuple[int, ...] = (10**8, D), most_GiB: int = 12, only: tuple[str, ...] = (), one: str | None = None
) -> Iterator[dict[str, Any]]:
    most = most_GiB << 30
    if one:
        yield measure(one, d[0], most)
        return
    for length in d:
        for name, cls in all_operators().items():
            if not only or name in only:
                yield in_a_process(specification(cls.examples()[0]), length, most)
