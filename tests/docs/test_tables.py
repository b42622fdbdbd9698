"""No cell of a table is cut: what stands between the bars of a row is what its cells show."""

import re
from types import ModuleType

import pytest
from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt
from pages import DOCS
from templates import FOLDERS, FUNCTIONS, functions

from bounds.plan import coverage

PARSER = MarkdownIt("commonmark").enable("table")
BAR = re.compile(r"(?<!\\)\|")


def every_page():
    """README and all pages of the documentation, those made from templates too."""
    built = ("_build", "_static", "studies", "figures")
    found = [path for path in sorted(DOCS.rglob("*.md")) if path.relative_to(DOCS).parts[0] not in built]
    return [DOCS.parent / "README.md", *found]


def text_of(path):
    text = path.read_text()
    if path.is_relative_to(DOCS) and str(path.relative_to(DOCS)).startswith(FOLDERS):
        environment = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
        text = environment.from_string(text).render(FUNCTIONS)
    return text


def cut(text):
    """(line as it is written, its cells as they are shown) of every row that loses something."""
    lines, tokens = text.splitlines(), PARSER.parse(text)
    found, rows = [], 0
    for position, token in enumerate(tokens):
        if token.type == "tr_open":
            rows += 1
            end = next(i for i in range(position, len(tokens)) if tokens[i].type == "tr_close")
            shown = [t.content for t in tokens[position:end] if t.type == "inline"]
            line = lines[token.map[0]].strip().removeprefix("|").removesuffix("|")
            written = [cell.strip().replace("\\|", "|") for cell in BAR.split(line)]
            if written != shown:
                found.append((written, shown))
    return found, rows


@pytest.mark.parametrize("path", every_page(), ids=lambda path: path.stem)
def test_cells_show_what_is_written(path):
    text = text_of(path)
    found, rows = cut(text)
    assert found == []
    assert rows or not re.search(r"^\|[-: |]+\|$", text, re.MULTILINE)


def test_a_bar_in_code_cuts_a_cell():
    found, rows = cut("| a | b |\n|---|---|\n| x | `|y|` |\n| x | `\\|y\\|` |\n")
    assert rows == 3
    assert [written for written, _ in found] == [["x", "`", "y", "`"]]


def test_two_functions_of_one_name_are_refused():
    first, second = (ModuleType(name) for name in ("first", "second"))
    for module in (first, second):
        exec("def a_table():\n    return ''\n", vars(module))

    assert list(functions(first)) == ["a_table"]
    with pytest.raises(ValueError, match="first and second both define a_table"):
        functions(first, second)


def test_the_page_of_theorems_says_what_a_plan_rests_on():
    text = text_of(DOCS / "reference" / "theorems.md").partition("## What a plan rests on")[2]

    assert all(f"[`{name}`](#bound-{name})" in text for name in coverage())
