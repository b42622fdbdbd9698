"""Put every mutation into the small run and print what was noticed: ``python -m tests.gpu_validation.mutations``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from gpu_validation.records.environment import Environment
from gpu_validation.records.storage import plain, write_atomically
from tests.gpu_validation.mutations import MUTATIONS, Bench, Finding, Mutation, find


def findings(mutations: Sequence[Mutation] = MUTATIONS, bench: Bench | None = None) -> list[Finding]:
    """Return what became of each of them."""
    bench = bench or Bench()
    honest = bench.judge(bench.records)
    return [find(mutation, bench, honest) for mutation in mutations]


def score(found: Sequence[Finding]) -> str:
    """Return how many were caught, and by what."""
    caught = [f for f in found if f.caught_by]
    deciding = sum(f.decides for f in caught)
    return f"{len(caught)} of {len(found)} are caught, {deciding} of them by rows that decide the exit status"


def line(found: Finding) -> str:
    """Return one mutation in words."""
    least = "" if found.least is None else f"; least factor noticed {found.least:.3g}"
    if found.caught_by:
        return f"caught    {found.where:9} {found.name}{least}: {'; '.join(found.caught_by)}"
    return f"SURVIVES  {found.where:9} {found.name}{least}: {found.reason or 'NO REASON IS KNOWN'}"


def main() -> int:
    """Print the table; 1 if a mutation survives without a reason, or is caught in spite of one."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu_validation.mutations", description=__doc__)
    parser.add_argument("--out", type=Path, help="file for the table, one line of JSON for each mutation")
    options = parser.parse_args()
    all_findings = findings()
    sys.stdout.write("\n".join([*map(line, all_findings), score(all_findings)]) + "\n")
    if options.out:
        environment = Environment.here("mutations", 2, "gloo")
        lines = [
            json.dumps(plain(record), allow_nan=False) for record in (asdict(environment), *map(asdict, all_findings))
        ]
        write_atomically(options.out, "\n".join(lines) + "\n")
    return int(any(bool(f.caught_by) == bool(f.reason) for f in all_findings))


if __name__ == "__main__":
    sys.exit(main())
