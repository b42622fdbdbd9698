"""Judge compressors that other projects publish, and confirm every finding by a computation without the kit.

Each implementation is loaded from its installed package, adapted in one line (``docs/studies/projects``), and
checked at the standard budget without a clock, so that a verdict depends on ``--seed`` alone.  The rows of ``--out``
are replaced one by one as they are made; rows of the same seed and source file are not made again.  What is not
installed is named and left out.

    OMP_NUM_THREADS=1 python docs/studies/published.py --packages FOLDER --packages CLONE

FOLDER holds the packages (``pip install --no-deps --target FOLDER hivemind==1.1.12 ...``), CLONE a clone of
sands-lab/grace.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import os
import sys
import time
import warnings
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from math import inf
from pathlib import Path
from typing import Any

from projects import fed_frameworks, fedjax_aggregators, grace, hivemind_codecs, torch_hooks, torch_libraries
from projects.published import Published, digest, search_in, version_of

from gpu_validation.records.environment import environment
from operators.laws import Budget, Outcome, Report, check

PROJECTS = (torch_hooks, hivemind_codecs, grace, fedjax_aggregators, fed_frameworks, torch_libraries)
SUBJECTS: tuple[Published, ...] = tuple(subject for project in PROJECTS for subject in project.PUBLISHED)
BUDGET = Budget().untimed()
OUT = Path(__file__).parent.parent / "data" / "published_implementations.jsonl"
Row = dict[str, Any]


def first_line(text: str, most: int = 200) -> str:
    """The beginning of a message."""
    line = text.splitlines()[0] if text else ""
    return line if len(line) <= most else line[: most - 3] + "..."


def verdicts(report: Report) -> Row:
    """What the kit said."""
    said = {
        outcome.name.lower(): [v.law for v in report.verdicts if v.outcome is outcome]
        for outcome in (Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE)
    }
    failures = [
        {
            "law": v.law,
            "text": first_line(v.text),
            "d": None if v.x is None else v.x.size,
            "x": None if v.x is None else [float(value) for value in v.x[:4]],
        }
        for v in report.failures
    ]
    power = {k: v for k, v in asdict(report.power).items() if v is not None and v < inf}
    return {"ok": report.ok, **said, "failures": failures, "power": power}


def words(subject: Published) -> Row:
    """What stands in the table in words."""
    return {name: getattr(subject, name) for name in ("name", "package", "license", "says", "judged", "finding")}


def row_of(subject: Published, source: Any, seed: int) -> Row:
    """Judge one."""
    started = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        report = check(subject.subject(source), budget=BUDGET, seed=seed)
        computed = [asdict(number) for number in subject.computed(source)]
    return {
        **words(subject),
        "version": version_of(subject.package),
        "sha256": digest(source),
        "seed": seed,
        "budget": "Budget().untimed()",
        **verdicts(report),
        "computed": computed,
        "processor_s": round(time.process_time() - started, 1),
        "jax": version("jax") if "jax" in sys.modules else None,
        **environment(),
    }


def write(rows: list[Row], out: Path) -> None:
    """All rows, in the order of the table, or not at all."""
    order = {subject.name: place for place, subject in enumerate(SUBJECTS)}
    rows = sorted(rows, key=lambda row: order.get(row["name"], len(order)))
    partial = out.with_suffix(".partial")
    partial.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.replace(partial, out)


def study(subjects: list[Published], out: Path, seed: int) -> None:
    """Make the rows that are missing."""
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    for subject in subjects:
        try:
            source = subject.source()
        except (ImportError, PackageNotFoundError) as error:
            where = f"a clone of {subject.package}" if "/" in subject.package else subject.package
            print(f"{subject.name}: left out, needs {where} ({error})", flush=True)
            continue
        made = [row for row in rows if row["name"] == subject.name]
        asked = (seed, digest(source), subject.judged)
        if any((row["seed"], row["sha256"], row["judged"]) == asked for row in made):
            write([row | words(subject) if row in made else row for row in rows], out)
            rows = [json.loads(line) for line in out.read_text().splitlines()]
            continue
        row = row_of(subject, source, seed)
        rows = [other for other in rows if other["name"] != subject.name] + [row]
        write(rows, out)
        print(f"{subject.name}: {'ok' if row['ok'] else row['fail'] or 'INCONCLUSIVE'}", flush=True)


def main() -> None:
    """Judge them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, action="append", default=[], help="a folder to import from")
    parser.add_argument("--only", action="append", default=[], help="names that contain this; all by default")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    search_in(arguments.packages)
    warnings.simplefilter("ignore")  # of the packages
    logging.disable(logging.WARNING)
    only = arguments.only or [""]
    study([s for s in SUBJECTS if any(part in s.name for part in only)], arguments.out, arguments.seed)


if __name__ == "__main__":
    main()
