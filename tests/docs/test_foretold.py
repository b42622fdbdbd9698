"""The figures of predictions on pages are those of the committed records."""

import math
import re
from functools import cache
from pathlib import Path

import pytest
import reproduced

from gpu_validation.studies.prediction.analysis import FORMULAS, TRIED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "concepts" / "prediction.md").read_text()
OFF = "|predicted/measured - 1| of the time to the target"
SHARES = ("error", "cells", "intervals")
LINES = {
    "error of the time to the target, median": f"{OFF}, median",
    "error, 90th percentile": f"{OFF}, 90th percentile",
    "cells without a finite prediction": "share of choices for which the pilot's noise leaves no finite prediction",
    "intervals at 90 % that hold it": "share of intervals at 90% that hold what was measured",
    "time of the choice predicted best, over the best measured, median": (
        "time of the choice predicted best over the best measured, median"
    ),
    "the same, 90th percentile": "time of the choice predicted best over the best measured, 90th percentile",
}
COLUMNS = (
    ("foretold_anew", "held out anew half", TRIED),
    ("foretold_anew", "held out anew half", FORMULAS),
    ("foretold_times", "held-out half", TRIED),
    ("foretold_times", "design half", TRIED),
)


@cache
def rows_of(script):
    return tuple(reproduced.script(script).check())


def measured(script, where, model):
    return {row.quantity: row for row in rows_of(script) if (row.operator, row.workload) == (model, where)}


def spelled(line, value):
    if math.isinf(value):
        return "infinite"
    if not line.startswith(SHARES):
        return f"{value:.2f}"
    return f"{100 * value:.0f} %" if line.startswith("cells") else f"{100 * value:.1f} %"


@pytest.mark.parametrize("line", LINES)
def test_the_table_holds_the_numbers_of_the_records(line):
    (row,) = re.findall(rf"^\| {re.escape(line)} \|(.*)\|$", PAGE, flags=re.MULTILINE)
    expected = [spelled(line, measured(*column)[LINES[line]].measured) for column in COLUMNS]
    assert [cell.strip() for cell in row.split("|")][: len(COLUMNS)] == expected


@pytest.mark.parametrize("page", ["README.md", "docs/guides/measure_before_you_plan.md"])
def test_other_pages_quote_the_same_median_and_percentile(page):
    rows = measured(*COLUMNS[0])
    median, tail = (f"{100 * rows[f'{OFF}, {each}'].measured:.1f} %" for each in ("median", "90th percentile"))
    assert f"within {median}" in (ROOT / page).read_text()
    assert tail in (ROOT / page).read_text()


def test_the_page_counts_cells():
    cells = [measured(*column)[f"{OFF}, median"].n for column in (COLUMNS[0], COLUMNS[2], COLUMNS[3])]
    counted = re.search(r"\| held out anew, (\d+) cells .* held out before, (\d+) cells \| design, (\d+) cells", PAGE)
    assert counted is not None
    assert [int(count) for count in counted.groups()] == cells
