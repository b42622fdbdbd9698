"""The chart of looseness: a mark for every judged inequality, at its factor, and a sentence that says how close."""

import math
import re
from xml.etree import ElementTree

import pytest

from gpu_validation.judging.html import page as report
from gpu_validation.judging.looseness import judged, looseness_svg, looseness_words
from gpu_validation.judging.verdict import Comparison, Verdict
from gpu_validation.studies.smoke import PRESET

SVG = "{http://www.w3.org/2000/svg}"


def row(bound, operator="qsgd:levels=16", theorem="Unbiased claim", verdict=Verdict.HOLDS, side="upper"):
    return Comparison(operator, "q", 2.0, (2.0, 2.0), bound, side, verdict, theorem=theorem)


ROWS = [
    row(4.0),
    row(20.0, operator="topk:fraction=0.01"),
    row(0.5, side="lower", theorem="a <limit>"),
    row(2.2, theorem="a theorem whose name is longer than what fits on one line of it", verdict=Verdict.INCONCLUSIVE),
]
UNJUDGED = [row(2.0, side="tight"), row(8.0, verdict=Verdict.OUT_OF_SCOPE), row(math.inf), row(0.0), row(None)]


def marks(svg):
    """The words of every mark, and where it lies."""
    groups = list(ElementTree.fromstring(svg).iter(f"{SVG}g"))
    return {g.find(f"{SVG}title").text: where(list(g)[1]) for g in groups}


def where(shape):
    if shape.tag == f"{SVG}circle":
        return float(shape.get("cx"))
    corners = re.findall(r"[ML]([0-9.]+)", shape.get("d")) + re.findall(r"H([0-9.]+)", shape.get("d"))
    return (min(map(float, corners)) + max(map(float, corners))) / 2


def test_only_inequalities_that_were_judged_are_drawn():
    assert [factor for _, factor in judged([*ROWS, *UNJUDGED])] == pytest.approx([2.0, 10.0, 4.0, 1.1])
    assert looseness_svg(UNJUDGED) == looseness_words(UNJUDGED) == ""
    assert "How close the bounds come" not in report(PRESET, [], UNJUDGED, "", "here")
    assert "How close the bounds come" in report(PRESET, [], ROWS, "", "here")


def test_marks_lie_at_the_logarithm_of_their_looseness():
    places = marks(looseness_svg([*ROWS, *UNJUDGED]))
    assert len(places) == 4
    x = {float(re.search(r"x ([0-9.]+)", words)[1]): place for words, place in places.items()}
    assert sorted(x) == [1.1, 2.0, 4.0, 10.0]
    decade = x[10.0] - x[2.0]
    assert (x[4.0] - x[2.0]) / decade == pytest.approx(math.log(2) / math.log(5), abs=0.01)
    assert (x[2.0] - x[1.1]) / decade == pytest.approx(math.log(2 / 1.1) / math.log(5), abs=0.01)


def test_a_bound_that_the_measured_number_passes_lies_left_of_one():
    svg = looseness_svg([row(4.0), row(1.0, verdict=Verdict.VIOLATED)])
    one = next(
        float(p.get("d")[1:].split()[0])
        for p in ElementTree.fromstring(svg).iter(f"{SVG}path")
        if p.get("stroke") == "currentColor"
    )
    places = marks(svg)
    assert places["qsgd:levels=16, q: x 0.5, VIOLATED"] < one < places["qsgd:levels=16, q: x 2, HOLDS"]


def test_the_sentence_names_the_median_and_the_closest():
    words = looseness_words([*ROWS, *UNJUDGED])
    assert words.startswith("Half of the 4 judged upper and lower bounds lie within a factor of 3 of the")
    assert words.endswith(
        "the closest is a theorem whose name is longer than what fits on one line of it of qsgd:levels=16, at 1.1."
    )


@pytest.mark.thorough
def test_in_a_browser_nothing_leaves_the_chart_and_no_words_meet(browser, tmp_path):
    path = tmp_path / "looseness.svg"
    path.write_text(looseness_svg(ROWS))
    page = browser.new_page()
    page.goto(path.as_uri())
    boxes = page.evaluate(
        "[...document.querySelectorAll('text')].map(t => [t.getBBox().x, t.getBBox().y, t.getBBox().width, "
        "t.getBBox().height, t.textContent])"
    )
    width, height = page.evaluate(
        "[document.documentElement.viewBox.baseVal.width, document.documentElement.viewBox.baseVal.height]"
    )
    page.close()
    for number, (x, y, w, h, text) in enumerate(boxes):
        assert 0 <= x <= x + w <= width, text
        assert 0 <= y <= y + h <= height, text
        for a, b, c, d, other in boxes[number + 1 :]:
            assert x + w <= a or a + c <= x or y + h <= b + 3 or b + d <= y + 3, (text, other)
