"""The figures of predictions on pages are those of the committed records."""

import math
import re
from functools import cache
from pathlib import Path
from statistics import median

import pytest
import reproduced
import study_tables

from gpu_validation.studies.prediction import CHEAP, FORMULAS, GUESS, SYNCHRONOUS, TRIED

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGE = (ROOT / "docs" / "concepts" / "prediction.md").read_text()
OFF = "|predicted/measured - 1| of the time to the target"
SHARES = ("error", "cells", "single")
LINES = {
    "error of the time to the target, median": f"{OFF}, median",
    "error, 90th percentile": f"{OFF}, 90th percentile",
    "error where progress differs by more than 10 %, median": f"{OFF}, median",
    "single trainings there that intervals at 90 % hold": "share of single trainings that intervals at 90% hold",
    "cells without a finite prediction": "share of choices for which the pilot's noise leaves no finite prediction",
    "single trainings that intervals at 90 % hold": "share of single trainings that intervals at 90% hold",
    "time of the choice predicted best, over the best measured, median": (
        "time of the choice predicted best over the best measured, median"
    ),
    "the same, 90th percentile": "time of the choice predicted best over the best measured, 90th percentile",
}
COLUMNS = (
    ("prediction-anew", "held out later half", TRIED),
    ("prediction-anew", "held out later half", GUESS),
    ("prediction-anew", "held out later half", FORMULAS),
    ("prediction", "held-out half", TRIED),
    ("prediction", "design half", TRIED),
)


DIFFERENT = (
    "error where progress differs by more than 10 %, median",
    "single trainings there that intervals at 90 % hold",
)
HELD = "share of single trainings that intervals at 90% hold"
OTHERS = tuple(
    ("prediction-others", half, model)
    for half in ("frozen half", "second design half", "fresh half")
    for model in (TRIED, GUESS)
)
BEST = "time of the choice predicted best over the best measured"
OTHER_LINES = {
    "error where progress differs by more than 10 %": (", progress differs by more than 10%", f"{OFF}, median"),
    "error of adaptive optimizers against DistributedDataParallel": (", adaptive optimizers", f"{OFF}, median"),
    "single trainings with such progress that intervals at 90 % hold": (", progress differs by more than 10%", HELD),
    "choice over the best measured: median": ("", f"{BEST}, median"),
    "choice over the best measured: 90th percentile": ("", f"{BEST}, 90th percentile"),
}
HALVES = COLUMNS[0], COLUMNS[3], COLUMNS[4]


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
    suffix = ", progress differs by more than 10%" if line in DIFFERENT else ""
    numbers = [measured(script, where + suffix, model)[LINES[line]].measured for script, where, model in COLUMNS]
    assert [cell.strip() for cell in row.split("|")][: len(COLUMNS)] == [spelled(line, value) for value in numbers]


@pytest.mark.parametrize("line", OTHER_LINES)
def test_the_table_of_other_problems_holds_the_numbers_of_the_records(line):
    (row,) = re.findall(rf"^\| {re.escape(line)} \|(.*)\|$", PAGE, flags=re.MULTILINE)
    suffix, quantity = OTHER_LINES[line]
    numbers = [measured(script, where + suffix, model)[quantity].measured for script, where, model in OTHERS]
    assert [cell.strip() for cell in row.split("|")][: len(OTHERS)] == [
        f"{value:.2f}" if line.startswith("choice") else f"{100 * value:.1f} %" for value in numbers
    ]


@pytest.mark.parametrize("rule", [CHEAP, SYNCHRONOUS])
@pytest.mark.parametrize("part", ["median", "90th percentile"])
def test_the_table_of_fixed_choices_holds_the_numbers_of_the_records(rule, part):
    (row,) = re.findall(rf"^\| {rule}: {part} \|(.*)\|$", PAGE, flags=re.MULTILINE)
    quantity = f"time of this fixed choice over the best measured, {part}"
    numbers = [measured(script, where, rule)[quantity].measured for script, where, _ in HALVES]
    assert [cell.strip() for cell in row.split("|")] == [f"{value:.2f}" for value in numbers]


@pytest.mark.parametrize("page", ["README.md", "docs/guides/measure_before_you_plan.md"])
def test_other_pages_quote_the_same_median_and_percentile(page):
    rows = measured(*COLUMNS[0])
    median, tail = (f"{100 * rows[f'{OFF}, {each}'].measured:.1f} %" for each in ("median", "90th percentile"))
    assert f"within {median}" in (ROOT / page).read_text()
    assert tail in (ROOT / page).read_text()


def test_the_front_page_sets_the_guess_beside_the_pilot():
    rows = measured(*COLUMNS[1])
    median, tail = (f"{100 * rows[f'{OFF}, {each}'].measured:.1f} %" for each in ("median", "90th percentile"))
    assert f"A guess without any pilot reaches {median} and {tail}." in README
    different = ", progress differs by more than 10%"
    ours, guessed = (
        f"{100 * measured(script, where + different, model)[f'{OFF}, median'].measured:.1f} %"
        for script, where, model in OTHERS[:2]
    )
    assert f"a pilot errs by {ours} in the median. A guess errs by {guessed}" in " ".join(README.split())


def test_the_page_counts_cells():
    cells = [measured(*column)[f"{OFF}, median"].n for column in HALVES]
    counted = re.search(r"\| held out later, (\d+) cells .* held out before, (\d+) cells \| design, (\d+) cells", PAGE)
    assert counted is not None
    assert [int(count) for count in counted.groups()] == cells


def test_the_advice_about_pilots_follows_from_the_records():
    text = " ".join((ROOT / "docs" / "guides" / "do_i_need_a_pilot.md").read_text().split())
    (stated,) = re.findall(r"it took (\d\.\d\d) times the best measured time or less for D/Y up to 20", text)
    for ratio in (0.5, 4.0, 20.0, 50.0):
        _, by_rule = study_tables.costs(lambda cell, ratio=ratio: cell.ratio == ratio)
        assert (median(by_rule) <= float(stated)) == (ratio <= 20)
    deep, same, different = (
        study_tables.costs(study_tables.KINDS[kind])
        for kind in (
            "ResNet-20 and the transformer",
            "the same data on every worker",
            "different data on every worker",
        )
    )
    assert median(different[0]) < median(different[1])
    assert median(deep[0]) < median(deep[1])
    assert median(same[0]) < median(same[1])
    synchronous = [measured(script, where, SYNCHRONOUS) for script, where, _ in HALVES]
    values = [rows["time of this fixed choice over the best measured, median"].measured for rows in synchronous]
    assert (round(min(values)), round(max(values))) == (7, 9)
    assert "took 7 to 9 times the best time" in text
