"""Compressors at equal bits: the rows are what ``measure`` says of the operators that ``for_bits`` finds."""

import csv
import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest
import torch

import ratedist as rd
from bounds.claims import Unbiased
from operators import ScaledSign, for_bits, specification
from ratedist.interfaces.cli import main

X = np.random.default_rng(0).standard_normal(4096).astype(np.float32)


def zeros(x):
    return x * 0


zeros.bits = 0.5


def test_own_compressor_is_not_praised_beside_others_that_all_send_more():
    """Its error is that of sending nothing; no other was tried at its bits."""
    alone = rd.compare([zeros, "eden"], X, bits=2).answer()
    assert "is not compared: it sends 0.5 bits per coordinate" in alone.verdict
    assert "add bits = 0.5" in alone.verdict
    beside = rd.compare([zeros, "tcdq"], X, bits=(0.5, 2)).answer()
    assert "not compared" not in beside.verdict
    assert beside.facts["smallest error"].startswith("of the others, tcdq")


def kept(x):
    return 10 * x * (torch.rand(x.shape) < 0.1)


kept.bits = 0.6


def test_default_bits_include_the_few_of_the_own_compressor():
    found = rd.compare([kept, "tcdq", "scaled_sign"], X)
    assert [row.asked for row in found.rows] == [None, pytest.approx(0.6, rel=1e-3), 1, 2, 4, None]
    assert "and the 0.6 of yours" in found.assumed[0]
    assert [row.asked for row in rd.compare([kept, "tcdq"], X, bits=(1, 2)).rows] == [None, 1, 2]


def test_bits_that_nobody_else_can_send_are_not_asked_for_again():
    nothing, little = rd.own(zeros, bits=0, name="nothing"), rd.own(zeros, bits=1e-6, name="little")
    for own in (nothing, little):
        answer = rd.compare([own, "eden"], X).answer()
        assert answer.verdict.endswith("every other compressor here more.")


def test_headline_names_a_rival_of_the_same_class_or_says_which_class_it_has():
    """Top-k has a smaller error than any unbiased compressor at few bits; another class is no answer by itself."""
    claimed = rd.own(kept, claim=Unbiased(9.0))
    assert re.search(r"; tcdq:\S+ needs 0.6\d* for", rd.compare([claimed, "topk", "tcdq"], X).answer().verdict)
    assert re.search(r"; topk:\S+ \(contractive\) needs 0.6\d* for", rd.compare([claimed, "topk"], X).answer().verdict)


def test_a_smaller_error_at_the_same_bits_is_in_the_headline():
    """A rival of 1.008 bits answers one of 1; one of 1.1 does not."""
    worse = rd.own(lambda x: 0 * x, bits=1.0, name="worse")
    assert "scaled_sign (contractive) needs 1.01 for" in rd.compare([worse, "scaled_sign"], X).answer().verdict
    cheaper = rd.own(lambda x: 0 * x, bits=0.9, name="cheaper")
    assert "is not compared" in rd.compare([cheaper, "scaled_sign"], X).answer().verdict


def test_rows_are_the_measured_members_of_the_families():
    found = rd.compare(["tcdq", "eden"], X, bits=(1, 2))
    assert [(row.family, row.asked) for row in found.rows] == [("tcdq", 1), ("tcdq", 2), ("eden", 1), ("eden", 2)]
    for row in found.rows:
        member = for_bits(row.family, row.asked, like=X)
        assert row.measured == rd.measure(member, X)
        assert row.measured.operator == specification(member)
        assert row.seconds > 0


def test_what_has_no_choice_or_states_it_is_sent_as_it_is():
    found = rd.compare(["scaled_sign", "qsgd:4", ScaledSign(), rd.own(zeros)], X, bits=(1, 2))
    assert [row.asked for row in found.rows] == [None] * 4
    assert [row.is_own for row in found.rows] == [False, False, False, True]
    assert found.rows[1].measured == rd.measure("qsgd:4", X)
    assert len(rd.compare(["tcdq"], X, bits=None).rows) == 1


def test_a_compressor_that_returns_zeros_has_lost_everything():
    (row,) = rd.compare([zeros], X).rows
    assert row.measured.nmse == 1.0
    assert row.measured.bits == 0.5
    assert row.measured.gap == pytest.approx(0.5)


def test_bits_that_a_family_cannot_send_are_a_remark_and_no_point():
    found = rd.compare(["eden"], X, bits=(0.2, 1))
    assert found.rows[0].measured is None
    assert "nearest of its family to 0.2" in found.rows[0].remark
    assert "not measured eden at 0.2 bits: eden:bits_per_coordinate=1" in " ".join(repr(found).split())
    assert len(found.to_csv().splitlines()) == 2


def test_distance_from_the_source_is_that_of_the_measured_curve():
    found = rd.compare(["tcdq"], X, bits=2, source=True)
    (point,) = rd.measured_curve([for_bits("tcdq", 2, like=X)], X).points
    assert found.rows[0].source_gap == pytest.approx(point.gap)
    assert rd.compare(["tcdq"], X, bits=2).rows[0].source_gap is None


def test_an_error_too_small_for_the_source_loses_one_number_and_no_row():
    found = rd.compare(["klevel:k=65536", "eden"], X, bits=2, source=True)
    exact, eden = found.rows
    assert exact.measured is not None
    assert exact.source_gap is None
    assert "distortion" in exact.remark
    assert eden.source_gap > 0
    assert found.answer().facts["of source"] == "not computed for klevel:k=65536: the error is too small"
    assert found.answer().facts["not measured"] == ""


