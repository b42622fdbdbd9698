"""One command for all benchmarks: what has ended well is not run again until the code that it measures changes."""

import json
import subprocess
from pathlib import Path

import pytest
import records

from .. import scripts

benchmarks = scripts.load("benchmarks", "all")
GOOD = benchmarks.Benchmark("good", "good.jsonl", "good.py --twice", 1)
BAD = benchmarks.Benchmark("bad", "bad.jsonl", "bad.py", 1)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A repository with one benchmark that works and one that stops half way."""
    docs = tmp_path / "docs"
    (docs / "data").mkdir(parents=True)
    (docs / "good.py").write_text('import helps\n\n\ndef main(twice: bool = False):\n    yield {"twice": twice}\n')
    (docs / "helps.py").write_text("from operators import Key\n")
    (tmp_path / "operators").mkdir()
    (tmp_path / "operators" / "__init__.py").write_text("Key = 0\n")
    for other in ("operators", "alone"):  # a script with the name of a package, and one that nothing imports
        (docs / f"{other}.py").write_text("Key = 1\n")
    (docs / "bad.py").write_text("def main():\n    yield {}\n    raise SystemExit(1)\n")
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "begin"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(benchmarks, "ROOT", tmp_path)
    monkeypatch.setattr(benchmarks, "DATA", docs / "data")
    return docs


def test_a_record_is_taken_once_and_again_when_something_else_has_changed(tree):
    assert not benchmarks.done(GOOD)

    printed = benchmarks.run(GOOD)

    (line,) = map(json.loads, (tree / "data" / benchmarks.RUNS).read_text().splitlines())
    head, record = map(json.loads, (tree / "data" / "good.jsonl").read_text().splitlines())
    assert record == {"twice": True}
    assert {"commit", "load", "numpy"} <= head.keys()
    assert (line["benchmark"], line["command"]) == ("good", "good.py --twice")
    assert printed == line
    assert benchmarks.done(GOOD)
    assert not benchmarks.done(benchmarks.Benchmark("good", "good.jsonl", "good.py", 1))


@pytest.mark.parametrize("changed", ["docs/alone.py", "docs/operators.py", "docs/page.md", "tests/test_a.py"])
def test_a_text_a_test_or_another_script_leaves_a_record_as_it_is(tree, changed):
    benchmarks.run(GOOD)

    (tree.parent / changed).parent.mkdir(exist_ok=True)
    (tree.parent / changed).write_text("'changed'\n")

    assert benchmarks.done(GOOD)


@pytest.mark.parametrize("changed", ["docs/good.py", "docs/helps.py", "operators/__init__.py"])
def test_the_script_what_it_imports_and_the_packages_do_not(tree, changed):
    benchmarks.run(GOOD)

    (tree.parent / changed).write_text((tree.parent / changed).read_text() + "'changed'\n")

    assert not benchmarks.done(GOOD)


def test_one_that_fails_leaves_the_record_before_it(tree):
    (tree / "data" / "bad.jsonl").write_text("before\n")

    with pytest.raises(subprocess.CalledProcessError):
        benchmarks.run(BAD)

    assert [(path.name, path.read_text()) for path in (tree / "data").iterdir()] == [("bad.jsonl", "before\n")]
    assert not benchmarks.done(BAD)


@pytest.mark.parametrize("benchmark", benchmarks.BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_what_a_script_imports_of_its_folder_is_there(benchmark):
    script = Path(scripts.DOCS, benchmark.command.split()[0])

    read = {path.stem for path in benchmarks.scripts(script)}

    shared = {"hook": {"comparing", "ranks"}, "operators": {"comparing", "messages", "peers"}}
    assert read >= {script.stem} | shared.get(script.stem, set())
    assert script.stem == "operators" or "operators" not in read


def test_every_command_is_a_script_with_a_record_of_its_own():
    root = Path(scripts.DOCS)
    assert all((root / benchmark.command.split()[0]).exists() for benchmark in benchmarks.BENCHMARKS)
    assert len({benchmark.record for benchmark in benchmarks.BENCHMARKS}) == len(benchmarks.BENCHMARKS)


def test_the_page_shows_the_last_run_of_every_benchmark_and_its_commit(tmp_path, monkeypatch):
    lines = [("hook", "aaa", 3.0), ("limits", "aaa", 5.5), ("hook", "bbb", 4.25)]
    keys = ("benchmark", "commit", "seconds")
    rows = [dict(zip(keys, line, strict=True)) | {"command": f"{line[0]}.py", "record": "r"} for line in lines]
    (tmp_path / benchmarks.RUNS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(records, "DATA", tmp_path)
    records.lines_of.cache_clear()

    shown = records.runs_table().splitlines()[2:]
    records.lines_of.cache_clear()

    assert shown == [
        "| hook | `python docs/measure.py hook.py` | `r` | bbb | 4.25 |",
        "| limits | `python docs/measure.py limits.py` | `r` | aaa | 5.5 |",
    ]
