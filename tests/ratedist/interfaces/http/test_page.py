"""The page in a real browser: sliders move numbers and curves, links restore them, nothing leaves the server."""

from contextlib import contextmanager

import pytest

from ratedist.numbers import REMEDIES

READY = "body[data-state=ready]"
PATIENCE_MS = 400_000  # a machine may be busy; nothing here depends on how fast it is
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]
SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


@contextmanager
def opened(browser, server, address="/", expected_errors=(), **options):
    """A page that must load everything from the server and log no error but the expected ones."""
    page = browser.new_page(**{"viewport": SIZES["desktop"]} | options)
    outside, errors = [], []
    page.on("request", lambda r: None if r.url.startswith((server.url, "data:")) else outside.append(r.url))
    page.on("console", lambda m: errors.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: errors.append(str(e)))
    page.goto(server.url + address)
    settled(page)
    yield page
    assert outside == []
    assert [e for e in errors if not any(word in e for word in expected_errors)] == []
    page.close()


def settled(page):
    """Wait for the answers to the last change; a change leaves the state at once."""
    page.wait_for_selector(READY, timeout=PATIENCE_MS)


def numbers(page):
    """What the three questions are answered with, and their curves."""
    answers = [page.inner_text(f"#{name} .value") for name in ("bits", "tau", "plan")]
    curves = [page.get_attribute(f"#{name} .chart path.best", "d") for name in ("bits", "tau")]
    here = [page.get_attribute("#bits .chart .here", end) for end in ("cx", "cy")]
    return answers, curves, here


def test_a_slider_moves_the_numbers_and_the_curves(browser, server):
    with opened(browser, server) as page:
        before = numbers(page)
        assert before[0][0] == "12,800,000 bits"
        page.focus("#omega-slider")
        page.keyboard.press("Home")
        settled(page)
        after = numbers(page)
        assert page.input_value("#omega") == "0.001"
        assert after[0][0] != before[0][0]
        assert after[2] != before[2]
        assert "omega=0.001" in page.url

        page.focus("#eta-slider")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("PageDown")
        settled(page)
        last = numbers(page)
        assert last[0][1] != before[0][1]
        assert last[1][1] != before[1][1]


def test_sums_are_drawn_by_schedule_and_answered_at_the_cluster(browser, server):
    with opened(browser, server) as page:
        page.fill("#omega", "0.1")
        page.fill("#workers", "64")
        settled(page)
        assert "two shots:" in page.inner_text("#sums .value")
        words = page.inner_text("#sums .explanation")
        assert "error of the mean of at most 0.21 " in words
        assert "3.88 bits per coordinate and rank" in words
        for figure, lines in (("sums-seconds", 3), ("sums-error", 5)):
            paths = page.query_selector_all(f"#{figure} .chart path")
            assert len(paths) == lines
            assert all(path.get_attribute("d").count("L") == 5 for path in paths)
            assert len(page.query_selector_all(f"#{figure} .chart path.best")) == 1
        before = page.get_attribute("#sums-seconds .chart path.best", "d")

        page.fill("#workers", "2")
        settled(page)
        assert "gather:" in page.inner_text("#sums .value")
        assert page.get_attribute("#sums-seconds .chart path.best", "d") != before


def test_a_change_abandons_what_was_asked_before_at_once(browser, server):
    with opened(browser, server) as page:
        page.route("**/v1/plan", lambda route: None)  # never answered
        page.fill("#d", "1e6")
        with page.expect_event("request", lambda request: request.url.endswith("/v1/plan"), timeout=PATIENCE_MS):
            pass
        page.clock.install()
        page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 10)  # nothing is asked again
        with page.expect_event("requestfailed", lambda request: request.url.endswith("/v1/plan")):
            page.fill("#d", "1e7")
        assert page.get_attribute("body", "data-state") == "busy"
        page.unroute("**/v1/plan")
        page.clock.resume()
        settled(page)
        assert page.inner_text("#bits .value") == "5,000,000 bits"


def test_a_permalink_restores_everything(browser, server):
    with opened(browser, server) as page:
        page.fill("#d", "1e6")
        page.select_option("#kind", "alpha")
        page.fill("#alpha", "0.25")
        page.fill("#workers", "64")
        page.select_option("#compute", "constant")
        settled(page)
        link, shown = page.url.removeprefix(server.url), numbers(page)
        assert shown[0][0] == "1,000,000 bits"
    with opened(browser, server, link) as page:
        assert numbers(page) == shown
        assert page.input_value("#workers") == "64"
        page.click("#reset")
        settled(page)
        assert page.inner_text("#bits .value") == "12,800,000 bits"
        assert "#" not in page.url


