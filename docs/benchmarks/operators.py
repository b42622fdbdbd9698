"""Speed, size and distortion of every operator on Gaussian vectors, one thread, as JSON lines.

    python docs/benchmarks/operators.py [--d 1000000 10000000] [--only qsgd topk]

Times are CPU time of the one thread, so that another process on the core does not count.  MB/s counts the
binary32 input.  The ratio compares with copying the same vector in the same run (read and
written bytes of the copy count once, like those of the operator).  The gap is the difference, in bits a
coordinate, between the real message and the limit of the operator's class at the measured distortion.
"""

# ruff: noqa: E402  threads and the search path must be set before the imports
from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

# This file has the name of the package it measures: its own folder must not be searched.
sys.path[:] = [
    folder for folder in sys.path if os.path.abspath(folder or ".") != os.path.dirname(os.path.abspath(__file__))
]
for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import numpy as np
import torch

from bounds.claims import Contractive, Unbiased
from operators import Key, Operator, all_operators, parse
from operators.catalogue import specification

SPECIFICATIONS = (
    "identity",
    "signsgd",
    "scaled_sign",
    "one_bit_sgd",
    "topk:0.01",
    "randomk:0.01",
    "scaled_randomk:0.01",
    "hard_threshold:2.5",
    "terngrad",
    "qsgd:1",
    "qsgd:16",
    "qsgd:4,norm=max,bucket=512,code=dense",
    "qsgd:127,norm=max,bucket=128,code=dense",
    "qsgd:23,bucket=512,code=flag",
    "sparse_dithering:0.1",
    "arithmetic_sparse_dithering:0.1",
    "randomised_sparse_dithering:1",
    "spherical_compression:0.5",
    "unbiased_spherical_compression:0.5",
)
SECONDS = 1.0  # spent at least on each measurement, and at least 3 repetitions


def specifications() -> list[str]:
    """Those above, and the first example of every other operator of the catalogue."""
    named = {text.partition(":")[0] for text in SPECIFICATIONS}
    rest = [specification(cls.examples()[0]) for name, cls in all_operators().items() if name not in named]
    return [*SPECIFICATIONS, *rest]


def best_seconds(call: Callable[[], Any]) -> float:
    """CPU time of this thread, the least of at least three repetitions, after one that warms up."""
    call()
    times: list[float] = []
    while len(times) < 3 or sum(times) < SECONDS:
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return min(times)


def limit_bits(operator: Operator, d: int, nmse: float) -> float | None:
    """Bits a coordinate that the class needs at this distortion; None without a claim or distortion."""
    claim = operator.claim(d)
    if not nmse > 0 or not isinstance(claim, Unbiased | Contractive):
        return None
    if isinstance(claim, Unbiased):
        from bounds.limits.unbiased_bits import unbiased_bits

        return unbiased_bits(d=d, omega=nmse) / d
    from bounds.limits.contractive_bits import contractive_bits

    return contractive_bits(d=d, alpha=nmse) / d if nmse < 1 else None


def measure(text: str, d: int) -> dict[str, Any]:
    """One record."""
    x, key = torch.randn(d, generator=torch.Generator().manual_seed(0)), Key(0)
    operator, target = parse(text), torch.empty(d)
    copy_s = best_seconds(lambda: target.copy_(x))
    encode_s = best_seconds(lambda: operator.encode(x, key=key))
    message = operator.encode(x, key=key)
    decode_s = best_seconds(lambda: operator.decode(message, d=d, key=key))
    error = operator.decode(message, d=d, key=key).double() - x
    nmse = float(error.square().sum() / x.double().square().sum())
    limit, bits = limit_bits(operator, d, nmse), message.bits / d
    return {
        "operator": text,
        "d": d,
        "encode_MB_per_s": round(4e-6 * d / encode_s, 1),
        "decode_MB_per_s": round(4e-6 * d / decode_s, 1),
        "encode_ns_per_coordinate": round(1e9 * encode_s / d, 3),
        "decode_ns_per_coordinate": round(1e9 * decode_s / d, 3),
        "encode_over_copy": round(encode_s / copy_s, 1),
        "decode_over_copy": round(decode_s / copy_s, 1),
        "bits_per_coordinate": round(bits, 5),
        "nmse": float(f"{nmse:.5g}"),
        "claim": str(operator.claim(d)),
        "limit_bits_per_coordinate": None if limit is None else float(f"{limit:.5g}"),
        "gap_bits_per_coordinate": None if limit is None else round(bits - limit, 4),
    }


def environment() -> dict[str, Any]:
    """What the numbers depend on."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "commit": commit.stdout.strip() or None,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "threads": 1,
    }


def records(dimensions: list[int], only: list[str]) -> Iterator[dict[str, Any]]:
    """All measurements, one after the other."""
    for d in dimensions:
        for text in specifications():
            if not only or text.partition(":")[0] in only:
                yield measure(text, d)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--d", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(json.dumps(environment()), flush=True)
    for record in records(arguments.d, arguments.only):
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
