"""The report in a browser: what matters on the first screens, and the tools of its table."""

import re

import pytest

from gpu_validation.judging.html import page as report
from gpu_validation.judging.verdict import Comparison, Verdict
from gpu_validation.studies.smoke import PRESET


def row(number, verdict=Verdict.HOLDS):
    operator = ("qsgd:levels=16", "identity", "scaled_sign")[number % 3]
    return Comparison(operator, "bits", float(number), (2.0, 2.9), 3.0, "upper", verdict, "", f"theorem {number % 20}")


GOOD = [row(number) for number in range(300)]
BAD = [*GOOD, row(300, Verdict.VIOLATED), row(301, Verdict.INCONCLUSIVE)]


@pytest.fixture
def opened(browser, tmp_path):
    pages = []

    def show(comparisons, width=1280, height=900, scheme="light"):
        file = tmp_path / "report.html"
        file.write_text(report(PRESET, ["<figure>drawn</figure>"], comparisons, "", "here"))
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        pages.append(page)
        page.goto(file.as_uri())
        return page

    yield show
    for page in pages:
        page.close()


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)], ids=["desktop", "phone"])
def test_details_begin_within_three_screens_and_nothing_sticks_out(opened, width, height, scheme):
    page = opened(BAD, width, height, scheme)
    assert page.locator("details").first.bounding_box()["y"] < 3 * height
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.thorough
def test_on_a_phone_the_verdicts_by_operator_stand_on_the_first_screen(opened):
    page = opened(BAD, 390, 844)
    table = page.locator(".by-operator")
    box = table.bounding_box()
    assert box["y"] + box["height"] < 844
    assert box["x"] + box["width"] <= 390
    cells = [line.split("\t") for line in table.inner_text().splitlines()[1:]]
    assert cells == [
        ["qsgd:levels=16", "100", "0", "0", "0", "0", "1"],
        ["identity", "100", "0", "0", "1", "0", "0"],
        ["scaled_sign", "100", "0", "0", "0", "0", "0"],
    ]
    desktop = opened(BAD).locator(".by-operator").bounding_box()
    assert desktop["width"] * desktop["height"] <= 4, "there the picture says it"


@pytest.mark.thorough
def test_no_violation_is_green_and_one_is_not(opened):
    def colour(page):
        return page.locator(".verdict").evaluate("e => getComputedStyle(e).color")

    good, bad = opened(GOOD), opened(BAD)
    assert good.locator(".verdict").inner_text() == "300 of 300 comparisons are evidence; 0 VIOLATED"
    assert bad.locator(".verdict").inner_text() == "300 of 302 comparisons are evidence; 1 VIOLATED"
    assert colour(good) == "rgb(0, 105, 74)"
    assert colour(bad) == "rgb(179, 38, 30)"
    assert bad.locator("li").all_inner_texts()[0].startswith("qsgd:levels=16 violates its theorem 0: bits measured 300")
    assert good.locator("h2", has_text="violated").count() == 0


@pytest.mark.thorough
def test_the_table_is_filtered_and_sorted(opened):
    page = opened(BAD)
    page.locator("summary", has_text="All 302 comparisons").click()

    def shown():
        cells = [line.split("\t") for line in page.locator("#comparisons tbody tr:visible").all_inner_texts()]
        return [[operator, measured] for operator, _, _, _, _, measured, *_ in cells]

    assert page.locator("#shown").inner_text() == "302 of 302 shown"
    page.check("#problems")
    assert shown() == [["qsgd:levels=16", "300"], ["identity", "301"]]
    page.fill("#search", "IDENTITY incon")
    assert shown() == [["identity", "301"]]
    page.fill("#search", "")
    page.uncheck("#problems")
    page.locator("th button", has_text="measured").click()
    assert [cells[1] for cells in shown()[:2]] == ["0", "1"]
    page.locator("th button", has_text="measured").click()
    assert [cells[1] for cells in shown()[:2]] == ["301", "300"]
    header = page.locator("th", has_text="measured")
    assert header.get_attribute("aria-sort") == "descending"
    assert page.locator("[aria-sort]").count() == 1
    assert page.locator(".rows").bounding_box()["height"] < 900, "the table scrolls in its own frame"


@pytest.mark.thorough
def test_on_paper_only_what_is_open_is_printed(opened):
    page = opened(BAD)
    pages = re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))
    assert 1 <= len(pages) <= 3


def test_violations_stand_before_the_details_and_their_absence_is_good():
    good, bad = (report(PRESET, [], rows, "", "here") for rows in (GOOD, BAD))
    assert '<p class="verdict good">300 of 300 comparisons are evidence; 0 VIOLATED</p>' in good
    assert '<p class="verdict VIOLATED">300 of 302 comparisons are evidence; 1 VIOLATED</p>' in bad
    assert bad.index("violates its theorem 0") < bad.index("<details>")
    assert "violates its" not in good