def test_tau_of_assumed_constants_is_an_interval_and_of_given_ones_a_number(browser, server):
    with opened(browser, server) as page:
        assumed = page.inner_text("#tau .value")
        between = "Not decided: between {} local steps (optimizer steps), because {}."
        assert assumed == between.format("1 and 2,274", "L, sigma2 and gap were not given")
        said = page.inner_text("#tau")
        assert "Average every 23 steps" in said
        assert "exactly" not in said
        assert "the the" not in said
        rests_on = page.locator("#tau .assumed li").all_inner_texts()
        assert [line.partition(";")[0] for line in rests_on] == [
            f"{symbol} = 1 is assumed, nothing was said" for symbol in ("L", "σ²", "ΔF")
        ]
        assert "about 23 steps" in page.text_content("#tau .theorem")
        assert "not certified" in page.text_content("#tau .theorem")
        assert page.get_attribute("#L", "placeholder") == "1, assumed"
        page.click("#tau .assumed button >> nth=1")
        assert page.evaluate("document.activeElement.id") == "sigma2"
        for name in ("L", "sigma2", "gap"):
            page.fill(f"#{name}", "1")
        settled(page)
        words = "Average every 49 local steps (optimizer steps); waiting for stragglers is counted."
        assert page.inner_text("#tau .value") == words
        assert page.locator("#tau .assumed li").count() == 0
        page.fill("#sigma2", "1:0.5:2")
        settled(page)
        assert page.inner_text("#tau .value") == between.format("16 and 32", "estimates are wide")


def test_what_the_server_refuses_is_said_in_words(browser, server):
    refused = ("422",)  # the browser logs the status of every refused request
    with opened(browser, server, "/#omega=-1", expected_errors=refused) as page:
        text = page.inner_text("#bits .value")
        assert text.startswith("omega must satisfy 0 < omega, finite; got omega = -1")
        assert REMEDIES["omega"] in text
        assert page.is_visible("#tau .chart")


@pytest.mark.parametrize("key", ["Home", "End"])
def test_every_panel_answers_at_both_ends_of_the_slider_of_dimensions(browser, server, key):
    left_out = ("422",)  # of curves whose first averaging takes longer than the time budget
    with opened(browser, server, expected_errors=left_out) as page:
        page.focus("#d-slider")
        page.keyboard.press(key)
        settled(page)
        assert float(page.input_value("#d")) == {"Home": 100, "End": 1e12}[key]
        refused = page.locator("section.refused").all_inner_texts()
        assert len(refused) == {"Home": 0, "End": 1}[key], refused  # one averaging takes longer than the budget
        assert all("time_s must hold at least one round" in text for text in refused)
        words = {"Home": "Not decided: between ", "End": "time_s must hold"}[key]
        assert page.inner_text("#tau .value").startswith(words)
        assert page.locator("#plan tbody tr").count() >= 2


def test_the_smallest_learning_rate_of_the_slider_is_answered(browser, server):
    with opened(browser, server, "/#eta=1e-5") as page:
        assert page.locator("section.refused").count() == 0
        assert page.inner_text("#tau .value").startswith("Not decided: between ")


def test_a_dimension_that_is_none_is_refused_in_the_same_words_by_every_panel(browser, server):
    with opened(browser, server, "/#d=abc", expected_errors=("422",)) as page:
        said = {page.inner_text(f"#{panel} .value") for panel in ("bits", "tau", "sums", "plan")}
        assert len(said) == 1
        assert "d must satisfy 1 <= d, an integer; got d = 'abc'" in said.pop()
        assert page.locator("section.refused").count() == 4


def test_the_plan_ranks_every_operator_with_its_reason(browser, server):
    with opened(browser, server, "/#operators=identity,+tcdq:omega=1,+topk:0.01&d=1000000") as page:
        names = page.locator("#plan tbody tr td:first-child:not(.why)").all_inner_texts()
        assert sorted(names) == ["identity", "tcdq:omega=1", "topk:fraction=0.01"]
        assert names[-1] == "topk:fraction=0.01"
        assert "diana" in page.inner_text("#plan td.why >> nth=0")
        assert "a round computes" not in page.inner_text("#plan td.why >> nth=0")
        page.click("#plan td.why summary >> nth=0")
        assert "a round computes" in page.inner_text("#plan td.why >> nth=0")
        assert page.inner_text("#plan .explanation").startswith("Most of a round is ")
        assert page.locator("#plan thead th").all_inner_texts()[-4:] == ["compute", "encode", "send", "decode"]


def test_the_plan_says_which_constants_are_assumed(browser, server):
    asked = "/#operators=identity&problem=smooth&sigma2=2"
    with opened(browser, server, asked) as page:
        lines = [f"{symbol} = 1 is assumed, not known; measure it give it" for symbol in ("L", "ΔF")]
        assert page.locator("#plan .assumed li").all_inner_texts() == lines
        for name in ("L", "gap"):
            page.fill(f"#{name}", "1")
        settled(page)
        assert page.locator("#plan .assumed li").count() == 0


