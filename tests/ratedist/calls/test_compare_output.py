"""Names in figures and tables are shown as they are, and an output is checked before anything is measured."""

import csv
import io

import matplotlib
import numpy as np
import pytest

import ratedist as rd
from ratedist.calls.compare import require_writable
from ratedist.drawing import label_of
from ratedist.interfaces.cli import main

X = np.random.default_rng(0).standard_normal(64)
NAMES = ("$x$", "a$b", "$\\frac{1$", "a\nb", "_hidden", "=1+2", "-cost", "100 %", "a_b^c~d#e{f}", "back\\slash")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_shown_as_it_is_in_every_output(name, tmp_path):
    matplotlib.use("Agg")
    found = rd.compare([rd.own(lambda x: x / 2, bits=8, name=name)], X, bits=None)
    axes = found.plot()
    line = " ".join(name.split())
    assert label_of(name).replace(r"\$", "$").strip() == line
    assert label_of(name) in [text.get_text() for text in axes.texts]
    for suffix in (".svg", ".csv", ".tex"):
        found.save(tmp_path / f"out{suffix}")
    (row,) = csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text()))
    assert row["operator"].removeprefix("'") == line
    assert not row["operator"].startswith(("=", "-"))
    assert "$x$" not in (tmp_path / "out.tex").read_text()


def test_an_output_that_cannot_be_written_is_refused_before_measuring(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    (tmp_path / "dir.csv").mkdir()
    monkeypatch.setattr("ratedist.calls.compare.compare", lambda *given, **named: pytest.fail("it measured"))
    for out in ("missing/out.csv", "dir.csv", "out.txt", "no\0.csv", "x.npy/out.csv"):
        assert main(["compare", "qsgd:4", "x.npy", "--out", out]) == 2
        shown, error = capsys.readouterr()
        assert (shown, error.count("\n")) == ("", 1)
        assert "fault" not in error


def test_an_existing_file_is_overwritten(tmp_path):
    file = tmp_path / "out.csv"
    file.write_text("old")
    assert require_writable(file) == file
    rd.compare(["qsgd:4"], X, bits=None).save(file)
    assert "qsgd" in file.read_text()