def test_csv_latex_and_html_hold_every_number():
    found = rd.compare(["scaled_sign", "eden"], X, bits=1)
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [float(row["nmse"]) for row in rows] == [row.measured.nmse for row in found.rows]
    assert r"scaled\_sign & 1.008 &" in found.to_latex()
    assert found.to_latex().count(r"\\") == 3
    assert found._repr_html_().count("<tr>") == 3
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".csv", ".tex"])
def test_the_suffix_says_what_is_written(suffix, tmp_path):
    file = rd.compare(["scaled_sign"], X).save(tmp_path / f"figure{suffix}")
    head = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF", ".csv": b"operator", ".tex": b"\\begin"}[suffix]
    assert file.read_bytes().startswith(head)


def test_figure_has_a_curve_a_family_the_own_one_in_front_and_both_limits():
    ax = rd.compare(["tcdq", zeros], X, bits=(1, 2)).plot()
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert set(lines) == {"tcdq", "zeros", "limit, unbiased", "limit, biased"}
    assert lines["zeros"].get_zorder() > lines["tcdq"].get_zorder()
    bits, nmse = lines["limit, biased"].get_data()
    assert np.log2(nmse) == pytest.approx(-2 * bits)
    bits, nmse = lines["limit, unbiased"].get_data()
    assert np.log2(1 + 1 / nmse) / 2 == pytest.approx(bits)
    low, high = ax.get_ylim()
    assert all(low < y < high for y in (1.0, *lines["tcdq"].get_ydata()))


@pytest.mark.parametrize("width_in", [3.3, 6.0])
def test_a_figure_fits_its_width_and_names_what_its_limits_are(width_in):
    ax = rd.compare(["tcdq", zeros], X, bits=(1, 2)).plot(width_in=width_in)
    ax.figure.savefig(io.BytesIO(), format="svg")  # which lays it out
    assert ax.figure.get_figwidth() == width_in
    box = ax.figure.get_tightbbox()
    assert box.x0 >= 0
    assert box.x1 <= width_in
    assert "for the worst x, and for Gaussian x" in ax.get_title(loc="left")
    assert "Gaussian" in ax.get_title(loc="left")
    assert {text.get_text() for text in ax.texts} == {"tcdq", "zeros", "limit, unbiased", "limit, biased"}
    assert min(text.get_fontsize() for text in [*ax.texts, ax.xaxis.label, ax.yaxis.label, ax.title]) >= 8


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: rd.compare(["eden"], X, bits=1).plot(width_in=1.0), "width_in >= 3 inches, finite; got width_in = 1"),
        (lambda: rd.compare("tcdq", X), "compressors must be a list of at least one; got 'tcdq'"),
        (lambda: rd.compare([], X), r"got \[\]"),
        (lambda: rd.compare(["nobody"], X), "unknown operator 'nobody'"),
        (
            lambda: rd.compare(["eden"], X, bits=(1, "2")),
            "bits must satisfy 0 < bits per coordinate, finite; got",
        ),
        (lambda: rd.compare(["eden"], X, bits=float("nan")), "got bits = nan"),
        (lambda: rd.compare(["eden"], X, bits=0), "got bits = 0"),
        (lambda: rd.compare(["eden"], X * 0), "x must have an entry that is not 0"),
        (lambda: rd.compare(["eden"], X, bits=1).save("figure.bmp"), "must end in .pdf, .svg, .png, .csv or .tex"),
    ],
)
def test_what_cannot_be_compared_is_said(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_progress_is_told_of_every_row():
    seen = []
    found = rd.compare(["eden", "scaled_sign"], X, bits=(1, 2), progress=seen.append)
    assert tuple(seen) == found.rows


@pytest.mark.thorough
def test_a_function_of_the_current_folder_on_the_command_line(tmp_path):
    np.save(tmp_path / "gradient.npy", X)
    (tmp_path / "mine.py").write_text("def f(x):\n    return x / 2\n\n\nf.bits = 3\n")
    command = [sys.executable, "-m", "ratedist", "compare", "mine:f", "gradient.npy", "--bits", "1", "2"]
    done = subprocess.run(
        [*command, "--against", "eden", "--out", "figure.svg", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["family"] for row in rows] == ["mine:f", "eden", "eden"]
    assert rows[0]["measured"]["nmse"] == 0.25
    assert rows[0]["is_own"]
    assert (tmp_path / "figure.svg").exists()


def test_a_label_on_the_command_line_names_the_own_function_and_terngrad_is_among_the_others(
    tmp_path, monkeypatch, capsys
):
    np.save(tmp_path / "gradient.npy", X)
    (tmp_path / "labelled.py").write_text("def f(x):\n    return 0.5 * x\n\nf.bits = 4\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    asked = ["gradient.npy", "--bits", "2", "--label", "Ours, halved", "--json"]
    assert main(["compare", "labelled:f", *asked]) == 0
    families = [row["family"] for row in json.loads(capsys.readouterr().out)["rows"]]
    assert families == ["Ours, halved", "tcdq", "eden", "qsgd", "terngrad", "topk"]
    assert main(["compare", "tcdq", *asked]) == 2
    assert "label names a function of your own; got tcdq" in capsys.readouterr().err


def test_bits_that_are_no_number_are_a_usage_error(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "gradient.npy", X)
    assert main(["compare", "eden", "gradient.npy", "--bits", "two"]) == 2
    assert "bits must satisfy" in capsys.readouterr().err
