"""Docstrings of this project as reStructuredText.

They are plain text: ``name : meaning`` lines state shapes and units, indented lines are formulas or examples, ``code``
is quoted twice, and ``|x|``, ``x_i`` or ``C(x)*`` mean what they say.  Works of the bibliography that are named with
their year become links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import citations
from sphinx.application import Sphinx

NAME = r"\*{0,2}[A-Za-z_]\w*"
NAMES = rf"(?:or )?{NAME}(?:(?:, | or | and ){NAME})*"
ITEM = re.compile(rf"^{NAMES} : ")
INNER_ITEM = re.compile(rf"(?:(?<=[.;])|(?<=[,)])(?=\s+or ))\s+(?={NAMES} : )")
LISTED = re.compile(r"^(\s*)(\d+\.|\*|-)\s+(?=\S)")
MARKUP = re.compile(r"\(?(?:\d+|[A-Za-z#]|[IVXLCDMivxlcdm]+)[.)](?:\s|$)|[-+•:./=]")  # a list, a field, a comment
TITLE = re.compile(r"^\\\*([A-Z][^*\\]*)\\\*")
CODE = re.compile(r"``.*?``", re.DOTALL)


def escape(text: str) -> str:
    """Plain text as reStructuredText that shows it unchanged, but for quoted code."""
    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [_plain(text[end : code.start()]), code[0]]
        end = code.end()
    return "".join(parts) + _plain(text[end:])


def _plain(text: str) -> str:
    return re.sub(r"([\\*`|_<>])", r"\\\1", text)


def to_rst(text: str, package: str = "") -> list[str]:
    """The lines of a docstring in reStructuredText.  package : whose works are preferred where a name is ambiguous."""
    found: list[str] = []
    for block in _blocks(text.expandtabs().splitlines()):
        found += [*_rendered(block, package), ""]
    return found


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Runs of lines that belong together: a paragraph, one item with its meaning, one of a list, or indented lines."""
    block: list[str] = []
    for position, line in enumerate(lines):
        following = lines[position + 1] if position + 1 < len(lines) else ""
        starts = not line.strip() or _is_item(line, following)
        if _is_listed(block[0] if block else "", line, following):
            starts = True
        elif block and _indent_of_list(block[0]) < _indent(line):
            starts = False
        elif block and not starts:
            doctest = block[0].lstrip().startswith(">>>")
            indented, was_indented = line.startswith(" "), block[0].startswith(" ")
            last = block[-1].rstrip()
            whole = last.endswith((".", ":")) and not last.endswith(" :")
            ended = whole and _is_item(block[0], block[1] if len(block) > 1 else "")
            starts = not doctest and (
                line.lstrip().startswith(">>>")
                or (was_indented and not indented)
                or (indented and not was_indented and not _is_item(block[0], line))
                or (ended and not indented)
            )
        if starts and block:
            yield block
            block = []
        if line.strip():
            block.append(line)
    if block:
        yield block


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else -1


def _indent_of_list(first: str) -> float:
    """How far the marker of a list's item is indented; infinitely if the block is none."""
    listed = LISTED.match(first)
    return len(listed[1]) if listed else float("inf")


def _is_listed(first: str, line: str, following: str) -> bool:
    """Whether a line begins an item of a list: at the start of a block, or after another such item."""
    listed = LISTED.match(line)
    if listed is None or not (not first or LISTED.match(first)):
        return False
    return not following.strip() or LISTED.match(following) is not None or _indent(following) > len(listed[1])


def _is_item(line: str, following: str) -> bool:
    named = ITEM.match(line) is not None
    return named or (" : " in line[:60] and following.startswith(" ") and not line.startswith((" ", ">")))


def _rendered(block: list[str], package: str) -> list[str]:
    first, second = block[0], block[1] if len(block) > 1 else ""
    if first.lstrip().startswith(">>>"):
        return [line.strip() for line in block]
    text = " ".join(line.strip() for line in block)
    if _is_listed("", first, second):
        marker, _, rest = text.partition(" ")
        titled = TITLE.sub(r"*\1*", escape(rest.strip()))
        return [f"{marker} {_linked(titled, package)}"]
    if _is_item(first, second):
        return _items(INNER_ITEM.split(text), package)
    if first.startswith(" "):
        return [".. code-block:: text", "", *(f"   {line}" for line in block)]
    before, *items = INNER_ITEM.split(text)
    return [_linked(escape(before), package), *(["", *_items(items, package)] if items else [])]


def _items(items: list[str], package: str) -> list[str]:
    """A list of definitions."""
    lines: list[str] = []
    for item in items:
        name, _, meaning = item.partition(" : ")
        names = name.strip()
        term = f"or ``{names[3:]}``" if names.startswith("or ") else f"``{names}``"
        lines += [term, f"   {_linked(escape(meaning.strip()), package)}", ""]
    return lines


def _linked(rst: str, package: str) -> str:
    """A paragraph with links, that is no list, field or comment, whatever it begins with."""
    return citations.linked(f"\\{rst}" if MARKUP.match(rst) else rst, package)


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Rewrite one docstring in place."""
    lines[:] = to_rst("\n".join(lines), name.partition(".")[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the conversion."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
