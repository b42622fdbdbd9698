"""A pilot on the page: given as a file or pasted, planned from, refused in words, forgotten."""

import csv
import io
import json
import re

import pytest

import ratedist as rd
from ratedist.calls.pilot import PILOT_EXAMPLE
from ratedist.cluster.links import LINE_RATES
from ratedist.plans.ranking import operator_text

from .test_answers import saved
from .test_page import SIZES, opened, settled

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]
PLACE = "/#workers=8&bandwidth_bit_per_s=1e9&latency_s=0.001&operators=identity"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pilot.json"
    path.write_text(json.dumps(PILOT_EXAMPLE))
    return path


def expected(file, workers):
    pilot = rd.Pilot.read(file)
    return rd.plan(pilot=pilot, cluster=pilot.cluster(workers=workers, bandwidth_bit_per_s=1e9, latency_s=0.001))


def give(page, file):
    with page.expect_request(lambda request: request.url.endswith("/v1/plan") and '"pilot"' in request.post_data):
        page.set_input_files("#pilot-file", file)
    settled(page)


@pytest.mark.parametrize("size", SIZES)
def test_the_plan_of_a_file_stands_in_words_numbers_and_intervals(browser, server, file, size):
    with opened(browser, server, PLACE, viewport=SIZES[size]) as page:
        assert not page.is_visible("#pilot-plan figure")
        assert page.inner_text('#summary a[href="#pilot-plan"] b') == "no pilot given"
        give(page, file)
        plan = expected(file, 8)
        assert page.inner_text("#pilot-plan .value") == plan.explain().split(".  ")[0] + "."
        changes = page.locator("#pilot-plan .changes li").all_inner_texts()
        assert [line.split(",")[0] for line in changes] == [change.part for change in plan.limits.changes]
        unknown = page.locator("#pilot-plan .unknown li").all_text_contents()
        assert tuple(unknown) == plan.prediction.unknown
        first = page.locator("#pilot-plan tbody tr").first.locator("td").all_inner_texts()
        assert first[0].startswith(operator_text(plan.best.operator))
        shown = [words in first[0] for words in ("fragments", "overlapped", "buckets")]
        assert shown == [plan.best.parts > 1, plan.best.overlap, plan.best.buckets > 1]
        assert float(first[1].split(",")[0]) == pytest.approx(plan.best.ratio, rel=5e-3)
        assert page.locator("#pilot-plan .chart .interval").count() == len(plan.shown)
        assert page.locator("#pilot-plan .chart .rule").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]


def test_the_lines_end_where_the_intervals_end(browser, server, file):
    with opened(browser, server, PLACE) as page:
        give(page, file)
        name, content = saved(page, '#pilot-plan figure button:has-text("CSV")')
        rows = list(csv.reader(io.StringIO(content.decode())))[1:]
        plan = expected(file, 8)
        assert name == "ratedist-pilot-plan.csv"
        assert [[float(value) for value in row[1:]] for row in rows] == [
            [pytest.approx(choice.ratio), *map(pytest.approx, choice.ratio_ends)] for choice in plan.shown
        ]
        box = page.locator("#pilot-plan .chart").bounding_box()
        drawn = page.locator("#pilot-plan .chart .interval")
        paths = drawn.evaluate_all("(all) => all.map((e) => e.getAttribute('d'))")
        ends = [[float(number) for number in re.match(r"M([\d.]+),[\d.]+L([\d.]+)", path).groups()] for path in paths]
        dots = page.locator("#pilot-plan .chart > .dot").evaluate_all("(all) => all.map((e) => +e.getAttribute('cx'))")
        for (start, stop), dot, choice in zip(ends, dots, plan.shown, strict=True):
            assert start <= dot <= stop
            assert (stop == pytest.approx(box["width"] - 14, abs=1)) == (choice.ratio_ends[1] == float("inf"))


def test_another_number_of_workers_is_planned_for_at_once(browser, server, file):
    with opened(browser, server, PLACE) as page:
        give(page, file)
        page.fill("#workers", "64")
        settled(page)
        assert page.inner_text("#pilot-plan .value") == expected(file, 64).explain().split(".  ")[0] + "."


