"""Judge compressors that other projects publish, and confirm every finding by a computation without the kit.

Each implementation is loaded from its installed package, adapted in one line (``docs/studies/projects``), and
checked at the standard budget without a clock, so that a verdict depends on ``--seed`` alone.  The rows of ``--out``
are replaced one by one as they are made; rows of the same seed and source file are not made again.  What is not
installed is named and left out.

    python docs/measure.py studies/published.py --packages FOLDER CLONE

FOLDER holds the packages (``pip install --no-deps --target FOLDER hivemind==1.1.12 ...``), CLONE a clone of
sands-lab/grace.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from math import inf
from pathlib import Path
from typing import Any

from measure import in_data
from projects import fed_frameworks, fedjax_aggregators, grace, hivemind_codecs, torch_hooks, torch_libraries
from projects.published import Published, digest, search_in, version_of

from gpu_validation.records.environment import environment
from gpu_validation.records.storage import read_lines, write_atomically
from operators.laws import Budget, Outcome, Report, check

PROJECTS = (torch_hooks, hivemind_codecs, grace, fedjax_aggregators, fed_frameworks, torch_libraries)
SUBJECTS: tuple[Published, ...] = tuple(subject for project in PROJECTS for subject in project.PUBLISHED)
BUDGET = Budget().untimed()
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
    write_atomically(out, "".join(json.dumps(row) + "\n" for row in rows))


def study(subjects: list[Published], out: Path, seed: int) -> Iterator[Row]:
    """Make the rows that are missing; yields what was judged and what was left out."""
    for subject in subjects:
        try:
            source = subject.source()
        except (ImportError, PackageNotFoundError) as error:
            where = f"a clone of {subject.package}" if "/" in subject.package else subject.package
            yield {"name": subject.name, "left_out": f"needs {where} ({error})"}
            continue
        rows = {row["name"]: row for row in read_lines(out)} if out.exists() else {}
        row = rows.get(subject.name, {})
        if (row.get("seed"), row.get("sha256"), row.get("judged")) == (seed, digest(source), subject.judged):
            rows[subject.name] = row | words(subject)
        else:
            rows[subject.name] = row_of(subject, source, seed)
            yield {name: rows[subject.name][name] for name in ("name", "ok", "fail", "inconclusive")}
        write(list(rows.values()), out)


def main(
    packages: tuple[str, ...] = (),
    only: tuple[str, ...] = ("",),
    out: str = "published_implementations.jsonl",
    seed: int = 1,
) -> Iterator[Row]:
    """Judge those whose names contain a part; packages are folders to import from."""
    search_in([Path(folder) for folder in packages])
    warnings.simplefilter("ignore")  # of the packages
    logging.disable(logging.WARNING)
    yield from study([s for s in SUBJECTS if any(part in s.name for part in only)], in_data(out), seed)
