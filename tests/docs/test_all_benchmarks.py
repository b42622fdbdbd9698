"""One command for all benchmarks: what has ended well is not run again until something but a record changes."""

import json
import subprocess
from pathlib import Path

import pytest

from .. import scripts

benchmarks = scripts.load("benchmarks", "all")
GOOD = benchmarks.Benchmark("good", "good.jsonl", "good.py --twice", 1)
BAD = benchmarks.Benchmark("bad", "bad.jsonl", "bad.py", 1)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A repository with one benchmark that works and one that stops half way."""
    docs = tmp_path / "docs"
    (docs / "data").mkdir(parents=True)
    (docs / "good.py").write_text("import sys\nprint(len(sys.argv))\n")
    (docs / "bad.py").write_text("print(1, flush=True)\nraise SystemExit(1)\n")
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "begin"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(benchmarks, "ROOT", tmp_path)
    monkeypatch.setattr(benchmarks, "DATA", docs / "data")
    return docs


def test_a_record_is_taken_once_and_again_when_something_else_has_changed(tree):
    assert not benchmarks.done(GOOD)

    seconds = benchmarks.run(GOOD)

    (line,) = map(json.loads, (tree / "data" / benchmarks.RUNS).read_text().splitlines())
    assert (tree / "data" / "good.jsonl").read_text() == "2\n"
    assert (line["benchmark"], line["command"]) == ("good", "good.py --twice")
    assert line["seconds"] == pytest.approx(seconds, abs=0.1)
    assert benchmarks.done(GOOD)
    assert not benchmarks.done(benchmarks.Benchmark("good", "good.jsonl", "good.py", 1))
    (tree / "good.py").write_text("print(3)\n")
    assert not benchmarks.done(GOOD)


def test_one_that_fails_leaves_the_record_before_it(tree):
    (tree / "data" / "bad.jsonl").write_text("before\n")

    with pytest.raises(subprocess.CalledProcessError):
        benchmarks.run(BAD)

    assert [(path.name, path.read_text()) for path in (tree / "data").iterdir()] == [("bad.jsonl", "before\n")]
    assert not benchmarks.done(BAD)


def test_every_command_is_a_script_with_a_record_of_its_own():
    root = Path(scripts.DOCS)
    assert all((root / benchmark.command.split()[0]).exists() for benchmark in benchmarks.BENCHMARKS)
    assert len({benchmark.record for benchmark in benchmarks.BENCHMARKS}) == len(benchmarks.BENCHMARKS)