def test_nodes_and_a_link_by_name_are_planned_for_as_in_python(browser, server, file):
    with opened(browser, server, PLACE + "&nodes=2&inside=nvlink4%2C3e-6") as page:
        give(page, file)
        pilot = rd.Pilot.read(file)
        links = {"inside": rd.Link.read("inside", "nvlink4,3e-6"), "between": rd.Link(1e9, 0.001)}
        plan = rd.plan(pilot=pilot, cluster=pilot.cluster(workers=8, nodes=2, **links))
        assert plan.explain() != expected(file, 8).explain()
        assert page.inner_text("#pilot-plan .value") == plan.explain().split(".  ")[0] + "."
        ratio = page.locator("#pilot-plan tbody tr").first.locator("td").nth(1).inner_text()
        assert float(ratio.split(",")[0]) == pytest.approx(plan.best.ratio, rel=5e-3)
        assert page.input_value("#inside") == "nvlink4,3e-6"
        names = page.locator("#link-names code").all_text_contents()
        assert names == list(LINE_RATES)


def test_a_link_between_nodes_by_name_stands_for_bandwidth_and_latency(browser, server, file):
    with opened(browser, server, PLACE + "&nodes=2&inside=nvlink4%2C3e-6&between=infiniband_ndr%2C5e-6") as page:
        give(page, file)
        pilot = rd.Pilot.read(file)
        links = {"inside": "nvlink4,3e-6", "between": "infiniband_ndr,5e-6"}
        plan = rd.plan(pilot=pilot, cluster=pilot.cluster(workers=8, nodes=2, **links))
        assert page.inner_text("#pilot-plan .value") == plan.explain().split(".  ")[0] + "."
        assert page.input_value("#between") == "infiniband_ndr,5e-6"


def test_a_pilot_may_be_pasted_and_is_forgotten_and_never_in_the_address(browser, server, file):
    with opened(browser, server, PLACE) as page:
        page.click("#pilot-plan summary >> nth=0")
        page.fill("#pilot-text", file.read_text())
        settled(page)
        assert page.inner_text("#pilot-plan .value").startswith("Try ")
        assert "25600000" not in page.url
        page.click("#pilot-forget")
        settled(page)
        assert page.inner_text("#pilot-plan .value") == ""
        assert page.input_value("#pilot-text") == ""


@pytest.mark.parametrize(
    ("content", "words", "asked"),
    [
        ("{", "This is no JSON", False),
        (" " * 1_000_001, "at most 1,000,000 characters", False),
        ('{"version": 7}', "no pilot of version 1 or 2; got version 7", True),
        (json.dumps(PILOT_EXAMPLE | {"taus": [2, 1]}), "taus of a pilot must be up to 32 rising integers", True),
    ],
)
def test_what_is_no_pilot_is_refused_in_words(browser, server, tmp_path, content, words, asked):
    (tmp_path / "pilot.json").write_text(content)
    with opened(browser, server, PLACE, expected_errors=("422",) if asked else ()) as page:
        page.set_input_files("#pilot-file", tmp_path / "pilot.json")
        page.wait_for_selector("#pilot-plan.refused")
        settled(page)
        assert words in page.inner_text("#pilot-plan .value")
        assert not page.is_visible("#pilot-plan figure")
        assert page.inner_text("#plan .value").startswith("Use uncompressed")


def test_a_plan_starts_from_a_recorded_pilot(browser, server):
    with opened(browser, server, PLACE + "&d=1e8&step_s=0.2&compute=constant") as page:
        page.select_option("#pilot-recorded", "transformer")
        settled(page)
        links = {"workers": 8, "bandwidth_bit_per_s": 1e9, "latency_s": 0.001}
        plan = rd.plan(pilot="transformer", d=1e8, cluster=rd.Cluster(**links, step_s=0.2, compute="constant"))
        assert page.inner_text("#pilot-plan .value") == plan.explain().split(".  ")[0] + "."
        ratio = page.locator("#pilot-plan tbody tr").first.locator("td").nth(1).inner_text()
        assert float(ratio.split(",")[0]) == pytest.approx(plan.best.ratio, rel=5e-3)
        page.click("#pilot-forget")
        settled(page)
        assert page.input_value("#pilot-recorded") == ""
        assert page.inner_text('#summary a[href="#pilot-plan"] b') == "no pilot given"
