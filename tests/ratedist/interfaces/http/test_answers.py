"""The page's answers in a browser: first on a phone, read off its charts, saved, and the outer steps beside them."""

import csv
import io
import json
import math
import struct

import pytest

import ratedist as rd
from ratedist.interfaces.http.app import PAGE

from .test_page import PATIENCE_MS, SIZES, opened, settled

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]
POINTS = json.loads((PAGE / "measured.json").read_text())["points"]


def saved(page, button):
    with page.expect_download(timeout=PATIENCE_MS) as download:
        page.click(button)
    return download.value.suggested_filename, download.value.path().read_bytes()


def test_on_a_phone_the_answers_stand_on_the_first_screen_and_the_fields_one_tap_away(browser, server):
    with opened(browser, server, viewport=SIZES["phone"]) as page:
        last = page.locator("#summary li").last.bounding_box()
        assert last["y"] + last["height"] < SIZES["phone"]["height"]
        for panel in ("bits", "tau"):
            answer = page.inner_text(f"#{panel} .value")
            assert answer in page.inner_text(f'#summary a[href="#{panel}"]')
        assert not page.is_visible("#d")
        page.click("#inputs > summary")
        page.fill("#d", "1e6")
        settled(page)
        assert "500,000 bits" in page.inner_text("#summary")
        page.click('#summary a[href="#plan"]')
        assert page.evaluate("document.activeElement.id") == "plan"
        assert page.input_value("#d") == "1e6"
    with opened(browser, server) as page:
        assert page.is_visible("#d"), "on a desktop the fields stand beside the answers"
        assert page.is_visible("#L")


def test_a_refusal_is_one_sentence_in_the_panel_and_among_the_answers(browser, server):
    with opened(browser, server, "/#eta=2&L=1", expected_errors=("422",)) as page:
        sentence = page.inner_text("#outer-step .value")
        assert sentence.startswith("outer needs mu <= L and eta L <= 1; got mu = 0.01, L = 1, eta = 2: ")
        assert sentence in page.inner_text("#summary")
        assert not page.is_visible("#outer-step figure")
        page.fill("#eta", "0.01")
        settled(page)
        assert page.is_visible("#outer-step figure")


def test_measured_operators_stand_beside_their_claims(browser, server):
    with opened(browser, server, "/#d=16384") as page:
        recorded = [p for p in POINTS if p["d"] == 2**14 and p["kind"] == "unbiased" and 1e-3 <= p["nmse"] <= 1e4]
        assert page.locator("#bits .chart .diamond").count() == len(recorded) > 10
        assert page.locator("#bits .chart .joined").count() == len(recorded)
        assert "d = 16,384" in page.inner_text("#bits .legend")
        page.fill("#d", "200")
        settled(page)
        assert "d = 128" in page.inner_text("#bits .legend")


def test_values_are_read_by_pointing_and_with_the_arrow_keys(browser, server):
    with opened(browser, server, "/#d=16384") as page:
        dot = page.locator("#bits .chart .diamond").first.bounding_box()
        page.mouse.move(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2)
        assert " measured: NMSE " in page.inner_text("#bits .readout")
        page.focus("#sums-seconds .chart")
        page.keyboard.press("ArrowRight")
        first = page.inner_text("#sums-seconds .readout")
        assert first.startswith("workers 2: gather ")
        page.keyboard.press("ArrowRight")
        assert page.inner_text("#sums-seconds .readout").startswith("workers 4: gather ")
        page.keyboard.press("ArrowLeft")
        assert page.inner_text("#sums-seconds .readout") == first
        seconds = rd.allreduce(
            d=16384, m=2, operator="tcdq:omega=1", exchange="gather", codec=rd.Codec(8.5e-9, 4.3e-9), latency_s=5e-5
        ).seconds
        assert float(first.split("gather ")[1].split(",")[0]) == pytest.approx(seconds, rel=0.01)


def test_a_chart_is_saved_as_the_numbers_that_it_shows_and_as_a_picture(browser, server):
    with opened(browser, server, "/#d=1000") as page:
        name, text = saved(page, "#bits .save button >> text=CSV")
        header, *rows = csv.reader(io.StringIO(text.decode()))
        assert (name, header) == ("ratedist-bits.csv", ["kind", "name", "distortion ω", "bits per coordinate"])
        line = [(float(x), float(y)) for kind, _, x, y in rows if kind == "line"]
        assert len(line) == 41
        for omega, bits in line:
            assert bits == pytest.approx(math.log2(1 + 1 / omega) / 2, rel=1e-6)
        assert ["your choice", "", "1", "0.5"] in rows
        assert sum(kind.startswith("measured on Gaussian vectors") for kind, *_ in rows) > 10

        name, picture = saved(page, "#bits .save button >> text=PNG")
        assert name == "ratedist-bits.png"
        assert picture[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", picture[16:24])
        box = page.locator("#bits .chart").bounding_box()
        assert width == pytest.approx(2 * box["width"], abs=2)
        assert height > 2 * box["height"], "the question, the answer and the legend are in it too"
        assert len(picture) > 20_000, "a picture of one colour is smaller"

        name, text = saved(page, "#plan .save button")
        rows = list(csv.DictReader(io.StringIO(text.decode())))
        assert name == "ratedist-plan-table.csv"
        assert [row["operator"] for row in rows] == page.locator(
            "#plan tbody td:first-child:not(.why)"
        ).all_inner_texts()


def test_the_plan_says_what_limits_its_best_choice(browser, server):
    cluster = rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="exponential")
    best = rd.plan(d=25_600_000, cluster=cluster, operators=["identity"], target=0.1).ranking[0]
    with opened(browser, server, "/#operators=identity") as page:
        said = page.inner_text("#plan .explanation")
        assert best.limits.limit == "stragglers"
        assert f"Most of a round is stragglers, {best.limits.shares['stragglers']:.0%}".replace("%", " %") in said
        assert f"{best.limits.changes[0].part} would save {best.limits.changes[0].saved_s:.3g} s" in said


def test_the_outer_panel_shows_the_best_step_and_what_libraries_choose(browser, server):
    advice = rd.outer(eta=0.01, tau=30, L=1, mu=0.01, workers=16)
    with opened(browser, server, "/#L=1") as page:
        best = advice.best
        answer = f"ν = {best['lr']:.3g}, β = {best['momentum']:.3g}: error × {best['factor']:.4g} a round"
        assert page.inner_text("#outer-step .value") == answer
        assert page.locator("#outer-step .assumed li").count() == 0
        assert page.locator("#outer-step .chart .region").count() == 1
        named = page.locator("#outer-step tbody td:first-child").all_inner_texts()
        assert named == ["best", "plain averaging", "your step", *(row["name"] for row in advice.rows[1:])]
        page.fill("#outer_step", "20:0.9")
        settled(page)
        assert "Your step ν = 20, β = 0.9: diverges." in page.inner_text("#outer-step .explanation")
        page.fill("#delay", "20")
        settled(page)
        assert "corrected" in page.inner_text("#outer-step tbody tr >> nth=0")
        assert "not known with late averages" in page.inner_text("#outer-step tbody")
    with opened(browser, server) as page:
        assert page.inner_text("#outer-step .value").startswith("ν ≈ 5.1, β ≈ 0.78")
        assert "L = 1 is assumed" in page.inner_text("#outer-step .assumed")
