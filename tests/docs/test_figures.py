"""The figures' records, read again and held against their bounds; every figure is shown on a page."""

import re
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import reproduced

from gpu_validation.judging.plotting import LINES_A_PANEL
from gpu_validation.judging.verdict import Verdict

DOCS = Path(__file__).parents[2] / "docs"
MOST_ENTRIES = 8  # lines, and marks of what was measured
STUDIES = [path.stem for path in (DOCS / "data" / "studies").glob("*.jsonl")]
SCRIPTS = sorted([*(path.stem for path in (DOCS / "figures").glob("*.py") if path.stem != "common"), *STUDIES])


@cache
def figures_of(name):
    return tuple(reproduced.script(name).figures())


@pytest.mark.every(4)
@pytest.mark.parametrize("name", SCRIPTS)
def test_no_record_of_a_figure_violates_its_bounds(name):
    rows = reproduced.script(name).check()

    assert [row for row in rows if row.verdict is Verdict.VIOLATED] == []
    assert rows or name == "looseness"
    for row in rows:
        assert row.verdict is not Verdict.OUT_OF_SCOPE or row.reason


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_caption_says_what_is_measured_and_what_is_theory(name):
    for figure in figures_of(name):
        assert re.search(r"[Mm]easured|Theory|theory", figure.caption)
        assert "docs/data/" in figure.source
        assert "docs/data/" not in figure.caption
        assert figure.finding or name in STUDIES


@pytest.mark.thorough
@pytest.mark.parametrize("name", SCRIPTS)
def test_no_panel_has_more_than_six_kinds_of_lines(name):
    """Lines of one kind, such as those of several seeds, are told apart by nobody; legends are short too."""
    for figure in figures_of(name):
        drawn = figure.draw()
        for ax in drawn.axes:
            curves = [line for line in ax.lines if line.get_linestyle() != "None" and len(line.get_xdata()) > 2]
            assert len({(line.get_color(), line.get_linestyle()) for line in curves}) <= LINES_A_PANEL
            assert ax.get_legend() is None or len(ax.get_legend().get_texts()) <= MOST_ENTRIES
        plt.close(drawn)


def test_every_script_and_every_recorded_study_is_shown():
    shown = set()
    for page in DOCS.rglob("*.md"):
        shown.update(re.findall(r"```\{reproduced\} ([\w-]+)", page.read_text()))

    assert shown == set(SCRIPTS)
