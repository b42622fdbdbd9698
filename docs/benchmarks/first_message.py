"""Seconds until the first message of a fresh process has been encoded and decoded, for every operator, as JSON lines.

    python docs/measure.py benchmarks/first_message.py [--only qsgd tcdq] [--every] > docs/data/first_message.jsonl

Of an operator its first example is measured, or every one; with ``--installed PYTHON`` in an installation, too.
Each record is of one process for each state of the folders with compiled code:

empty : no code anywhere, so that every loop is compiled.
warm : what "empty" has kept, in the folder of NUMBA_CACHE_DIR.
shipped : that folder is empty, but the code of ``python -m operators.precompile`` lies beside the package.
installed : by PYTHON, of an environment with the wheel of ``make wheel``, as a user without a name or a home who may
    write nowhere; only root can become that user.

``import_s`` is what precedes the message, torch included.  CPU seconds are of the whole process, with one thread.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from llvmlite import binding

from operators import all_operators
from operators.catalogue import specification

D = 100_000
GOAL_EMPTY_S, GOAL_WARM_S = 2.0, 0.3
NOBODY = 65534
HEAD = {"processor": binding.get_host_cpu_name(), "length": D}
MESSAGE = f"""
import json, sys, time
from pathlib import Path
start_s, cpu_s = time.perf_counter(), time.process_time()
import torch
from operators import Key, parse
from operators.compilation import code_cache
torch.set_num_threads(1)
if sys.argv[2] in ("empty", "warm"):
    code_cache.PACKAGE = Path(sys.argv[3])
operator, x = parse(sys.argv[1]), torch.randn({D}, generator=torch.Generator().manual_seed(0))
ready_s, ready_cpu_s = time.perf_counter(), time.process_time()
message = operator.encode(x, key=Key(0))
encoded_cpu_s = time.process_time()
operator.decode(message, d={D}, key=Key(0))
end_s, end_cpu_s = time.perf_counter(), time.process_time()
sys.stdout.write(json.dumps({{
    "import_s": round(ready_s - start_s, 3),
    "import_cpu_s": round(ready_cpu_s - cpu_s, 3),
    "encode_cpu_s": round(encoded_cpu_s - ready_cpu_s, 3),
    "decode_cpu_s": round(end_cpu_s - encoded_cpu_s, 3),
    "message_cpu_s": round(end_cpu_s - ready_cpu_s, 3),
    "message_s": round(end_s - ready_s, 3),
}}))
"""


def message(text: str, state: str, cache: str, nowhere: str) -> dict[str, Any]:
    """One fresh process."""
    settings = {"NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", MESSAGE, text, state, nowhere]
    return _record(text, state, subprocess.run(command, env=os.environ | settings, capture_output=True, text=True))


def message_of_nobody(text: str, python: str) -> dict[str, Any]:
    """One fresh process of an installation, by a user who may write nowhere."""
    state, settings = "installed", {"HOME": "/nonexistent", "PATH": os.defpath, "OMP_NUM_THREADS": "1"}
    command = [python, "-c", MESSAGE, text, state]
    user: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    run = subprocess.run(command, env=settings, cwd="/", capture_output=True, text=True, **user)
    return _record(text, state, run)


def _record(text: str, state: str, result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What a process has measured of itself."""
    if result.returncode:
        raise RuntimeError(f"the first message of {text!r} failed: {result.stderr}")
    record: dict[str, Any] = {"operator": text, "state": state, **json.loads(result.stdout)}
    record["told"] = "compiling loops" in result.stderr
    goal = GOAL_EMPTY_S if state == "empty" else GOAL_WARM_S
    return record | {"goal_s": goal, "meets_goal": record["message_cpu_s"] <= goal}


def records(only: list[str], examples: int | None, python: str | None) -> Iterator[dict[str, Any]]:
    """So many examples of every operator in all states, one process after the other."""
    for name, cls in all_operators().items():
        for operator in tuple(cls.examples())[:examples]:
            text = specification(operator)
            if only and name not in only:
                continue
            with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as other:
                nowhere = os.path.join(cache, "package")
                yield message(text, "empty", cache, nowhere)
                yield message(text, "warm", cache, nowhere)
                yield message(text, "shipped", other, nowhere)
            if python is not None:
                yield message_of_nobody(text, python)


def main(only: tuple[str, ...] = (), every: bool = False, installed: str | None = None) -> Iterator[dict[str, Any]]:
    yield from records(list(only), None if every else 1, installed)
