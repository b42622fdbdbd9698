"""Run the tests that reach each mutant of ``mutants.py``, nearest first, until some see it.

``python tests/source_mutants/run.py RECORD [NUMBER ...]`` appends a line of JSON to RECORD for every mutant: the tests
that saw it, the imports between them and the change, and the processor seconds.  Mutants with a line are not run again.
Tests that fail without the change as well do not count.  The working tree is not touched: a copy of it is changed.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(Path(__file__).parent)]

import tiers  # noqa: E402
from mutants import MUTANTS, Mutant  # noqa: E402

FILES_A_CALL = 12
LONGEST_S = 1800  # of one call of pytest
SEEN = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)


def changed(text: str, mutant: Mutant) -> str:
    """Return the mutant of a file's text; the original stands in it once."""
    if text.count(mutant.original) != 1:
        raise ValueError(f"{mutant.path} must contain {mutant.original!r} once: write the mutant anew")
    return text.replace(mutant.original, mutant.changed)


def copied(scratch: str) -> Path:
    """Copy the files that git knows, and the compiled loops."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tree = Path(scratch) / "tree"
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    code = Path("operators/compilation/code")
    if (ROOT / code).is_dir():
        shutil.copytree(ROOT / code, tree / code, dirs_exist_ok=True)
    return tree


def calls(path: str, graph: dict[str, set[str]]) -> list[tuple[int, list[str]]]:
    """Return the test files that reach a module, a few at a time, nearest first, with the imports between."""
    near = defaultdict(list)
    for name, distance in tiers.distances({path}, graph).items():
        if Path(name).name.startswith("test_"):
            near[distance].append(name)
    return [
        (distance, sorted(near[distance])[i : i + FILES_A_CALL])
        for distance in sorted(near)
        for i in range(0, len(near[distance]), FILES_A_CALL)
    ]


def failures(tree: Path, tests: list[str], without: set[str]) -> set[str]:
    """Return the tests that fail in the copy, at most three; a call that does not end counts as a failure."""
    command = [sys.executable, "-m", "pytest", "-rfE", "--maxfail=3", "--tier=full", "-p", "no:cacheprovider"]
    command += [f"--deselect={test}" for test in sorted(without)]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}  # a mutant is as long
    try:
        ended = subprocess.run(
            [*command, *tests],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {f"{tests[0]} (no end after {LONGEST_S} s)"}
    found = set(SEEN.findall(ended.stdout))
    return found or ({f"{tests[0]} (exit status {ended.returncode})"} if ended.returncode not in (0, 5) else set())


def seers(tree: Path, mutant: Mutant, tests: list[str]) -> set[str]:
    """Return tests that fail with the change and pass without it."""
    file, anyway = tree / mutant.path, set()
    original = file.read_text()
    while True:
        file.write_text(changed(original, mutant))
        try:
            found = failures(tree, tests, anyway)
        finally:
            file.write_text(original)
        broken = failures(tree, sorted({test.partition(" (")[0] for test in found}), set()) if found else set()
        if found - broken or not found or broken <= anyway:
            return found - broken
        anyway |= broken


def judged(tree: Path, mutant: Mutant, graph: dict[str, set[str]]) -> dict[str, object]:
    """Return the record of one mutant."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seen: set[str] = set()
    distance = 0
    for distance, tests in calls(mutant.path, graph):  # noqa: B007  recorded below
        if seen := seers(tree, mutant, tests):
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        **mutant._asdict(),
        "seen_by": sorted(seen),
        "imports": distance if seen else None,
        "seconds": round(seconds),
    }


def key(row: dict[str, str]) -> tuple[str, ...]:
    """Return what tells mutants apart in a record."""
    return tuple(row[name] for name in Mutant._fields)


def recorded(record: Path) -> dict[tuple[str, ...], dict]:
    """Return the rows of a record by mutant."""
    return {key(row): row for row in map(json.loads, record.read_text().splitlines())} if record.exists() else {}


def main(path: str, *numbers: str) -> int:
    """Run the mutants that the record lacks; return 1 if one of those asked for survives."""
    record, graph = Path(path), tiers.imports()
    asked = [MUTANTS[int(number)] for number in numbers] or MUTANTS
    with tempfile.TemporaryDirectory() as scratch:
        tree = copied(scratch)
        for mutant in asked:
            if mutant in recorded(record):
                continue
            row = judged(tree, mutant, graph)
            with record.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{mutant.path}: {', '.join(row['seen_by']) or 'SURVIVES'}", flush=True)  # noqa: T201
    rows = recorded(record)
    return int(any(not rows[mutant]["seen_by"] for mutant in asked))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
