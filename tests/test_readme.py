"""The front page tells the truth: its code runs and gives the numbers it shows, its files exist, it is short."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from gpu_validation.judging.verdict import Outcome, read_comparisons
from ratedist.interfaces.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
LIMIT, OWN, PILOT = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
TABLE_CELL = re.compile(r"[^|\n]+(?=\|)")


def test_python_example_runs_and_shows_true_numbers():
    space: dict = {}
    exec(compile(LIMIT, "README.md", "exec"), space)

    shown = dict(re.findall(r"^([\w.]+\(.*\))(?:\.\w+)?\s+# ([\d.]+)", LIMIT, re.MULTILINE))
    assert shown, "the example shows at least one number"
    for call, number in shown.items():
        assert str(eval(call, space)).startswith(number.rstrip(".")), call
    assert space["y"].shape == space["x"].shape


def test_a_compressor_of_ones_own_is_checked_and_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_of_the_front_page.py").write_text(OWN)
    np.save("gradient.npy", np.random.default_rng(0).standard_normal(5000).astype(np.float32))
    name = "own_of_the_front_page:f"

    assert main(["check", name, "--omega", "1"]) == 0
    assert main(["compare", name, "gradient.npy", "--bits", "2", "--out", "figure.pdf"]) == 0
    assert (tmp_path / "figure.pdf").exists()
    assert "tcdq" in capsys.readouterr().out


def test_the_pilot_is_called_as_it_is_defined():
    import inspect

    from gpu_validation import pilot

    (call,) = re.findall(r"^pilot\((.*)\)$", PILOT, re.MULTILINE)
    positional = [each for each in call.split(", ") if "=" not in each]
    assert list(inspect.signature(pilot).parameters)[: len(positional)] == positional


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)]+)\)", README))
def test_links_lead_to_files(target):
    assert (ROOT / target).exists()


def test_the_table_of_verdicts_counts_the_read_comparisons():
    rows = read_comparisons(ROOT / "docs" / "data" / "quick_comparisons.jsonl")
    counts = Counter(str(row.outcome) for row in rows)
    stated = re.findall(r"^\| \**([A-Za-z ]+?)\** \| \**(\d+)\** \|", README, re.MULTILINE)
    assert {name: int(count) for name, count in stated} == {str(each): counts[str(each)] for each in Outcome}
    assert f"{len(rows)} measured numbers" in README


def test_the_caption_gives_the_gaps_of_the_figure(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "studies")
    import front_page

    gaps = {row.family: row.measured.gap for row in front_page.compared().rows if row.asked == 2}
    (caption,) = re.findall(r"^\*Four compressors.*?\*$", README, re.MULTILINE | re.DOTALL)
    shown = re.findall(r"\d\.\d\d", caption)
    assert shown == [f"{gaps[family]:.2f}" for family in ("tcdq", "eden", "qsgd")]


def test_the_front_page_is_short():
    assert len(README.splitlines()) <= 150
    assert len(README.split()) <= 1200
    cells = [cell for line in README.splitlines() if line.startswith("|") for cell in TABLE_CELL.findall(line)]
    assert max(len(cell.split()) for cell in cells) <= 25
