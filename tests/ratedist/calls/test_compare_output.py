"""Names in figures and tables are shown as they are, and an output is checked before anything is measured."""

import csv
import io

import matplotlib
import numpy as np
import pytest

import ratedist as rd
from operators import ScaledSign
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


def test_two_functions_of_ones_own_are_both_answered_and_drawn_differently():
    functions = [rd.own(lambda x, k=k: k * x, bits=8, name=f"times {k}") for k in (0.5, 0.25)]
    found = rd.compare([*functions, "tcdq", "qsgd"], X, bits=8)
    first, second = (f"times {k} sends 8 bits per coordinate for NMSE" for k in (0.5, 0.25))
    assert found.answer().verdict.startswith(first)
    assert found.answer().facts["another of yours"].startswith(second)
    fills = {line.get_markerfacecolor() for line in found.plot().lines if line.get_marker() == "*"}
    assert len(fills) == 2


class Mine(ScaledSign):
    """An operator from a module of the user: its bits are counted."""


def test_only_the_bits_of_a_function_are_as_it_states_them():
    for own, stated in ((rd.own(lambda x: x / 2, bits=8), True), (Mine(), False)):
        found = rd.compare([own, "qsgd:4"], X, bits=None)
        assert [row.is_own for row in found.rows] == [True, False]
        assert ("as the function states" in str(found)) == stated


def test_the_table_names_whose_bits_depend_on_the_vector():
    assert "of tcdq they depend on the vector" in str(rd.compare(["tcdq", "eden"], X, bits=2)).replace("\n  ", " ")
    assert "depend on the vector" not in str(rd.compare(["eden"], X, bits=2)).replace("\n  ", " ")


@pytest.mark.parametrize(("period", "is_below"), [(2, False), (16, True)])
def test_the_figure_says_why_a_point_lies_below_a_limit(period, is_below):
    result = rd.compare(["topk:0.1"], np.where(np.arange(64) % period == 0, X, 1e-3 * X), bits=None)
    assert (result.rows[0].measured.gap < 0) == is_below
    assert ("easier than a Gaussian" in result.plot().get_title(loc="left")) == is_below
