"""The page stands alone: nothing is loaded from anywhere, and everything measured is on it."""

import re
from html import unescape
from html.parser import HTMLParser

import pytest

from bounds import all_bounds
from gpu_validation.judging.console import MEANING
from gpu_validation.judging.html import page as rendered
from gpu_validation.judging.verdict import Evidence, Outcome
from gpu_validation.records.environment import Environment
from gpu_validation.studies.carry_out import carry_out
from gpu_validation.studies.smoke import PRESET

pytestmark = pytest.mark.timeout(120)


class Links(HTMLParser):
    """Collects everything that a browser would fetch."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.found += [attrs[name] for name in ("src", "href", "xlink:href") if name in attrs]
        assert tag not in ("iframe", "img", "link"), tag


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return carry_out(PRESET, tmp_path_factory.mktemp("report"))


@pytest.mark.thorough
def test_page_loads_nothing_and_shows_every_comparison(outcome):
    page = (outcome.folder / "report.html").read_text()
    links = Links()
    links.feed(page)

    assert all(link.startswith("#") for link in links.found)
    assert not re.search(r"url\((?!#)|@import", page)
    assert page.count("<tr class=") == len(outcome.comparisons)
    assert page.count("<figure>") == 2
    by_operator = next(
        table for table in re.findall("<table>.*?</table>", page, re.DOTALL) if ">operator</th>" in table
    )
    shown = [int(number) for number in re.findall(r">(\d+)</td>", by_operator)]
    assert sum(shown) == len(outcome.comparisons)
    spelled = by_operator.replace("&shy;", "").replace("<wbr>", "")
    assert all(f">{name}</th>" in spelled for name in Outcome)
    assert MEANING in unescape(page)


def test_first_screen_names_every_claim_that_an_informative_row_is_about(outcome):
    page = unescape((outcome.folder / "report.html").read_text())
    first = page[page.index("What would have been noticed") : page.index("<figure>")]
    informative = [c for c in outcome.comparisons if c.evidence is Evidence.INFORMATIVE]

    assert informative
    for c in informative:
        assert f"<td>{c.theorem}</td><td>{c.quantity}</td>" in first
    counted = re.findall(r"<td>(\d+) of (\d+)</td>", first)
    assert sum(int(number) for number, _ in counted) == len(informative)
    assert all(int(number) <= int(judged) for number, judged in counted)


def test_page_says_what_the_theorems_of_its_rows_need(outcome):
    page = unescape((outcome.folder / "report.html").read_text())
    named = {c.theorem for c in outcome.comparisons} & set(all_bounds())

    assert {"pasgd_iterations", "gaussian_bits"} <= named
    for name in named:
        assert f"<dt>{name}</dt><dd>{all_bounds()[name].setting.text()}</dd>" in page


def test_an_early_end_stands_at_the_top_and_is_escaped(outcome):
    page = rendered(PRESET, [], [], "rank 1 <was> killed", repr(Environment.here("smoke", 2, "gloo")))

    assert page.index("rank 1 &lt;was&gt; killed") < page.index("<details>")
    assert "<figure>" not in page


def test_summary_has_one_line_an_operator(outcome):
    table = PRESET.summary(outcome.records, outcome.comparisons)

    assert table.row_count == len(PRESET.operators)
