"""One averaging, and one block of training, of this checkout over those of another: what did a change cost?

    python docs/measure.py benchmarks/two_checkouts.py ../before --hidden 256 --turns 3000

Each checkout has two processes and its own ``.venv``.  The two take turns at every call, so that noise hits both alike;
``benchmarks/averaging.py`` of the checkout says what is called.  "torch" and "plain" run no code of the checkout: their
ratio shows what the noise is worth.  ratio is the median of the paired ratios, with its 95 % bootstrap
interval.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
RANKS = 2
WARM_UP = 5
BLOCK = 48  # steps of training
LEVEL, RESAMPLES = 0.95, 2000


class Side:
    """The ranks of one checkout."""

    def __init__(self, checkout: Path, hidden: int) -> None:
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        python = checkout / ".venv" / "bin" / "python"
        self.checkout, self.ranks = (
            checkout,
            [
                subprocess.Popen(
                    [python, __file__, str(rank), str(port), str(hidden)],
                    cwd=checkout,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                for rank in range(RANKS)
            ],
        )
        self.names: list[str] = json.loads(self._answers()[0])

    def _answers(self) -> list[str]:
        lines = [rank.stdout.readline() for rank in self.ranks if rank.stdout]
        if not all(lines):
            raise RuntimeError(f"a process of {self.checkout} has ended: its own error stands above")
        return lines

    def seconds(self, name: str) -> float:
        """Let all ranks call the action once; return the seconds of the slowest."""
        for rank in self.ranks:
            assert rank.stdin is not None
            rank.stdin.write(f"{name}\n")
            rank.stdin.flush()
        return max(float(answer) for answer in self._answers())

    def end(self) -> None:
        """Stop the ranks."""
        for rank in self.ranks:
            rank.kill()
            rank.wait()


def in_turns(name: str, sides: tuple[Side, Side], turns: int) -> np.ndarray:
    """Seconds of both sides, shape (2, turns); the first of a turn alternates."""
    taken = np.zeros((2, turns))
    for turn in range(-WARM_UP, turns):
        for k in (0, 1) if turn % 2 else (1, 0):
            seconds = sides[k].seconds(name)
            if turn >= 0:
                taken[k, turn] = seconds
    return taken


def compared(taken: np.ndarray) -> dict[str, Any]:
    """Ratio of the second side to the first, its interval, and medians."""
    ratios = np.log(taken[1] / taken[0])
    rows = np.random.default_rng(0).integers(ratios.size, size=(RESAMPLES, ratios.size))
    ends = np.quantile(np.median(ratios[rows], axis=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {
        "ratio": round(float(np.exp(np.median(ratios))), 4),
        "interval": [round(float(end), 4) for end in np.exp(ends)],
        "median_s": float(np.median(taken[1])),
        "other_median_s": float(np.median(taken[0])),
        "turns": ratios.size,
    }


def main(other: str, hidden: int = 256, turns: int = 3000) -> Iterator[dict[str, Any]]:
    sides = Side(Path(other).resolve(), hidden), Side(ROOT, hidden)
    try:
        for name in sides[1].names:
            count = turns if name in ("whole", "identity", "torch") else max(30, turns // 8)  # a block takes longer
            yield {"method": name, "hidden": hidden, **compared(in_turns(name, sides, count))}
    finally:
        for side in sides:
            side.end()


def serve(rank: int, port: int, hidden: int) -> None:
    """Be a rank: call the actions that standard input names, and print the seconds of each."""
    checkout = Path.cwd()
    sys.path[0] = str(checkout)
    sys.path.append(str(checkout / "docs" / "benchmarks"))  # last: a benchmark is called http
    warnings.simplefilter("ignore")
    dist = importlib.import_module("torch.distributed")
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(RANKS)}
    dist.init_process_group("gloo")
    benchmark = importlib.import_module("averaging")
    actions = {name: action for name, (action, _) in benchmark.averagings(hidden).items()}
    actions |= benchmark.blocks(benchmark.loops(hidden), BLOCK)
    sys.stdout.write(json.dumps(list(actions)) + "\n")
    sys.stdout.flush()
    for line in sys.stdin:
        dist.barrier()
        start = time.perf_counter()
        actions[line.strip()]()
        sys.stdout.write(f"{time.perf_counter() - start}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(*map(int, sys.argv[1:]))
