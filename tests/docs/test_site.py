"""The built site: complete, offline, and readable in a real browser at two widths, light and dark."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
import tiers
from pages import DOCS

HTML = DOCS / "_build/html"
VIEWS = {
    "desktop, light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "phone, dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}
INDICES = ("genindex", "py-modindex", "search")
ENTRIES, OF_ENTRIES = "reference/entries/", 17
LEAST_TEXT = 150  # characters of a page that is not empty
RENDERED = "() => !window.MathJax || window.MathJax.startup.promise.then(() => true)"
LOOK = r"""() => {
  const width = document.documentElement.clientWidth;
  const scrolls = e => {
    for (; e && e.tagName !== 'ARTICLE'; e = e.parentElement)  // which stands in a box that scrolls itself
      if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX)) return true;
    return false;
  };
  const wide = [...document.querySelectorAll('article *')]
    .filter(e => e.getBoundingClientRect().right > width + 1 && !scrolls(e))
    .map(e => `${e.tagName}: ${e.textContent.slice(0, 60)}`);
  const article = document.querySelector('article').cloneNode(true);
  article.querySelectorAll('pre, code, script, style, mjx-container').forEach(e => e.remove());
  return {
    scroll: document.documentElement.scrollWidth - width,
    wide: wide.slice(0, 3),
    tex: (article.textContent.match(/\\[a-zA-Z(\[]+|\$\$|\{\{|\}\}/g) || []).slice(0, 3),
    broken: document.querySelectorAll('mjx-merror, .problematic, .system-message').length,
    formulas: document.querySelectorAll('.math').length,
    rendered: document.querySelectorAll('.math mjx-container').length,
    text: article.textContent.trim().length,
  };
}"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]  # a minute to build, a minute to look at


class Links(HTMLParser):
    """What a page names: targets to follow, resources to load, and its own anchors."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.resources, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.targets.append(given["href"])
        elif given.get("src"):
            self.resources.append(given["src"])
        elif tag == "link" and given.get("href"):
            self.resources.append(given["href"])


@pytest.fixture(scope="module")
def site():
    """The pages by their path, built with every warning an error."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", str(DOCS), str(HTML)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    index = (HTML / "searchindex.js").read_text()
    named = json.loads(index[index.index("(") + 1 : index.rindex(")")])["docnames"]
    return {f"{name}.html": Links((HTML / f"{name}.html").read_text()) for name in [*named, *INDICES]}


def looked_at(site):
    """The pages to look at in a browser; of the entries of the catalogue, which are alike, the commit draws some."""
    entries = [name for name in site if name.startswith(ENTRIES)]
    drawn = set(entries[int(tiers.head()[:8] or "0", 16) % OF_ENTRIES :: OF_ENTRIES])
    return [name for name in site if name not in entries or name in drawn]


def test_every_internal_link_leads_to_a_page_and_an_anchor(site):
    broken = []
    for name, links in site.items():
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = (HTML / name).parent / unquote(parts.path) if parts.path else HTML / name
            page = os.path.relpath(path, HTML)
            anchors = site[page].anchors if page in site else None
            if not path.exists() or (parts.fragment and anchors is not None and unquote(parts.fragment) not in anchors):
                broken.append(f"{name}: {target}")
    assert broken == []


def test_no_resource_lies_on_another_server(site):
    outside = [(name, r) for name, links in site.items() for r in links.resources if urlsplit(r).netloc]
    outside += [
        (path.name, url)
        for path in HTML.rglob("*.css")
        for url in re.findall(r"url\(\s*[\"']?(https?:[^)\"']+)", path.read_text())
    ]
    assert outside == []
    assert any("mathjax/tex-svg.js" in r for links in site.values() for r in links.resources)


@pytest.mark.parametrize("view", VIEWS)
def test_every_page_is_rendered_within_its_width_and_asks_nobody(site, browser, view):
    page, faults, outside = browser.new_page(**VIEWS[view]), [], []
    page.set_default_timeout(120_000)
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else outside.append(r.url))
    page.on("console", lambda m: faults.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: faults.append(str(e)))
    for name in looked_at(site):
        page.goto((HTML / name).as_uri())
        page.wait_for_function(RENDERED)
        seen = page.evaluate(LOOK)
        if seen["scroll"] > 0 or seen["wide"] or seen["tex"] or seen["broken"]:
            faults.append(f"{name}: {seen}")
        if seen["formulas"] != seen["rendered"]:
            faults.append(f"{name}: {seen['formulas'] - seen['rendered']} formulas are not rendered")
        if seen["text"] < LEAST_TEXT and name != "search.html":
            faults.append(f"{name}: nearly empty")
    page.close()
    assert faults == []
    assert outside == []
