"""The picture of a run: every theorem and operator, verdicts by their shares, nothing covered and nothing cut."""

import re
from xml.etree import ElementTree

import pytest

from gpu_validation.judging.console import headline, outcome_table
from gpu_validation.judging.overview import COLOURS, STYLE, overview_svg, question, tightest, wrapped
from gpu_validation.judging.verdict import Comparison, Outcome, Verdict

SVG = "{http://www.w3.org/2000/svg}"


def row(operator="qsgd:levels=16", theorem="Unbiased claim", verdict=Verdict.HOLDS, **change):
    fields = {"quantity": "q", "measured": 2.0, "interval": (2.0, 2.0), "bound": 3.0, "side": "upper"} | change
    return Comparison(operator=operator, theorem=theorem, verdict=verdict, **fields)


ROWS = [
    row(),
    row(bound=2.5),
    row(verdict=Verdict.INCONCLUSIVE, bound=2.2),
    row(verdict=Verdict.OUT_OF_SCOPE, bound=2.0001),
    row("randomised_sparse_dithering:omega=1.0", "a <claim> with a name that is longer than one line of it", bound=2.4),
    row("identity", "all-gather", side="tight", bound=2.0),
]


def texts(svg):
    return [(float(t.get("x")), float(t.get("y")), t.text) for t in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def bars(svg):
    return [
        {g.find(f"{SVG}title").text: [(r.get("fill"), float(r.get("width"))) for r in g.iter(f"{SVG}rect")]}
        for g in ElementTree.fromstring(svg).iter(f"{SVG}g")
    ]


def test_every_theorem_and_operator_has_a_bar_of_its_verdicts_by_their_shares():
    first, *others = bars(overview_svg(ROWS))
    ((words, parts),) = first.items()
    assert words == "2 evidence, 1 inconclusive, 1 not covered"
    whole = sum(width for _, width in parts)
    shares = {fill: width / whole for fill, width in parts}
    expected = {Outcome.EVIDENCE: 0.5, Outcome.INCONCLUSIVE: 0.25, Outcome.NOT_COVERED: 0.25}
    assert shares == pytest.approx({COLOURS[outcome]: share for outcome, share in expected.items()}, abs=0.01)
    assert len(others) == 2


def test_the_tightest_judged_inequality_is_the_looseness():
    assert tightest(ROWS[:4]) == pytest.approx(1.1), "what is out of scope was not judged"
    assert tightest(ROWS[5:]) is None
    labels = [text for _, _, text in texts(overview_svg(ROWS)) if text.startswith("x ") and len(text) < 9]
    assert labels == ["x 1.1", "x 1.2"]


def test_a_violation_is_counted_and_turns_the_headline():
    assert headline(ROWS) == ("4 of 6 comparisons are evidence; 0 VIOLATED", True)
    words, is_good = headline([*ROWS, row(verdict=Verdict.VIOLATED)])
    assert (words, is_good) == ("4 of 7 comparisons are evidence; 1 VIOLATED", False)
    assert headline([row(verdict=Verdict.VIOLATED, decides=False)])[0].endswith("(timings, which never decide)")


def test_a_run_without_evidence_says_so():
    weak = [row for row in ROWS if row.outcome is not Outcome.EVIDENCE]
    assert weak
    words = "0 of 2 comparisons are evidence; 0 VIOLATED: no row would have shown a wrong bound"
    assert headline(weak) == (words, True)
    assert COLOURS[Outcome.VIOLATED] in str(bars(overview_svg([row(verdict=Verdict.VIOLATED)])))


EVERY_OUTCOME = {
    Outcome.EVIDENCE: row(),
    Outcome.SAME_CODE: row(structural=True),
    Outcome.NO_POWER: row(bound=200.0),
    Outcome.INCONCLUSIVE: row(verdict=Verdict.INCONCLUSIVE),
    Outcome.NOT_COVERED: row(verdict=Verdict.OUT_OF_SCOPE),
    Outcome.VIOLATED: row(verdict=Verdict.VIOLATED),
}


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_its_colour_and_its_column(outcome):
    found = EVERY_OUTCOME[outcome]
    assert found.outcome is outcome
    ((_, parts),) = bars(overview_svg([found]))[0].items()
    assert [fill for fill, _ in parts] == [COLOURS[outcome]]
    counts = [column._cells[0] for column in outcome_table([found]).columns[1:]]
    assert counts == [str(int(each is outcome)) for each in Outcome]


def test_rows_stand_under_the_question_that_they_answer():
    rows = [
        row(theorem="a", unit="s"),
        row(theorem="b", unit="byte"),
        row(),
        row(theorem="c", unit="bit"),
        row(theorem=""),
    ]
    shown = [text for _, _, text in texts(overview_svg(rows))]
    questions = [question(each) for each in (rows[3], rows[2], rows[1], rows[4], rows[0])]
    assert len(set(questions)) == 5
    assert [text for text in shown if text in questions] == questions
    for each, name in ((rows[0], "a"), (rows[1], "b"), (rows[3], "c")):
        assert shown.index(question(each)) < shown.index(name)


def test_the_picture_of_six_operators_fits_a_window_of_1100_pixels():
    svg = ElementTree.fromstring(overview_svg([row(f"operator_{n}") for n in range(6)]))
    assert float(svg.get("width")) <= 1100
    assert "max-width:100%" in STYLE
    assert "prefers-color-scheme:dark" in STYLE


def test_no_name_is_lost_in_wrapping():
    for name in ("randomised_sparse_dithering:omega=1.0", "all-gather of messages and 8-byte headers", "x" * 50):
        lines = wrapped(name, 15)
        assert max(map(len, lines)) <= 15
        assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", name)


@pytest.mark.thorough
def test_in_a_browser_no_text_leaves_the_picture_or_meets_another(browser, tmp_path):
    path = tmp_path / "summary.svg"
    path.write_text(overview_svg(ROWS))
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
    for x, y, w, h, text in boxes:
        assert x >= 0, text
        assert x + w <= width, text
        assert y + h <= height, text
    for number, (x, y, w, h, text) in enumerate(boxes):
        for a, b, c, d, other in boxes[number + 1 :]:
            apart = x + w <= a or a + c <= x or y + h <= b + 3 or b + d <= y + 3  # lines of a paragraph touch
            assert apart, (text, other)
