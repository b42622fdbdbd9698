"""What the studies of this folder share: records that an interrupted study goes on with, and a summary.

One JSON line a record is appended to ``--out`` as it is made; cases that have a record are not repeated, so a study
that was stopped goes on where it stopped.  ``--summary`` writes the totals as JSON.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import TypeVar

from gpu_validation.records.storage import JsonLines, Record, read_lines, write_atomically

DATA = Path("docs/data")
Case = TypeVar("Case", bound=Hashable)


def command_line(description: str | None, name: str) -> argparse.ArgumentParser:
    """Return the options that every study has; ``name`` is that of its files."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DATA / f"{name}.jsonl", help="the records, one JSON line each")
    parser.add_argument("--summary", type=Path, help="a file for the summary, which is printed too")
    return parser


def resume(
    out: Path,
    cases: Iterable[Case],
    case_of: Callable[[Record], Case],
    make: Callable[[list[Case]], Iterable[Record]],
) -> list[Record]:
    """Append the records of the cases that have none yet, each as soon as it is made, and return all records.

    Parameters
    ----------
    out : Path
        The file of records; a last line cut short by a crash is dropped.
    cases : iterable of hashable
        All that the study is made of, in the order of work.
    case_of : callable
        Gives the case of a record.
    make : callable
        Gives the records of a list of cases.
    """
    records = list(read_lines(out)) if out.exists() else []
    write_atomically(out, "".join(json.dumps(record) + "\n" for record in records))
    recorded = {case_of(record) for record in records}
    with JsonLines(out, mode="a") as file:
        for record in make([case for case in cases if case not in recorded]):
            file.write(record)
            records.append(record)
    return records


def conclude(summary: Record, path: Path | None) -> None:
    """Print the summary and, if a path is given, write it there."""
    text = json.dumps(summary, indent=2)
    if path:
        write_atomically(path, text + "\n")
    print(text)
