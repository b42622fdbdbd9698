"""Try every wrong subject of both attacks at the standard budget, by the laws of its kind; one JSON line a subject.

A whole check gives these laws the same level and the same seconds.  Subjects in the record are not tried again.

    nice env OMP_NUM_THREADS=1 python -m tests.operators.laws.blind_spots.by_kind --out docs/data/wrong_by_kind.jsonl
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpu_validation.records.environment import commit
from gpu_validation.records.storage import JsonLines, read_lines
from operators.laws import Budget, Report, check, check_mean

from . import circumstances, exchanges, hooks, second_attack, spread, streams, values, vectors, wrappers

BUDGET = replace(Budget(), shrinking=0)
SEED = 1
STREAMS = ["key-separation", "independent-streams"]
LAWS = {  # kind -> the laws that see it
    "lengths": ["lengths", "every-coordinate"],
    "remainders": ["lengths", "every-coordinate"],
    "values": ["exact-marginals", "enumeration", "extremes", "lengths", "sure-contraction"],
    "spread bias": ["unbiasedness"],
    "streams": STREAMS,
    "circumstances": ["circumstances", "determinism"],
    "feedback": ["feedback-sums"],
    "aggregates": ["aggregate-claim", "aggregate-count"],
    "hooks": ["hook-mean"],
}
KINDS = [*LAWS, "exchanges"]
PARTS = (vectors, spread, streams, circumstances, values, wrappers, hooks, second_attack)


def subjects() -> Iterator[tuple[tuple[str, str, str], Callable[[], Report]]]:
    """Kind, fault and form of every wrong subject, and its check: of each kind in turn."""
    tried: dict[tuple[str, str, str], Callable[[], Report]] = {}
    for wrong in (w for part in PARTS for w in part.WRONG):
        kind = {"one value": "values"}.get(wrong.kind, wrong.kind)
        form = (
            wrong.form if kind in ("lengths", "remainders", "values", "spread bias", "streams", "circumstances") else ""
        )
        tried[kind, wrong.what, form] = lambda w=wrong, k=kind: check(
            w.subject, claim=w.claim, budget=BUDGET, seed=SEED, laws=LAWS[k]
        )
    for wrong in (*exchanges.WRONG, *second_attack.EXCHANGES):
        tried["exchanges", wrong.what, ""] = lambda w=wrong: check_mean(
            w.function, m=exchanges.M, claim=w.claim, budget=BUDGET, seed=SEED
        )
    queues = {kind: [item for item in tried.items() if item[0][0] == kind] for kind in KINDS}
    while any(queues.values()):
        yield from (queue.pop(0) for queue in queues.values() if queue)


def record(case: tuple[str, str, str], judge: Callable[[], Report]) -> dict[str, Any]:
    """Which laws failed."""
    started = time.process_time()
    failed = [v.law for v in judge().failures]
    seconds = round(time.process_time() - started, 2)
    return {**dict(zip(("kind", "fault", "form"), case, strict=True)), "failed": failed, "seconds": seconds,
            "seed": SEED, "commit": commit()}  # fmt: skip


def main() -> None:
    """Try those that the record lacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    recorded = {(r["kind"], r["fault"], r["form"]) for r in read_lines(out)} if out.exists() else set()
    with JsonLines(out, mode="a") as file:
        for case, judge in subjects():
            if case not in recorded:
                file.write(record(case, judge))


if __name__ == "__main__":
    main()
