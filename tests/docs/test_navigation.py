"""Every page is in the side bar once, and the side bar shows at most 40 links in groups."""

import re
from collections import Counter

from pages import DOCS

MOST_LINKS = 40
TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
SOURCES = sorted(p for suffix in ("md", "ipynb") for p in DOCS.rglob(f"*.{suffix}"))
PAGES = {
    p for p in SOURCES if p.relative_to(DOCS).parts[0] not in ("_build", "_static", "data") and "entries" not in p.parts
}


def entries(block):
    """The pages of a table of contents, without its options."""
    return [line for line in block.splitlines() if line and not line.startswith(":")]


def listed(page):
    """The pages that the tables of contents of one page name."""
    for block in TOCTREE.findall(page.read_text()):
        for entry in entries(block):
            stem = DOCS / entry.removeprefix("/") if entry.startswith("/") else page.parent / entry
            (target,) = [
                stem.with_name(stem.name + end) for end in (".md", ".ipynb") if (DOCS / f"{stem}{end}").exists()
            ]
            yield target


def test_every_page_is_in_exactly_one_table_of_contents():
    counts = Counter(target for page in PAGES if page.suffix == ".md" for target in listed(page))
    assert set(counts) == PAGES - {DOCS / "index.md"}
    assert [page for page, count in counts.items() if count > 1] == []


def test_the_side_bar_has_at_most_40_links_in_named_groups():
    blocks = TOCTREE.findall((DOCS / "index.md").read_text())
    assert sum(len(entries(block)) for block in blocks) <= MOST_LINKS
    captions = [re.search(r"^:caption: (.+)$", block, flags=re.MULTILINE)[1] for block in blocks]
    assert len(set(captions)) == len(blocks) >= 5


def test_the_home_page_has_a_figure_an_installation_and_three_ways_in():
    text = (DOCS / "index.md").read_text().partition("```{toctree}")[0]
    assert len(re.findall(r"^```\{image\}", text, flags=re.MULTILINE)) == 1
    assert "pip install" in text
    assert re.findall(r"^:::\{grid-item-card\} (\w+)$", text, flags=re.MULTILINE) == [
        "Researcher",
        "Engineer",
        "Contributor",
    ]
    assert all((DOCS / f"{name}.md").exists() for name in re.findall(r"^:link: (\S+)$", text, flags=re.MULTILINE))


def test_the_numbers_of_the_home_page_are_those_of_the_front_page():
    caption = re.search(
        r"^\*Four compressors.*?\*$", (DOCS.parent / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )[0]
    finding = re.search(r"^\*\*One finding\.\*\*.*?\n\n", (DOCS / "index.md").read_text(), re.MULTILINE | re.DOTALL)[0]
    numbers = re.findall(r"\d\.\d\d", finding)
    assert len(numbers) == 2
    assert set(numbers) <= set(re.findall(r"\d\.\d\d", caption))