def test_the_plan_is_told_what_coding_costs(browser, server):
    asked = "/#operators=identity,+tcdq:omega=0.1"
    with opened(browser, server, asked) as page:
        page.click("form details:has(#encode_s) > summary")
        assert page.is_visible("#encode_s")
        assert page.inner_text("#plan tbody tr td >> nth=0") == "identity"
        assert "codec given: 8.5 ns a coordinate to encode" in page.text_content("#plan tbody")
    with opened(browser, server, f"{asked}&codec=free") as page:
        page.click("form details:has(#encode_s) > summary")
        assert not page.is_visible("#encode_s")
        assert page.inner_text("#plan tbody tr td >> nth=0") == "tcdq:omega=0.1"


@pytest.mark.parametrize("size", SIZES)
def test_every_control_has_a_name_and_nothing_overflows(browser, server, size):
    with opened(browser, server, viewport=SIZES[size]) as page:
        page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        unnamed = page.evaluate(
            """[...document.querySelectorAll('input, select, textarea, button')].filter(
                 (e) => !(e.labels?.length || e.ariaLabel || e.textContent.trim())).map((e) => e.id)"""
        )
        assert unnamed == []
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
        box = page.locator("#plan table").bounding_box()
        assert box["x"] + box["width"] <= SIZES[size]["width"]
        assert page.locator("math").count() >= 4
        widths = "(all) => all.map((e) => [e.scrollWidth, e.clientWidth]).filter(([whole, shown]) => whole > shown)"
        assert page.locator(".formula").evaluate_all(widths) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser, server, scheme):
    with opened(browser, server, color_scheme=scheme) as page:
        worst = page.evaluate(CONTRAST)
        assert worst["ratio"] >= 4.5, worst


CONTRAST = """() => {
  const channels = (text) => text.match(/[0-9.]+/g).map(Number);
  const light = (text) => channels(text).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => {
    const colour = getComputedStyle(e).backgroundColor;
    return channels(colour)[3] === 0 ? ground(e.parentElement) : colour;
  };
  let worst = { ratio: 99 };
  const texts = 'h1, h2, p, label, legend, figcaption, td, th, output, a, li, .chart text';
  for (const e of document.querySelectorAll(texts)) {
    if (!e.textContent.trim() || !e.checkVisibility()) continue;
    const style = getComputedStyle(e);
    const pair = [light(e instanceof SVGElement ? style.fill : style.color), light(ground(e))].sort();
    const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (ratio < worst.ratio) worst = { ratio, text: e.textContent.trim().slice(0, 40) };
  }
  return worst;
}"""


def test_the_first_tab_stop_skips_to_the_answers(browser, server):
    with opened(browser, server, "/#d=1000000") as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "answers"
        settled(page)
        assert page.input_value("#d") == "1000000", "a link to a place on the page is none to other numbers"
        assert page.url.endswith("/#d=1000000")


def test_a_wrong_field_is_marked_and_the_last_charts_stay(browser, server):
    with opened(browser, server, expected_errors=("422",)) as page:
        curve = page.get_attribute("#bits .chart path.best", "d")
        page.fill("#omega", "-1")
        settled(page)
        marked = page.locator("#controls [aria-invalid]")
        assert marked.evaluate_all("(all) => all.map((each) => each.id)") == ["omega"]
        assert page.inner_text("#bits .value").endswith("The charts are those of the last answer.")
        assert page.is_visible("#bits figure")
        assert page.get_attribute("#bits .chart path.best", "d") == curve
        assert page.is_visible("#tau .chart")
        page.fill("#omega", "1")
        settled(page)
        assert marked.count() == 0


@pytest.mark.parametrize("field", ["d", "workers", "latency_s", "eta", "time_s"])
def test_every_number_that_cannot_be_is_marked(browser, server, field):
    with opened(browser, server, f"/#{field}=-1", expected_errors=("422",)) as page:
        assert page.locator("#controls [aria-invalid]").evaluate_all("(all) => all.map((each) => each.id)") == [field]


def test_what_is_not_computed_yet_says_so(browser, server):
    page = browser.new_page()
    page.route("**/v1/plan", lambda route: None)  # never answered
    page.goto(server.url)
    page.wait_for_selector("#bits.answered", timeout=PATIENCE_MS)
    assert page.inner_text("#plan .value") == "Not computed yet."
    assert page.inner_text('#summary a[href="#plan"] b') == "not computed yet"
    assert page.get_attribute("#plan", "aria-busy") == "true"
    page.close()


def test_the_cluster_of_the_last_visit_is_remembered_but_not_over_a_link(browser, server):
    context = browser.new_context()
    context.route("**/v1/**", lambda route: route.abort())  # no answer is needed
    for address, given, workers in (("/", "64", "16"), ("/", None, "64"), ("/#workers=4", None, "4"), ("/", None, "4")):
        page = context.new_page()
        page.goto(server.url + address)
        settled(page)
        assert page.input_value("#workers") == workers
        assert page.inner_text("#copied") == (
            "The cluster is that of your last visit." if address == "/" and not given else ""
        )
        if given:
            page.fill("#workers", given)
            settled(page)
        page.close()
    context.close()
